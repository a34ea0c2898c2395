/* SPDX-License-Identifier: GPL-2.0-only */
/* A ring that several perf events of one CPU share. The kernel wakes no reader: the owner reads the
 * ring on a timer. */
#ifndef PERF_PERF_RING_H
#define PERF_PERF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/perf/perf_sample.h"

struct perf_ring;

/* A probe of the PMUs kprobe and uprobe. The members are those of struct perf_event_attr. */
struct perf_ring_probe {
	uint32_t type;
	uint64_t config, config1, config2;
};

struct perf_ring_event {
	int id;             /* id of the tracepoint */
	const char *filter; /* kernel filter in the syntax of tracefs; NULL: none */
	const struct perf_ring_probe *probe; /* NULL: it is a tracepoint */
};

struct perf_ring_options {
	int cpu;
	/* PERF_LAYOUT_FAULT: major page faults; PERF_LAYOUT_PROBE: probes; else tracepoints */
	enum perf_layout layout;
	const struct perf_ring_event *events; /* not used with PERF_LAYOUT_FAULT */
	size_t n_events;
	bool names;        /* also report new names of tasks */
	bool switches;     /* also report each task that gets the CPU, and the previous one */
	size_t page_count; /* size of the ring in pages; a power of two */
};

/* Opens and enables the events. Returns 0 or -errno with one line in `why`. */
int perf_ring_open(const struct perf_ring_options *options, struct perf_ring **out, char *why,
		   size_t why_bytes);
/* Closes the events and frees the ring. NULL is allowed. */
void perf_ring_close(struct perf_ring *r);
/* Enables or disables the reports of switches. The ring must have been opened with `switches`. */
void perf_ring_switches_report(struct perf_ring *r, bool wanted);
/* Reads at most `max` records from the ring and passes them to `record`, in the order of the ring.
 * Each record is borrowed for the call. Also passes the number of events that the kernel lost
 * (perf_record.lost). Returns the number of records read; fewer than `max` if the ring is empty. */
size_t perf_ring_read(struct perf_ring *r, size_t max,
		      void (*record)(void *context, const struct perf_record *record),
		      void *context);

#endif
