/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/runs.h"

/* The same again: nothing in the one but its time is missing from the other. */
static bool repeats(const struct incident *a, const struct incident *b)
{
	return !a->healthy && !b->healthy && !a->inconsistent && !b->inconsistent &&
	       a->verdict == b->verdict && a->verdict != VERDICT_UNDETERMINED &&
	       a->confidence == b->confidence && a->kind == b->kind && a->missing == b->missing &&
	       !a->n_culprits == !b->n_culprits &&
	       (!a->n_culprits || a->culprits[0].pid == b->culprits[0].pid);
}

static bool same_cpu(const struct incident *a, const struct incident *b)
{
	return a->vm == b->vm && a->guest_cpu == b->guest_cpu;
}

/* Does the stall of this CPU before this one differ? */
static bool run_begins(const struct report *r, size_t at)
{
	for (size_t k = at; k-- > 0;) {
		if (same_cpu(&r->incidents[k], &r->incidents[at]))
			return !repeats(&r->incidents[k], &r->incidents[at]);
	}
	return true;
}

/* Returns the number of consecutive stalls of this CPU, from `first` on, that are the same.
 * Joins their blocks if requested. */
static size_t run_length(const struct report *r, size_t first, size_t *blocks, bool join)
{
	size_t n = 1;

	for (size_t k = first + 1; k < r->n_incidents; k++) {
		if (!same_cpu(&r->incidents[first], &r->incidents[k]))
			continue;
		if (!repeats(&r->incidents[first], &r->incidents[k]))
			break;
		if (join && blocks[k] == k)
			blocks[k] = blocks[first];
		n++;
	}
	return n;
}

enum { RUN_MANY = 4 }; /* fewer are shown one by one */

void runs_join(const struct report *r, size_t *blocks)
{
	for (size_t i = 0; i < r->n_incidents; i++) {
		if (run_begins(r, i) && run_length(r, i, blocks, false) >= RUN_MANY)
			run_length(r, i, blocks, true);
	}
}
