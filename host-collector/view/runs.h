/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs of stalls: a fault that comes back again and again makes many equal stalls of one guest CPU
 * in a row. A text report shows the longest of them in full, and each other in one line.
 */
#ifndef VIEW_RUNS_H
#define VIEW_RUNS_H

#include "host-collector/analyze/stall/report.h"

/* blocks[i]: the first incident of the block in which incident i is shown. Joins the blocks of four
 * or more equal stalls in a row; what is undetermined, or does not add up, stays alone. */
void runs_join(const struct report *r, size_t *blocks);

#endif
