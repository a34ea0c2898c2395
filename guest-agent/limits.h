/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checks a host's request (Config) against the settings and limits of the guest's owner. It decides
 * only and applies nothing, so one small module handles the values that a host chose.
 *
 * A host can remove what the owner allows (events, short handlers, tasks, stacks), can raise the
 * sample rate up to the owner's maximum, and can request events, which event_policy.h checks. It
 * cannot switch on what the owner switched off.
 */
#ifndef AGENT_LIMITS_H
#define AGENT_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/message_config.h"

enum { LIMITS_HANDLER_OVER_NS = 100000 }; /* threshold at level summary if the owner set none */

struct limits {
	bool no_host_config; /* refuses all requests of the host */
	uint64_t classes;    /* bits of enum event_class: classes that may be sent */
	uint32_t sample_hz;  /* sample rate without a request; 0: none */
	/* Largest rate that a host may request, also of the ticks of looks; at least sample_hz. */
	uint32_t sample_hz_max;
	bool texts; /* the condition of looks may compare texts */
	/* If above 0: level summary always, with this threshold or a higher one. */
	uint64_t handler_over_ns;
	uint32_t fields; /* bits of enum config_field: what the capture can change */
};

/* Fills `out` with the owner's settings. They are in force while no host requests anything else. */
void limits_default(const struct limits *l, struct message_config *out);
/* Fills `reply`, except for its time: the part of `asked` that comes into force, and the reasons
 * for the rest. */
void limits_apply(const struct limits *l, const struct message_config *asked,
		  struct message_config_reply *reply);
/* Adds a line to the reply. Drops it if the reply is full. */
void limits_say(struct message_config_reply *reply, uint32_t field, enum config_reason reason,
		const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Returns the reply's first line about a field, or NULL if the reply has no line about it. */
const char *limits_text(const struct message_config_reply *reply, uint32_t field);

#endif
