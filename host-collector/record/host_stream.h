/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes the host's stream: what the host's kernel did to the threads of the VMs, and what the
 * collector adds (which thread is which vCPU, stacks, round trips, notes), as frames with
 * consecutive numbers. It begins with HELLO and CLOCK_SAMPLE. Not thread-safe. */
#ifndef RECORD_HOST_STREAM_H
#define RECORD_HOST_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/capture/batcher.h"
#include "bpf/capture/capture_event.h"
#include "bpf/capture/capture_look.h"
#include "bpf/chosen/chosen_events.h"
#include "host-collector/record/stack_writer.h"
#include "host-collector/record/task_origins.h"
#include "proto/frame_item.h"
#include "proto/message.h"

struct host_stream;

struct host_stream_options {
	uint64_t wait_threshold_ns; /* longer waits get stacks; 0: the capture's default */
	uint32_t sample_hz;         /* stack samples of the threads per second; 0: none */
	/* Looks at the threads: the condition compiled, and as the user wrote it; borrowed until
	 * host_stream_open() returns. Not for a shared capture. NULL: none. */
	const struct capture_look *look;
	const char *look_when;
	enum capture_level level;    /* the level of every followed VM */
	enum backend_choice backend; /* backend; 0: BPF, or perf if BPF fails */
	/* Receives one frame, borrowed for the call. The sink must keep its own errors, and must
	 * not make a stream write that has the same `maker`. */
	void (*frame)(void *context, uint64_t tsc, struct frame_item *frame);
	void *context;
	/* The shared capture to join, borrowed. It gives no samples and has its own backend. NULL:
	 * open one. */
	struct capture_shared *shared;
	struct stack_names *names; /* names shared with other streams, borrowed; NULL: its own */
	/* Finds the cgroups and VMs of the host's tasks; shared, borrowed; NULL: its own. */
	struct task_origins *origins;
	/* Makes the frames; shared, borrowed; NULL: its own. So the memory in which frames are
	 * encoded and compressed stays in the CPU's cache from one stream to the next. */
	struct frame_maker *maker;
	uint64_t tsc_hz; /* TSC frequency of this machine; 0: measure it, which takes 20 ms */
	/* The events that the user chose, borrowed until host_stream_close(); NULL: none. */
	const struct chosen_events *events;
	/* Tasks that belong to no VM and whose hits are captured nevertheless; borrowed until
	 * host_stream_open() returns. Not for a shared capture. */
	const struct capture_watch *watches;
	size_t n_watches;
	/* source of events in tests; NULL: the capture */
	const struct batcher_source *source;
};

/* Attaches the capture and writes the beginning of the stream. Returns 0 or -errno with one line in
 * `why`: -EPERM (not root), -EOPNOTSUPP (not supported by this kernel). */
int host_stream_open(const struct host_stream_options *options, struct host_stream **out, char *why,
		     size_t why_bytes);
void host_stream_close(struct host_stream *h);
/* Return the name of the backend ("BPF", "perf"), and one line with the reason for this backend or
 * with what is missing, "" if there is none. Borrowed from the stream. */
const char *host_stream_backend(const struct host_stream *h);
const char *host_stream_notice(const struct host_stream *h);
/* Writes which tracepoints this kernel does not have, and what is lost by each; "" if it has all.
 * kvm: whether the VM runs under KVM. */
void host_stream_losses(const struct host_stream *h, bool kvm, char *out, size_t out_bytes);
/* Returns the reason why requested looks are not taken, or "". Borrowed. */
const char *host_stream_look_failed(const struct host_stream *h);
/* Returns whether at least one chosen event is captured. */
bool host_stream_has_events(const struct host_stream *h);
/* Returns lines about chosen events that could not be attached, "" if all were. Borrowed. */
const char *host_stream_events_failed(const struct host_stream *h);
/* Returns the stream's HELLO, which the link also sends to an agent. Borrowed from the stream. */
const struct message_hello *host_stream_hello(const struct host_stream *h);

/* Follows exactly the threads of `info`, of this VM, from now on and writes VM_INFO. The
 * threads of other VMs stay. Returns 0 or the first -errno; after the error of one thread it
 * still follows the others. A thread that has ended is no error. */
int host_stream_follow(struct host_stream *h, const struct message_vm_info *info);
/* Switches the level of all VMs, also for later calls of host_stream_follow(). Returns 0 or -errno;
 * -EOPNOTSUPP: the level needs BPF. */
int host_stream_level(struct host_stream *h, enum capture_level level);
/* Returns whether host_stream_drain() would write nothing; then it may be left out until the next
 * heartbeat. Always false if the capture is not shared. Cheap; takes a clock sample, so that later
 * events are converted as exactly as with a drain. */
bool host_stream_is_idle(struct host_stream *h);
/* Returns whether stacks wait for their names, which limits what a heartbeat can promise. Cheap. */
bool host_stream_holds(const struct host_stream *h);
/* Writes what happened since the last call. now_ms: any monotonic clock. Returns 0 or -errno. */
int host_stream_drain(struct host_stream *h, uint64_t now_ms);
/* Drains for the last time; waits up to 0.2 s for the names of stacks. Returns 0 or -errno. */
int host_stream_finish(struct host_stream *h, uint64_t now_ms);
/* Writes a heartbeat with the totals and the clock sample of the last drain. It promises that no
 * event older than that drain follows, or none older than the oldest stack that waits for its
 * names. Returns 0 or -errno. */
int host_stream_heartbeat(struct host_stream *h);
/* Each writes one message to the stream. Return 0 or -errno. */
int host_stream_note(struct host_stream *h, const struct message_note *note);
int host_stream_observation(struct host_stream *h, const struct message_echo_observation *o);
int host_stream_cpu_quota(struct host_stream *h, const struct message_cpu_quota *m);
int host_stream_kernel_log(struct host_stream *h, const struct message_kernel_log *m);
int host_stream_vm_clock(struct host_stream *h, const struct message_vm_clock *m);

struct host_stream_stats {
	struct batcher_totals events;
	uint64_t lost_shared; /* of `events`: dropped by the shared capture, of any VM */
	uint64_t missed;      /* events lost without a sequence number; not contained in `events` */
	struct stack_writer_stats stacks;
	bool kernel_names; /* false: the kernel hides its addresses */
	/* The chosen events, and how many hits of each became events; borrowed from the stream.
	 * NULL: none were chosen. */
	const struct message_user_events *chosen;
	const uint64_t *chosen_kept;
	uint64_t unwatched; /* see capture_event_unwatched() */
};
/* Returns the number of events that the capture emitted: stats.events.emitted. */
uint64_t host_stream_emitted(const struct host_stream *h);
/* Fills the statistics since host_stream_open(). */
void host_stream_stats_get(const struct host_stream *h, struct host_stream_stats *out);

#endif
