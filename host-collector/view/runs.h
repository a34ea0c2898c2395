/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups runs of stalls: a fault that comes back again and again causes many similar stalls of one
 * guest CPU in a row. A text report shows the longest of a run in full, and each other stall in one
 * line.
 */
#ifndef VIEW_RUNS_H
#define VIEW_RUNS_H

#include "host-collector/analyze/stall/report.h"

/* Joins the blocks of four or more similar stalls of one guest CPU in a row. blocks[i] is the
 * index of the first incident of the block that shows incident i. Stalls whose verdict is
 * `undetermined` or whose numbers are inconsistent are not joined. */
void runs_join(const struct report *r, size_t *blocks);

#endif
