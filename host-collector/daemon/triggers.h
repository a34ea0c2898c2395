/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looks for the triggers (trigger.h) that can be seen in a VM's streams; the others come from whom
 * they name.
 *
 * A condition that lasts fires once: when it ends, or when it has lasted for TRIGGER_PATIENCE_NS,
 * so that what began it is still held. Steal fires again only after a time below its limit.
 */
#ifndef DAEMON_TRIGGERS_H
#define DAEMON_TRIGGERS_H

#include <stddef.h>
#include <stdint.h>

#include "host-collector/tables/activity.h"
#include "host-collector/daemon/trigger.h"
#include "host-collector/model/model.h"

/* The conditions of a vCPU are told while they last once they lasted this long. */
#define TRIGGER_PATIENCE_NS 10000000000ll
/* Steal is a share of this. */
#define TRIGGER_STEAL_NS 10000000000ll

/* One that fired. */
struct trigger_firing {
	enum trigger trigger;
	uint32_t vm;
	char text[256]; /* in one plain sentence; may hold what a guest wrote, not escaped */
};

struct triggers;

struct triggers_options {
	const uint64_t *limits; /* TRIGGER_COUNT; copied */
	void (*fired)(void *context, const struct trigger_firing *firing);
	void *context;
};

/* Subscribes to the model, which must not be fed any more once this is freed. NULL on ENOMEM. */
struct triggers *triggers_new(struct model *m, const struct triggers_options *options);
void triggers_free(struct triggers *t);
/* What the vCPUs did in the last `span_ns`. */
void triggers_activity(struct triggers *t, const struct activity_row *rows, size_t n,
		       int64_t span_ns);
/* A line of a guest's kernel log, in order; each once. */
void triggers_log(struct triggers *t, uint32_t vm, const char *line);

#endif
