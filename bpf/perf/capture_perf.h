/* SPDX-License-Identifier: GPL-2.0-only */
/* What a capture by perf consists of, and its host's half. */
#ifndef PERF_CAPTURE_PERF_H
#define PERF_CAPTURE_PERF_H

#include "bpf/capture/capture_internal.h"
#include "bpf/perf/perf_queue.h"
#include "bpf/perf/perf_ring.h"
#include "bpf/perf/perf_tracepoint.h"

enum {
	PERF_TRACEPOINTS_MAX = 64,
	PERF_TRACEPOINT_IDS = 65536, /* the records have 16 bits for them */
};

struct perf_host;

struct perf_cpu_state {
	struct perf_ring *ring; /* NULL: offline */
	struct perf_queue queue;
	size_t ring_records; /* the ring cannot hold more */
	int32_t running;     /* the task switched in last, RUNNING_UNKNOWN; the guest's */
	uint64_t lost;       /* host: since the last event that was handed on */
};

struct capture_perf {
	struct capture base;
	struct capture_options options;
	size_t ring_pages;
	size_t n_cpus, first_cpu; /* first_cpu: an online one, names are its */
	struct perf_cpu_state *cpus;
	struct tep_handle *tep;
	struct perf_tracepoint tracepoints[PERF_TRACEPOINTS_MAX];
	size_t n_base;                      /* that every CPU's first ring holds */
	size_t n_sources;                   /* with a host's that wait for threads to be followed */
	size_t n_tracepoints;               /* and with its rows */
	uint8_t by_id[PERF_TRACEPOINT_IDS]; /* index into tracepoints + 1 */
	uint64_t cutoff;                    /* everything up to here has been made ready */
	uint64_t advanced, online_read;
	bool names_wanted;
	size_t names; /* read in this scan */
	char left_out[256];
	struct perf_cpu_state *reading; /* for on_record() */
	struct perf_host *host;         /* NULL for a guest capture */
};

/* Empties all rings into their queues. */
void capture_perf_read(struct capture_perf *c);
/* The tracepoint that a record is of; NULL: none of ours. */
const struct perf_tracepoint *capture_perf_tracepoint_of(const struct capture_perf *c,
							 const struct perf_record *record);

/* The host's half: what the functions of capture_host.h do for BPF. With one line in `why`. */
int perf_host_open(struct capture_perf *c, char *why, size_t why_bytes);
void perf_host_close(struct capture_perf *c);
/* What the CPU has besides its first ring, and its end. */
void perf_host_cpu_open(struct capture_perf *c, size_t cpu);
void perf_host_cpu_close(struct capture_perf *c, size_t cpu);
/* A record of the CPU's first ring that came too late; whether it is to count as lost. */
bool perf_host_late(struct capture_perf *c, const struct vs_event *event);
/* Reads the other rings; then makes ready what is not younger than `cutoff`. */
void perf_host_read(struct capture_perf *c);
void perf_host_replay(struct capture_perf *c, uint64_t cutoff);
/* Hands over the stacks that were found. */
void perf_host_drain(struct capture_perf *c, const struct capture_sink *sink);
int perf_host_add(struct capture_perf *c, pid_t tid, pid_t tgid, uint32_t vm, bool is_vcpu);
int perf_host_remove(struct capture_perf *c, pid_t tid);
int perf_host_wait_threshold(struct capture_perf *c, uint64_t ns);
/* Wake-ups of followed threads that perf did not see. */
uint64_t perf_host_missed(const struct capture_perf *c);
void perf_host_stats(const struct capture_perf *c, struct capture_host_stats *out);
long perf_host_waiting(const struct capture_perf *c, size_t cpu);

extern const struct capture_backend capture_backend_perf;

#endif
