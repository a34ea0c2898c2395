/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The host's own stream: what this kernel did to the VMs' threads, and everything the collector
 * adds to it (which thread is what, stacks, round trips, notes), as frames in the order of their
 * numbers. It begins with HELLO and CLOCK_SAMPLE.
 */
#ifndef RECORD_HOST_STREAM_H
#define RECORD_HOST_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/capture/batcher.h"
#include "host-collector/record/stack_writer.h"
#include "host-collector/record/task_origins.h"
#include "proto/message.h"

struct host_stream;

struct host_stream_options {
	uint64_t wait_threshold_ns; /* waits longer than this bring stacks; 0: capture's default */
	uint32_t sample_hz; /* how often per second to look where their threads are; 0: never */
	enum capture_level level; /* of every VM that is followed */
	enum capture_way way;     /* BPF or perf; 0: whichever works */
	/* One whole frame; borrowed. An error of the sink's is the sink's to remember. */
	void (*frame)(void *context, uint64_t tsc, const uint8_t *frame, size_t len);
	void *context;
	/* The capture to take part in, borrowed; it gives no samples, and its `way` is its own.
	 * NULL: one of its own. */
	struct capture_shared *shared;
	struct stack_names *names; /* the same of those; NULL: its own */
	/* Of where the host's tasks come from, borrowed; NULL: its own. */
	struct task_origins *origins;
	uint64_t tsc_hz; /* of this machine; 0: not known yet: finding out takes 20 ms */
	/* Stands in for the kernel in tests; NULL: capture. */
	const struct batcher_source *source;
};

/* Attaches the capture and writes the stream's beginning. On error `why` receives one line: 0 or
 * -errno (-EPERM: not root, -EOPNOTSUPP: this kernel cannot). */
int host_stream_open(const struct host_stream_options *options, struct host_stream **out, char *why,
		     size_t why_bytes);
void host_stream_close(struct host_stream *h);
/* How the events are captured ("BPF", "perf"), and one line on why so or what is missing, "" if
 * there is nothing to say. Valid as long as the stream. */
const char *host_stream_backend(const struct host_stream *h);
const char *host_stream_notice(const struct host_stream *h);
/* What it said of itself; also what an agent is greeted with. */
const struct message_hello *host_stream_hello(const struct host_stream *h);

/* Follows exactly the threads of `info` (of this VM) from now on and writes VM_INFO. 0 or the
 * first -errno; the other threads are followed nevertheless. */
int host_stream_follow(struct host_stream *h, const struct message_vm_info *info);
/* Switches the level of every VM that is followed, now or later. 0 or -errno, -EOPNOTSUPP: this
 * level needs BPF. */
int host_stream_level(struct host_stream *h, enum capture_level level);
/* Writes what happened since the last call. now_ms: any steady clock. 0 or -errno. */
int host_stream_drain(struct host_stream *h, uint64_t now_ms);
/* The last drain: waits for the names of stacks, 0.2 s at most. */
int host_stream_finish(struct host_stream *h, uint64_t now_ms);
/* Promises that nothing older than the last drain follows (than the oldest stack that waits for its
 * names), with the totals and a clock sample. */
int host_stream_heartbeat(struct host_stream *h);
int host_stream_note(struct host_stream *h, const struct message_note *note);
int host_stream_observation(struct host_stream *h, const struct message_echo_observation *o);
int host_stream_cpu_quota(struct host_stream *h, const struct message_cpu_quota *m);
int host_stream_kernel_log(struct host_stream *h, const struct message_kernel_log *m);
int host_stream_vm_clock(struct host_stream *h, const struct message_vm_clock *m);

struct host_stream_stats {
	struct batcher_totals events;
	uint64_t lost_shared; /* of those dropped, by a shared capture: of whatever VM */
	uint64_t missed;      /* lost without a number: in none of those */
	struct stack_writer_stats stacks;
	bool kernel_names; /* false: kernel addresses are hidden from us */
};
/* Since it was opened. */
void host_stream_stats_get(const struct host_stream *h, struct host_stream_stats *out);

#endif
