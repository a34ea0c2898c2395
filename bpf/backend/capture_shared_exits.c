/* SPDX-License-Identifier: GPL-2.0-only */
/* Counted VM-exits of a shared capture. One read of the kernel's table gives the counts of all VMs;
 * each user then gets those of its VM. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/backend/capture_shared_internal.h"
#include "clock/sample.h"
#include "proto/array.h"

enum {
	/* Between two readings, by the number of users, who ask ten times a second each. */
	READ_NS_PER_USER = 20000000,
	READ_NS_MAX = 1000000000,
};

struct shared_exit {
	struct capture_exit exit;
	uint64_t buckets[VS_EXIT_BUCKETS];
};

static void on_exit_count(void *context, const struct capture_exit *exit)
{
	struct shared_exits *exits = context;
	struct shared_exit *cell;

	/* These are totals, so the next report includes what this one leaves out. */
	if (ARRAY_RESERVE(&exits->cells, exits->n, &exits->capacity, 64))
		return;
	cell = &exits->cells[exits->n++];
	cell->exit = *exit;
	memcpy(cell->buckets, exit->buckets, sizeof(cell->buckets));
}

int shared_exits_emit(struct capture_shared *s, uint32_t vm, capture_exit_taker take, void *context)
{
	struct shared_exits *exits = &s->exits;
	const uint64_t now = clock_monotonic_ns(), every = READ_NS_PER_USER * (uint64_t)s->n_users;
	int err = 0;

	if (!exits->read_ns ||
	    now - exits->read_ns >= (every < READ_NS_MAX ? every : READ_NS_MAX)) {
		exits->n = 0;
		exits->read_ns = now;
		err = capture_exits(s->capture, on_exit_count, exits);
	}
	for (size_t i = 0; i < exits->n; i++) {
		struct capture_exit exit = exits->cells[i].exit;

		exit.buckets = exits->cells[i].buckets;
		if (exit.vm == vm)
			take(context, &exit);
	}
	return err;
}
