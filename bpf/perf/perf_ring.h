/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Some perf events of one CPU and the ring that they share. The kernel wakes nobody up; whoever
 * owns the ring reads it on a timer.
 */
#ifndef PERF_PERF_RING_H
#define PERF_PERF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/perf/perf_sample.h"

struct perf_ring;

struct perf_ring_event {
	int id;             /* the tracepoint's */
	const char *filter; /* in the kernel, as tracefs writes it; NULL: every hit */
};

struct perf_ring_options {
	int cpu;
	enum perf_layout layout;              /* PERF_LAYOUT_FAULT: major page faults, */
	const struct perf_ring_event *events; /* else tracepoints */
	size_t n_events;
	bool names;        /* also report what tasks are renamed to */
	bool switches;     /* also report who gets the CPU from whom */
	size_t page_count; /* a power of two */
};

/* Opens the events and lets them run. 0 or -errno, with one line in `why`. */
int perf_ring_open(const struct perf_ring_options *options, struct perf_ring **out, char *why,
		   size_t why_bytes);
void perf_ring_close(struct perf_ring *r);
/* Whether switches are reported from now on, of a ring that was opened with them. */
void perf_ring_switches_report(struct perf_ring *r, bool wanted);
/* Hands over at most `max` records, oldest first; each is borrowed for the call. Returns how many;
 * fewer than max: the ring is empty. What the kernel lost until then is told, too. */
size_t perf_ring_read(struct perf_ring *r, size_t max,
		      void (*record)(void *context, const struct perf_record *record),
		      void *context);

#endif
