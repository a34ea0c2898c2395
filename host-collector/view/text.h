/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes a report as text: the first line states the result, then one block follows for each
 * incident, then the data on which the results are based. Incidents of one VM that overlap and have
 * the same cause share a block.
 *
 * This module computes nothing. It escapes every name and wraps lines (wrap.h).
 */
#ifndef VIEW_TEXT_H
#define VIEW_TEXT_H

#include <stdio.h>

#include "host-collector/analyze/stall/report.h"

struct strips;

struct text_options {
	bool colour;
	const struct strips *strips; /* the strips of the incidents; NULL: none are drawn */
};

/* Values of --color. */
#define TEXT_COLOUR "auto|always|never"

/* Chooses colours for `out`. `colour` is a word of TEXT_COLOUR. NULL and "auto" mean colours if
 * `out` is a terminal, unless NO_COLOR or TERM=dumb is set. */
struct text_options text_options_for(FILE *out, const char *colour);

/* Returns the number of cells of a strip that fits on a line of `out` (see
 * wrap_columns()). */
unsigned text_strip_cells(FILE *out);

/* Writes the whole report. Errors remain in the stream (ferror). */
void text_report_write(const struct report *r, const struct text_options *o, FILE *out);
/* Writes one line for each stall: when, for how long, verdict, where, why. On a terminal, lines are
 * cut to its width. */
void text_brief_write(const struct report *r, const struct text_options *o, FILE *out);
/* Writes the incidents without head and foot, for `watch`. */
void text_incidents_write(const struct report *r, const struct text_options *o, FILE *out);
/* Writes one line for an incident that is not over yet. */
void text_ongoing_write(const struct incident *i, const char *vm_name, const struct text_options *o,
			FILE *out);

#endif
