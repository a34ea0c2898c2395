/* SPDX-License-Identifier: GPL-2.0-only */
/* A pair of events as a configuration defines it. This module does not know which events exist. */
#ifndef EVENT_PAIR_DEFINITION_H
#define EVENT_PAIR_DEFINITION_H

#include <stddef.h>
#include <stdint.h>

enum {
	PAIR_WATCH_MAX = 16,
	PAIR_NAME_BYTES = 64,
	PAIR_EVENT_BYTES = 256,
	PAIR_TEXT_BYTES = PAIR_NAME_BYTES + 3 * PAIR_EVENT_BYTES + 8,
};

struct pair_definition {
	char name[PAIR_NAME_BYTES];
	char from[PAIR_EVENT_BYTES], to[PAIR_EVENT_BYTES]; /* as in -e (docs/events.md) */
	char key[PAIR_EVENT_BYTES];                        /* an expression; "": as in --key */
	uint64_t than_ns;                                  /* 0: no limit */
};

/* Checks the form of the events. Only a running VM shows whether they exist. Returns 0, or -EINVAL
 * with one line in `why`. */
int pair_definition_check(const struct pair_definition *d, char *why, size_t why_bytes);
/* Writes the definition as the value of --pair: NAME[KEY]=A..B. */
void pair_definition_text(const struct pair_definition *d, char *out, size_t out_bytes);

#endif
