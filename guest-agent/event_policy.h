/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decides which events a host may ask this guest for (Config.events), and how many hits of them.
 * The guest's owner writes the policy in a file with lines "KEY = VALUE"; '#' begins a comment:
 *
 *	allow = sched:* irq:*    tracepoints, as SYSTEM:NAME with the patterns of the shell
 *	kprobes = vfs_*          functions of the kernel; none by default
 *	strings = no             texts, such as names of tasks and files
 *	max_events = 16
 *	rate = 20000             hits per second and CPU, all events together
 *
 * A key that is not in the file keeps its default. Only event_policy_read() does I/O.
 */
#ifndef AGENT_EVENT_POLICY_H
#define AGENT_EVENT_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message_config.h"

enum { EVENT_POLICY_PATTERNS_MAX = 64, EVENT_POLICY_PATTERN_BYTES = 96, EVENT_POLICY_WHY = 128 };

struct event_patterns {
	size_t n;
	char items[EVENT_POLICY_PATTERNS_MAX][EVENT_POLICY_PATTERN_BYTES];
};

struct event_policy {
	struct event_patterns tracepoints, kprobes;
	bool texts;
	uint32_t max_events; /* at most VS_CONFIG_EVENTS_MAX */
	uint32_t rate;       /* hits per second and CPU, all events together; not 0 */
};

#define EVENT_POLICY_PATH "/etc/vcpuscope/agent.conf"

/* Sets the defaults that --help documents: tracepoints of the scheduler, interrupts, timers,
 * workqueues, block requests, power and RCU; no functions, no texts. */
void event_policy_default(struct event_policy *out);
/* Applies the lines of `text`, of `len` bytes without a NUL. Returns 0, or -EINVAL with one line in
 * `why`. */
int event_policy_parse(struct event_policy *out, const char *text, size_t len, char *why,
		       size_t why_bytes);
/* Reads the file at `path` and applies it as event_policy_parse() does. Returns 0, or -errno with
 * one line in `why`: -EINVAL if the text is wrong, -ENOENT if the file does not exist, or another
 * error of reading it. */
int event_policy_read(struct event_policy *out, const char *path, char *why, size_t why_bytes);
/* Checks an event that a host requests. `number`: number of events that were allowed before it.
 * Returns true, or false with the reason in `why`. An allowed event has a known kind. Its names
 * consist of letters, digits and '_'; a function's name may also contain '.'. */
bool event_policy_allows(const struct event_policy *p, const struct message_config_event *e,
			 size_t number, char why[EVENT_POLICY_WHY]);

#endif
