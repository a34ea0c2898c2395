/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The agent: capture -> batches -> send queue -> channel, on one libuv loop.
 *
 * Every `interval_ms` a look at the kernel's rings decides whether to drain them into the queue: at
 * once if many events wait, with the next heartbeat otherwise, because few large batches cost less
 * than many small ones. Heartbeats and kernel log lines join the queue in order. Whatever makes the
 * channel writable, or brings an echo request, empties the queue as far as the kernel takes it.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "bpf/capture/capture.h"
#include "guest-agent/channel.h"
#include "guest-agent/limits.h"

enum { AGENT_HEARTBEAT_MS = 100 };

struct agent_options {
	struct channel_address address;
	uint64_t interval_ms;
	size_t backlog_bytes;
	uint64_t drain_events; /* waiting on one CPU: drain now */
	struct limits limits;  /* what a host may ask for; without EVENT_CLASS_KERNEL_LOG the
				* kernel's log stays here */
	uint32_t cpu_permille; /* budgets, see configurer.h; 0: none */
	uint64_t memory_bytes;
	/* One line for people, without a newline. */
	void (*say)(void *context, const char *line);
	/* May be NULL. False while a host that has just come is told all that waited for it, which
	 * is long work and not urgent; true otherwise. Called on change, first from agent_start. */
	void (*urgent)(void *context, bool urgent);
	void *context;
};

struct agent;

/* Starts on `loop`. `capture` is borrowed. 0 or -errno. */
int agent_start(uv_loop_t *loop, struct capture *capture, const struct agent_options *options,
		struct agent **out);
/* Drains once more, gives the host a moment to take what waits, then ends the loop's work. */
void agent_stop(struct agent *a);
/* Why the loop's work ended: 0 as asked, -ENODEV the port never appeared, other -errno. */
int agent_result(const struct agent *a);
/* After the loop has run dry. */
void agent_free(struct agent *a);

#endif
