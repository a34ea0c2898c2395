/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checks the triggers (trigger.h) that a VM's streams can show. libvirt reports the others.
 *
 * A condition of a vCPU fires once: when it ends, or while it continues, as soon as it has lasted
 * TRIGGER_PATIENCE_NS, so that the flight recorder still holds its beginning. Steal fires again
 * only after an interval below the limit.
 */
#ifndef DAEMON_TRIGGERS_H
#define DAEMON_TRIGGERS_H

#include <stddef.h>
#include <stdint.h>

#include "host-collector/tables/activity.h"
#include "host-collector/daemon/trigger.h"
#include "host-collector/model/model.h"

/* A condition that has lasted this long fires before it ends. */
#define TRIGGER_PATIENCE_NS 10000000000ll
/* The interval of which steal is a share. */
#define TRIGGER_STEAL_NS 10000000000ll

/* A trigger that fired. */
struct trigger_firing {
	enum trigger trigger;
	uint32_t vm;
	char text[256]; /* one sentence; may contain text from the guest, not escaped */
};

struct triggers;

struct triggers_options {
	const uint64_t *limits; /* TRIGGER_COUNT limits; copied */
	void (*fired)(void *context, const struct trigger_firing *firing);
	void *context;
};

/* Allocates the triggers and subscribes to the model, which must not receive events after
 * triggers_free(). Returns NULL if there is no memory. */
struct triggers *triggers_new(struct model *m, const struct triggers_options *options);
void triggers_free(struct triggers *t);
/* Checks the vCPUs' activity of the last span_ns. */
void triggers_activity(struct triggers *t, const struct activity_row *rows, size_t n,
		       int64_t span_ns);
/* Checks one line of a guest's kernel log. Call it once for each line, in order. */
void triggers_log(struct triggers *t, uint32_t vm, const char *line);

#endif
