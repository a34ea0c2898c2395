/* SPDX-License-Identifier: GPL-2.0-only */
/* Where events are missing, as slices: a row for each CPU that lost some, host's and guests'. */
#ifndef EXPORT_LOSS_ROWS_H
#define EXPORT_LOSS_ROWS_H

#include "host-collector/export/trace_file.h"

struct loss_rows {
	struct trace_file *file;
	uint64_t group; /* track above them, 0: none yet */
};

struct loss_row {
	uint64_t track;
	bool open;
	uint64_t from;
	uint64_t n; /* how many are missing... */
	bool more;  /* ... at least */
};

/* n 0: nobody knows how many. */
void loss_row_begin(struct loss_row *l, uint64_t from, uint64_t n);
/* The first event after them; `machine` as people know it. */
void loss_row_over(struct loss_rows *x, struct loss_row *l, uint64_t t, const char *machine,
		   uint16_t cpu);

#endif
