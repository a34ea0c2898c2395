/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A ring of stacks: each hit of a tracepoint writes the kernel frames of the current task and a
 * copy of the top of its user stack, 17 KiB in total. The ring of a CPU keeps the oldest records
 * until they are read. The ring of a thread overwrites the oldest records, so it contains the
 * thread's last switch no matter how often the thread switched before.
 *
 * It does not use libperf, which truncates records that cross the end of the ring and cannot read a
 * ring that is being overwritten.
 */
#ifndef PERF_PERF_STACK_RING_H
#define PERF_PERF_STACK_RING_H

#include "bpf/perf/perf_sample.h"

struct perf_stack_ring;

/* Open the ring of a CPU, of `bytes` bytes (a power of two), or of a thread. Return NULL with errno
 * set on failure. */
struct perf_stack_ring *perf_stack_ring_open_cpu(int cpu, size_t bytes);
struct perf_stack_ring *perf_stack_ring_open_thread(int tid);
/* Records the hits of tracepoint `id` that pass `filter` (NULL: all) from now on, instead of the
 * previous tracepoint's. Returns 0 or -errno; on error nothing changes. */
int perf_stack_ring_watch(struct perf_stack_ring *r, int id, const char *filter);
void perf_stack_ring_close(struct perf_stack_ring *r);

/* perf_stack_ring_peek() returns the oldest record of a CPU's ring, or false if there is none. It
 * is borrowed until the next call. perf_stack_ring_pop() removes it. */
bool perf_stack_ring_peek(struct perf_stack_ring *r, struct perf_record *record,
			  struct perf_stack *stack);
void perf_stack_ring_pop(struct perf_stack_ring *r);

/* Returns the newest record of a thread's ring with a time from `from` to `until` (CLOCK_MONOTONIC
 * ns), or false if the ring does not hold one. Borrowed until the next call. */
bool perf_stack_ring_newest(struct perf_stack_ring *r, uint64_t from, uint64_t until,
			    struct perf_record *record, struct perf_stack *stack);

#endif
