/* SPDX-License-Identifier: GPL-2.0-only */
/* Lists the triggers of the flight recorder other than stalls: one row for each, with its limit. */
#ifndef DAEMON_TRIGGER_H
#define DAEMON_TRIGGER_H

#include <stdint.h>

/*
 * X(NAME, "name", LIMIT, default, "meaning"). The name is also the key in the configuration and a
 * part of the folder's name. LIMIT is the unit of the limit:
 *
 *   LIMIT_TIME     nanoseconds; 0: never
 *   LIMIT_PERCENT  1 to 100; 0: never
 *   LIMIT_FLAG     1; 0: never
 */
#define TRIGGERS(X)                                                                                \
	X(BLOCKED, "blocked", LIMIT_TIME, 1000000000,                                              \
	  "a vCPU sleeps in the host while its guest wants to run")                                \
	X(RUNNABLE, "runnable", LIMIT_TIME, 1000000000,                                            \
	  "a vCPU waits for a pCPU or for its CPU quota")                                          \
	X(INTERRUPT, "interrupt", LIMIT_TIME, 500000000,                                           \
	  "an interrupt takes this long to its handler")                                           \
	X(STEAL, "steal", LIMIT_PERCENT, 50, "share of 10 s that a vCPU waited for a pCPU")        \
	X(GUEST_WATCHDOG, "guest_watchdog", LIMIT_FLAG, 1,                                         \
	  "the guest's log reports a lockup, an RCU stall or a hung task")                         \
	X(LIBVIRT_WATCHDOG, "libvirt_watchdog", LIMIT_FLAG, 1, "the watchdog device fired")        \
	X(LIBVIRT_PANIC, "libvirt_panic", LIMIT_FLAG, 1, "the guest panicked")                     \
	X(LIBVIRT_IO_ERROR, "libvirt_io_error", LIMIT_FLAG, 1, "an I/O error of a disk")           \
	X(PAIR, "pair", LIMIT_FLAG, 1, "a pair of events takes as long as its section says")

enum trigger {
#define X(NAME, ...) TRIGGER_##NAME,
	TRIGGERS(X)
#undef X
		TRIGGER_COUNT
};

enum trigger_limit { LIMIT_TIME, LIMIT_PERCENT, LIMIT_FLAG };

/* Returns the name, as in the configuration and in folder names. Static. */
const char *trigger_name(enum trigger t);
/* Returns the unit of the trigger's limit. */
enum trigger_limit trigger_limit_kind(enum trigger t);
/* Returns the trigger with this name, or -ENOENT. */
int trigger_find(const char *name);
/* Stores the default limits, TRIGGER_COUNT of them. */
void trigger_limits_default(uint64_t *limits);

#endif
