/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes the intervals in which events are missing as slices, one row for each CPU that lost
 * some, of the host and of guests. */
#ifndef EXPORT_LOSS_ROWS_H
#define EXPORT_LOSS_ROWS_H

#include "host-collector/export/trace_file.h"

struct loss_rows {
	struct trace_file *file;
	uint64_t group; /* parent track, 0: none yet */
};

struct loss_row {
	uint64_t track;
	bool open;
	uint64_t from;
	uint64_t n; /* number of missing events */
	bool more;  /* `n` is a lower bound */
};

/* Begins a loss, or continues it. `n`: number of events, 0 if unknown. */
void loss_row_begin(struct loss_row *l, uint64_t from, uint64_t n);
/* Ends a loss, which is open, at the first event after it. `machine`: the name to show. */
void loss_row_end(struct loss_rows *x, struct loss_row *l, uint64_t t, const char *machine,
		  uint16_t cpu);

#endif
