/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a host may have from this guest's agent: the owner's settings and maxima against a host's
 * Config. Nothing here acts; it only decides, so that a host's bytes meet one small function.
 *
 * A host can take away from what the owner has told (events, short handlers, tasks, stacks), and
 * have stacks up to the owner's maximum. It can turn on nothing that the owner turned off.
 */
#ifndef AGENT_LIMITS_H
#define AGENT_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/message_config.h"

enum { LIMITS_HANDLER_OVER_NS = 100000 }; /* at level summary without a threshold */

struct limits {
	bool no_host_config;    /* the host's wishes are refused, all of them */
	uint64_t classes;       /* bits of enum event_class: told at all */
	uint32_t sample_hz;     /* without being asked; 0 none */
	uint32_t sample_hz_max; /* when asked; at least sample_hz */
	/* Above 0: level summary, whoever asks, with this threshold or a higher one. */
	uint64_t handler_over_ns;
	uint32_t fields; /* bits of enum config_field that the capture can change */
};

/* What is in force while no host asks for anything else. */
void limits_default(const struct limits *l, struct message_config *out);
/* What comes into force of `asked`, and what does not and why; all of `reply` but its time. */
void limits_apply(const struct limits *l, const struct message_config *asked,
		  struct message_config_reply *reply);
/* Adds a line to the reply, if there is room for it. */
void limits_say(struct message_config_reply *reply, uint32_t field, enum config_reason reason,
		const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
