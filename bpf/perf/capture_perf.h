/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of the perf backend, and the functions that only a host capture needs. */
#ifndef PERF_CAPTURE_PERF_H
#define PERF_CAPTURE_PERF_H

#include "bpf/capture/capture_internal.h"
#include "bpf/perf/perf_queue.h"
#include "bpf/perf/perf_ring.h"
#include "bpf/perf/perf_tracepoint.h"

enum {
	PERF_TRACEPOINTS_MAX = 255,  /* an index + 1 fits in 8 bits */
	PERF_TRACEPOINT_IDS = 65536, /* a record holds its tracepoint id in 16 bits */
};

struct perf_host;
struct perf_chosen;

struct perf_cpu_state {
	struct perf_ring *ring; /* NULL: the CPU is offline */
	struct perf_queue queue;
	size_t ring_records; /* upper bound of the records that the ring can hold */
	int32_t running;     /* guest capture: the task switched in last, or RUNNING_UNKNOWN */
	uint64_t lost;       /* host capture: events lost since the last emitted event */
};

struct capture_perf {
	struct capture base;
	struct capture_options options;
	size_t ring_pages;
	/* first_cpu: an online CPU. TASK_NAME events of a scan of /proc carry it. */
	size_t n_cpus, first_cpu;
	struct perf_cpu_state *cpus;
	struct tep_handle *tep;
	struct perf_tracepoint tracepoints[PERF_TRACEPOINTS_MAX];
	size_t n_base;        /* tracepoints in the first ring of each CPU */
	size_t n_sources;     /* n_base and those opened when a thread is followed */
	size_t n_tracepoints; /* n_sources and the resolved rows of tracepoint_row() */
	uint8_t by_id[PERF_TRACEPOINT_IDS]; /* index into tracepoints + 1 */
	uint64_t cutoff; /* CLOCK_MONOTONIC ns; all events up to this time are ready */
	/* CLOCK_MONOTONIC ns of the last read of the rings, and of the list of online CPUs */
	uint64_t advanced, online_read;
	bool names_wanted;
	size_t names; /* number of tasks that scans of /proc found */
	/* names of the tracepoints that this kernel lacks */
	char left_out[256];
	struct perf_cpu_state *reading; /* the CPU whose ring is being read */
	struct perf_host *host;         /* NULL for a guest capture */
};

/* Returns the size of each of n_rings rings, in pages, that together take at most `bytes`; at least
 * one page each. */
size_t capture_perf_ring_pages(size_t bytes, size_t n_rings);
/* Reads all records of all rings into their queues. */
void capture_perf_read(struct capture_perf *c);
/* Returns the tracepoint that wrote `record`, or NULL if the capture did not open it. */
struct perf_tracepoint *capture_perf_tracepoint_of(struct capture_perf *c,
						   const struct perf_record *record);

/* Sets up what only a host capture has: replay, further rings, stacks. Also reads the names of all
 * tasks from /proc. Returns 0 or -errno with one line in `why`. After an error the caller calls
 * perf_host_close(). */
int perf_host_open(struct capture_perf *c, char *why, size_t why_bytes);
/* Frees what perf_host_open() allocated. Does nothing for a guest capture. */
void perf_host_close(struct capture_perf *c);
/* Open and close the rings that a CPU has besides its first one. */
void perf_host_cpu_open(struct capture_perf *c, size_t cpu);
void perf_host_cpu_close(struct capture_perf *c, size_t cpu);
/* Handles an event whose time has already been replayed. Returns whether it counts as lost. */
bool perf_host_late(struct capture_perf *c, const struct vs_event *event);
/* perf_host_read() reads the rings besides the first ones. perf_host_replay() processes all events
 * up to `cutoff` (CLOCK_MONOTONIC ns) in the order of time and makes the resulting events ready. */
void perf_host_read(struct capture_perf *c);
void perf_host_replay(struct capture_perf *c, uint64_t cutoff);
/* Passes the stacks that were found to the sink. */
void perf_host_drain(struct capture_perf *c, const struct capture_sink *sink);
/* These implement capture_add_thread(), capture_remove_thread() and the change of the wait
 * threshold (capture.h). Return 0 or -errno; -ENOTSUP for a guest capture. */
int perf_host_add(struct capture_perf *c, pid_t tid, pid_t tgid, uint32_t vm, bool is_vcpu);
int perf_host_remove(struct capture_perf *c, pid_t tid);
int perf_host_wait_threshold(struct capture_perf *c, uint64_t ns);
/* Returns the number of wake-ups of followed threads for which perf delivered no record. */
uint64_t perf_host_missed(const struct capture_perf *c);
/* Fills the counters of `out`. */
void perf_host_stats(const struct capture_perf *c, struct capture_host_stats *out);
/* Returns the chosen events (perf_chosen.h). */
struct perf_chosen *perf_host_chosen(const struct capture_perf *c);
/* Returns how many followed threads wait for `cpu` (SIZE_MAX: for any CPU). */
long perf_host_waiting(const struct capture_perf *c, size_t cpu);

extern const struct capture_backend capture_backend_perf;

#endif
