/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decides over time which request of the host is in force. At most one request per second comes
 * into force. The owner's settings return when the host disconnects, or when a reconnected host
 * does not repeat its request within 2 s. If the agent exceeds its budget of CPU or memory, the
 * stack samples, looks and events that the host added are removed.
 *
 * It does no I/O and reads no clock.
 */
#ifndef AGENT_CONFIGURER_H
#define AGENT_CONFIGURER_H

#include <stdbool.h>
#include <stdint.h>

#include "guest-agent/limits.h"

enum {
	CONFIGURER_APPLY_MS = 1000,  /* shortest time between two requests that come into force */
	CONFIGURER_FORGET_MS = 2000, /* time in which a reconnected host must repeat its request */
	CONFIGURER_WINDOW_MS = 2000, /* interval over which CPU time is measured */
	/* Time without samples and events of the host after a budget was exceeded. */
	CONFIGURER_BUDGET_MS = 60000,
};

struct configurer_options {
	struct limits limits;
	uint32_t cpu_permille; /* 1/1000 of one CPU, for the whole agent; 0: no budget */
	uint64_t memory_bytes; /* resident memory; 0: no budget */
	/* Applies reply->in_force. May lower values that the capture does not support; then it
	 * adds the reason to the reply. */
	void (*apply)(void *context, struct message_config_reply *reply);
	void *context;
};

/* The agent's resource usage so far, and its connection. */
struct configurer_now {
	uint64_t ms; /* time of any monotonic clock, ms */
	bool host;   /* a host is connected */
	uint64_t session;
	uint64_t cpu_ns, memory_bytes;
};

struct configurer {
	struct configurer_options options;
	struct message_config asked; /* newest request */
	bool waiting;                /* `asked` is not in force yet */
	bool changed; /* a request of the host is in force instead of the owner's settings */
	bool over;    /* a budget was exceeded: samples and events of the host are off */
	bool measured;
	uint64_t applied_ms, over_ms, session, session_ms;
	uint64_t window_ms, window_cpu_ns;
	struct message_config_reply reply;
};

/* Initialises c without a request. Copies the options. c owns no memory. */
void configurer_init(struct configurer *c, const struct configurer_options *options);
/* Stores a copy of the host's request. It replaces a waiting request, which gets no reply. */
void configurer_ask(struct configurer *c, const struct message_config *asked);
/* Advances the configuration; call it every 100 ms or so. Returns a reply to send, complete except
 * for its time, or NULL. */
const struct message_config_reply *configurer_step(struct configurer *c,
						   const struct configurer_now *now);

#endif
