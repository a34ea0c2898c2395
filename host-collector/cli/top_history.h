/* SPDX-License-Identifier: GPL-2.0-only */
/* The rows of `top`, and the data of earlier refreshes: steal and run delay of each row, and the
 * last stall of each VM. */
#ifndef CLI_TOP_HISTORY_H
#define CLI_TOP_HISTORY_H

#include "host-collector/analyze/stall/report.h"
#include "host-collector/tables/activity.h"
#include "host-collector/view/top_screen.h"

/* Adds what one vCPU did in `seconds` to a row. The row's shares are nanoseconds until
 * top_row_finish() converts them to percentages of the observed time. */
void top_row_add(struct top_row *to, const struct activity_row *a, double seconds);
void top_row_finish(struct top_row *r);

struct top_history;

/* Returns NULL on ENOMEM. */
struct top_history *top_history_new(void);
void top_history_free(struct top_history *h);
/* Adds the row's shares of this refresh. `vcpu` is UINT32_MAX for the row of a whole VM. */
void top_history_add(struct top_history *h, const struct top_row *row, uint32_t vcpu);
/* Fills row->delays and row->steals, the newest last. */
void top_history_fill(const struct top_history *h, struct top_row *row, uint32_t vcpu);
/* Remembers a stall of the VM `name`. */
void top_history_stall(struct top_history *h, const char *name, const struct top_stall *stall);
/* Returns the newest stall of the VM, or NULL. Borrowed. */
const struct top_stall *top_history_last(const struct top_history *h, const char *name);
/* Converts an incident of a report with one incident. */
struct top_stall top_stall_of(const struct report *report, const struct incident *i);

#endif
