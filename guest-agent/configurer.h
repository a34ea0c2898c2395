/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What of the host's wishes is in force, over time: one Config per second comes into force at most,
 * a new host has the owner's settings again, and when the agent's budget of CPU or memory is used
 * up, what a host added goes first. No I/O and no clock of its own.
 */
#ifndef AGENT_CONFIGURER_H
#define AGENT_CONFIGURER_H

#include <stdbool.h>
#include <stdint.h>

#include "guest-agent/limits.h"

enum {
	CONFIGURER_APPLY_MS = 1000,   /* between two Configs that come into force */
	CONFIGURER_FORGET_MS = 2000,  /* a host that came back has so long to ask again */
	CONFIGURER_WINDOW_MS = 2000,  /* over which CPU time is measured */
	CONFIGURER_BUDGET_MS = 60000, /* nothing is added so long after a budget was used up */
};

struct configurer_options {
	struct limits limits;
	uint32_t cpu_permille; /* of one CPU, for all that the agent does; 0: no budget */
	uint64_t memory_bytes; /* resident; 0: no budget */
	/* Brings it into force; may lower what cannot be had, and say so in the reply. */
	void (*apply)(void *context, struct message_config_reply *reply);
	void *context;
};

/* What the agent has used so far, and its connection. */
struct configurer_now {
	uint64_t ms; /* any monotonic clock */
	bool host;   /* somebody is there */
	uint64_t session;
	uint64_t cpu_ns, memory_bytes;
};

struct configurer {
	struct configurer_options options;
	struct message_config asked; /* the newest */
	bool waiting;                /* it is not in force yet */
	bool changed;                /* the host's wishes are in force, not the owner's */
	bool over;                   /* a budget was used up; nothing is added */
	bool measured;
	uint64_t applied_ms, over_ms, session, session_ms;
	uint64_t window_ms, window_cpu_ns;
	struct message_config_reply reply;
};

/* Nothing was asked yet. Copies the options, owns nothing. */
void configurer_init(struct configurer *c, const struct configurer_options *options);
/* The host asked; copied. One that waited is forgotten: it gets no answer. */
void configurer_ask(struct configurer *c, const struct message_config *asked);
/* Call it every 100 ms or so. The reply to send, but for its time; NULL: none. */
const struct message_config_reply *configurer_step(struct configurer *c,
						   const struct configurer_now *now);

#endif
