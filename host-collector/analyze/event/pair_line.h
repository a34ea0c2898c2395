/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes a pair as one JSON object on one line (deploy/schemas/pair-1.schema.json). */
#ifndef EVENT_PAIR_LINE_H
#define EVENT_PAIR_LINE_H

#include <stdio.h>

#include "host-collector/analyze/event/pairs.h"

struct pair_line_options {
	const struct event_choices *choices; /* of the pairs. Borrowed. */
	const struct model *model;           /* that the pairs observe; names VMs and tasks */
	const char *name;                    /* that the user gave to the pairs; NULL: none */
};

void pair_line_write(const struct pair *pair, const struct pair_line_options *options, FILE *out);

#endif
