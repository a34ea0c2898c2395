/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A ring of stacks: where whoever hits a tracepoint is, with a copy of the top of its user stack,
 * 17 KiB each. One of a CPU keeps the oldest ones until they are read; one of a thread keeps its
 * newest ones, so that a sleeper's last switch is there however often it switched before.
 *
 * Not libperf's: that cuts records which lie across the end of the ring, and cannot look at a ring
 * that is being overwritten.
 */
#ifndef PERF_PERF_STACK_RING_H
#define PERF_PERF_STACK_RING_H

#include "bpf/perf/perf_sample.h"

struct perf_stack_ring;

/* bytes: a power of two. NULL with errno. */
struct perf_stack_ring *perf_stack_ring_open_cpu(int cpu, size_t bytes);
struct perf_stack_ring *perf_stack_ring_open_thread(int tid);
/* Takes hits of tracepoint `id` that `filter` lets through (NULL: all) from now on, and no others
 * any more. 0 or -errno: then all is as before. */
int perf_stack_ring_watch(struct perf_stack_ring *r, int id, const char *filter);
void perf_stack_ring_close(struct perf_stack_ring *r);

/* A CPU's: the oldest record, false: there is none. Borrowed until the next call. */
bool perf_stack_ring_peek(struct perf_stack_ring *r, struct perf_record *record,
			  struct perf_stack *stack);
void perf_stack_ring_pop(struct perf_stack_ring *r);

/* A thread's: the newest record stamped from `from` to `until`, false: there is none (any more).
 * Borrowed until the next call. */
bool perf_stack_ring_newest(struct perf_stack_ring *r, uint64_t from, uint64_t until,
			    struct perf_record *record, struct perf_stack *stack);

#endif
