/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A report for the person who was woken by it: the first line says what happened, then one block
 * per incident, then what the answer rests on. Incidents of one VM that have the same cause and
 * overlap share a block. Nothing here is computed, only drawn; every name is escaped, no line is
 * longer than WRAP_COLUMNS (wrap.h).
 */
#ifndef VIEW_TEXT_H
#define VIEW_TEXT_H

#include <stdio.h>

#include "host-collector/analyze/stall/report.h"

struct text_options {
	bool colour;
};

/* What --color takes. */
#define TEXT_COLOUR "auto|always|never"

/* colour: a word of TEXT_COLOUR; NULL and "auto": colours if `out` is a terminal and neither
 * NO_COLOR nor TERM=dumb speaks against it. */
struct text_options text_options_for(FILE *out, const char *colour);

/* The whole report; errors are the stream's (ferror). */
void text_report_write(const struct report *r, const struct text_options *o, FILE *out);
/* The incidents of `r` without head and foot, for watch. */
void text_incidents_write(const struct report *r, const struct text_options *o, FILE *out);
/* One line: an incident that still goes on. */
void text_ongoing_write(const struct incident *i, const char *vm_name, const struct text_options *o,
			FILE *out);

#endif
