/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What makes the flight recorder keep what it holds, beside a stall: one row for each of TRIGGERS,
 * with its limit. Those that can be seen in a VM's streams are looked for here; the others
 * (TRIGGER_IS_EXTERNAL) come from whom they name.
 *
 * A condition that lasts fires once: when it ends, or when it has lasted for TRIGGER_PATIENCE_NS,
 * so that what began it is still held. Steal fires again only after a time below its limit.
 */
#ifndef ANALYZE_TRIGGERS_H
#define ANALYZE_TRIGGERS_H

#include <stddef.h>
#include <stdint.h>

#include "host-collector/analyze/activity.h"
#include "host-collector/model/model.h"

/* X(NAME, "name", LIMIT, by default, "meaning")
 * The name is also the configuration's key, and the folder's. LIMIT: how it is written there.
 *   LIMIT_TIME     nanoseconds; 0: never
 *   LIMIT_PERCENT  1 to 100; 0: never
 *   LIMIT_FLAG     1, or 0: never */
#define TRIGGERS(X)                                                                                \
	X(BLOCKED, "blocked", LIMIT_TIME, 1000000000,                                              \
	  "a vCPU sleeps in the host while its guest wants to run")                                \
	X(RUNNABLE, "runnable", LIMIT_TIME, 1000000000,                                            \
	  "a vCPU waits for a pCPU or for its CPU quota")                                          \
	X(INTERRUPT, "interrupt", LIMIT_TIME, 500000000,                                           \
	  "an interrupt takes this long to its handler")                                           \
	X(STEAL, "steal", LIMIT_PERCENT, 50, "share of 10 s that a vCPU waited for a pCPU")        \
	X(GUEST_WATCHDOG, "guest_watchdog", LIMIT_FLAG, 1,                                         \
	  "the guest's log tells of a lockup, a stall of RCU's or a hung task")                    \
	X(LIBVIRT_WATCHDOG, "libvirt_watchdog", LIMIT_FLAG, 1, "the watchdog device fired")        \
	X(LIBVIRT_PANIC, "libvirt_panic", LIMIT_FLAG, 1, "the guest panicked")                     \
	X(LIBVIRT_IO_ERROR, "libvirt_io_error", LIMIT_FLAG, 1, "an I/O error of a disk")

enum trigger {
#define X(NAME, ...) TRIGGER_##NAME,
	TRIGGERS(X)
#undef X
		TRIGGER_COUNT
};

enum trigger_limit { LIMIT_TIME, LIMIT_PERCENT, LIMIT_FLAG };

/* The conditions of a vCPU are told while they last once they lasted this long. */
#define TRIGGER_PATIENCE_NS 10000000000ll
/* Steal is a share of this. */
#define TRIGGER_STEAL_NS 10000000000ll

const char *trigger_name(enum trigger t);
/* How its limit is written. */
enum trigger_limit trigger_limit_kind(enum trigger t);
/* The one of this name, or -ENOENT. */
int trigger_find(const char *name);
/* The limits by default, TRIGGER_COUNT of them. */
void trigger_limits_default(uint64_t *limits);

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
