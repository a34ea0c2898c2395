/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The events that the user chose, in a host capture through perf. Each has a ring on each CPU: a
 * tracepoint with the kernel's own filter, or a probe of the PMUs kprobe and uprobe. Each hit is
 * filtered when it is read from the ring. It is converted to the same records that the BPF programs
 * write (bpf/prog/user_hit.h). The replay (perf_follow.h) then calls perf_chosen_take() for the
 * hit, because only the replay knows which threads were followed at that time.
 *
 * Functions without a comment do what capture_event.h says of their counterparts.
 */
#ifndef PERF_PERF_CHOSEN_H
#define PERF_PERF_CHOSEN_H

#include "bpf/capture/capture_event.h"
#include "bpf/perf/capture_perf.h"
#include "bpf/perf/perf_rows.h"
#include "bpf/perf/task_table.h"

struct perf_chosen;

struct perf_chosen *perf_chosen_new(struct capture_perf *c); /* NULL on ENOMEM */
void perf_chosen_free(struct perf_chosen *p);                /* NULL is allowed */
/* vms: the VMs in whose threads hits are captured, as bits 1 << (number of the VM % 64). */
int perf_chosen_add(struct perf_chosen *p, const struct capture_event *event, uint64_t vms,
		    uint32_t *id);
/* Changes `vms` of an event. 0 detaches the event for good. */
void perf_chosen_vms(struct perf_chosen *p, uint32_t id, uint64_t vms);
void perf_chosen_stop(struct perf_chosen *p, uint32_t id);
int perf_chosen_state(struct perf_chosen *p, uint32_t id, uint64_t now_ms,
		      struct capture_event_state *out);
/* Limits the hits of all events together, per second and CPU; 0: no limit. */
void perf_chosen_limit(struct perf_chosen *p, uint32_t rate);

/* Open and close the rings of a CPU that comes online or goes offline. */
void perf_chosen_cpu_open(struct perf_chosen *p, size_t cpu);
void perf_chosen_cpu_close(struct perf_chosen *p, size_t cpu);
/* Reads all records of the rings into their queues. */
void perf_chosen_read(struct perf_chosen *p);
/* Appends the inputs to `out`, which has room for perf_chosen_n_inputs() pointers. They are
 * borrowed until an event is added or removed. Returns their number. */
size_t perf_chosen_n_inputs(const struct perf_chosen *p);
size_t perf_chosen_inputs(struct perf_chosen *p, struct perf_input **out);

/* Decides whether a hit, the first of its records, becomes an event. Called in the order of time.
 * followed: the thread that had the hit, if it is followed, else NULL. Sets *limited to the event
 * that reports the hits skipped before it; its type is 0 if there are none. */
bool perf_chosen_take(struct perf_chosen *p, const struct vs_event *hit,
		      const struct task *followed, struct vs_event *limited);

#endif
