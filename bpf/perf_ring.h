/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The perf events of one CPU and the ring that they share. Stamps are CLOCK_MONOTONIC. The kernel
 * wakes nobody up; whoever owns the ring reads it on a timer.
 */
#ifndef BPF_PERF_RING_H
#define BPF_PERF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_ring;

/* One record; what does not belong to its kind is zero. */
struct perf_record {
	uint64_t time; /* CLOCK_MONOTONIC ns */
	uint64_t lost; /* a loss: how many events of this CPU */
	int32_t tid, tgid;
	const char *comm;   /* a task has this name from now on; 16 bytes */
	const uint8_t *raw; /* a tracepoint's record, as its format says */
	size_t raw_bytes;
};

/* Opens tracepoints by their ids, all on one CPU, and lets them run. names: also report what tasks
 * are renamed to. page_count: a power of two. 0 or -errno, with one line in `why`. */
int perf_ring_open(int cpu, const int *ids, size_t n, bool names, size_t page_count,
		   struct perf_ring **out, char *why, size_t why_bytes);
void perf_ring_close(struct perf_ring *r);
/* Hands over at most `max` records, oldest first but for nested ones; each is borrowed for the
 * call. Returns how many; fewer than max: the ring is empty. */
size_t perf_ring_read(struct perf_ring *r, size_t max,
		      void (*record)(void *context, const struct perf_record *record),
		      void *context);

#endif
