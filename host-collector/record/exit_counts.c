/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/record/exit_counts.h"

#include <stdlib.h>
#include <string.h>

/* The totals of the last report. The kernel lists them in almost the same order each time. */
struct reported {
	pid_t tid;
	uint32_t isa, reason;
	uint64_t count;
};

struct exit_counts {
	size_t n_reported, next, n_cells;
	struct reported reported[VS_EXIT_CELLS_MAX];
	struct message_exit_cell cells[VS_EXIT_CELLS_MAX];
};

struct exit_counts *exit_counts_new(void)
{
	return calloc(1, sizeof(struct exit_counts));
}

void exit_counts_free(struct exit_counts *x)
{
	free(x);
}

static bool is_of(const struct reported *t, const struct capture_exit *exit)
{
	return t->tid == exit->tid && t->reason == exit->reason && t->isa == exit->isa;
}

static struct reported *reported_find(struct exit_counts *x, const struct capture_exit *exit)
{
	for (size_t i = 0; i < x->n_reported; i++) {
		size_t at = (x->next + i) % x->n_reported;

		if (is_of(&x->reported[at], exit)) {
			x->next = at + 1;
			return &x->reported[at];
		}
	}
	if (x->n_reported == VS_EXIT_CELLS_MAX)
		return NULL;
	x->reported[x->n_reported] =
		(struct reported){.tid = exit->tid, .isa = exit->isa, .reason = exit->reason};
	return &x->reported[x->n_reported++];
}

void exit_counts_add(struct exit_counts *x, uint32_t vcpu, const struct capture_exit *exit)
{
	struct reported *reported = reported_find(x, exit);
	struct message_exit_cell *cell;

	if (!reported || reported->count == exit->count || x->n_cells == VS_EXIT_CELLS_MAX)
		return;
	reported->count = exit->count;
	cell = &x->cells[x->n_cells++];
	*cell = (struct message_exit_cell){
		.vcpu = vcpu,
		.isa = exit->isa,
		.reason = exit->reason,
		.count = exit->count,
		.kernel_ns = exit->kernel_ns,
		.vmm_ns = exit->vmm_ns,
		.max_ns = exit->max_ns,
	};
	memcpy(cell->buckets, exit->buckets, sizeof(cell->buckets));
}

const struct message_exit_cell *exit_counts_take(struct exit_counts *x, size_t *n)
{
	*n = x->n_cells;
	x->n_cells = 0;
	return x->cells;
}
