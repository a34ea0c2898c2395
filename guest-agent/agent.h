/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The agent: capture -> batches -> send queue -> channel, on one libuv loop.
 *
 * Every `interval_ms` the agent checks how full the kernel's rings are; less often while few events
 * come, as far as the rings would hold a flood that begins at once. It drains them into the send
 * queue at once if many events wait, else at the next heartbeat, because a few large batches cost
 * less than many small ones. Heartbeats and lines of the kernel's log enter the same queue in
 * order. When the channel becomes writable or an echo request arrives, the agent sends from the
 * queue until the channel is full.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "bpf/capture/capture.h"
#include "guest-agent/channel.h"
#include "guest-agent/event_policy.h"
#include "guest-agent/limits.h"

enum { AGENT_HEARTBEAT_MS = 100 };

struct agent_options {
	struct channel_address address;
	uint64_t interval_ms;
	size_t backlog_bytes;
	uint64_t drain_events; /* events waiting on one CPU that cause a drain at once */
	struct limits limits;  /* without EVENT_CLASS_KERNEL_LOG the kernel's log is not sent */
	struct event_policy events; /* which events the host may ask for */
	uint32_t cpu_permille; /* budget of CPU (see configurer.h), 1/1000 of one CPU; 0: none */
	uint64_t memory_bytes; /* budget of memory; 0: none */
	/* Logs one line of text, passed without a newline. */
	void (*say)(void *context, const char *line);
	/* Reports whether the agent's work is urgent. May be NULL. After a host has connected, the
	 * agent sends it the backlog: this is long work and not urgent. All other work is urgent.
	 * agent_start() calls it once, later the agent calls it on each change. */
	void (*urgent)(void *context, bool urgent);
	void *context;
};

struct agent;

/* Starts the agent on `loop`. `capture` is borrowed. Returns 0 or -errno. */
int agent_start(uv_loop_t *loop, struct capture *capture, const struct agent_options *options,
		struct agent **out);
/* Drains the rings once more, waits up to 300 ms until the host has taken the queue, then closes
 * the agent's handles in the loop. */
void agent_stop(struct agent *a);
/* Returns why the agent ended: 0 after agent_stop(), -ENODEV if the port never appeared, another
 * -errno. */
int agent_result(const struct agent *a);
/* Call it after uv_run() has returned. Accepts NULL. */
void agent_free(struct agent *a);

#endif
