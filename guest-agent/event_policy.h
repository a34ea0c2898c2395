/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which events a host may ask this guest for (Config.events), and how many hits of them. The
 *guest's owner writes it in a file with lines "KEY = VALUE"; '#' begins a comment:
 *
 *	allow = sched:* irq:*    tracepoints, as SYSTEM:NAME with the patterns of the shell
 *	kprobes = vfs_*          functions of the kernel; none by default
 *	strings = no             texts, such as names of tasks and files
 *	max_events = 16
 *	rate = 20000             hits per second and CPU, all events together
 *
 * A key that the file does not have keeps its default. It does not do I/O, except for
 * event_policy_read().
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

/* Sets what --help documents: tracepoints of the scheduler, interrupts, timers, workqueues, block
 * requests, power and RCU; no functions, no texts. */
void event_policy_default(struct event_policy *out);
/* Changes what the lines of `text`, which has no NUL, say. Returns 0, or -EINVAL with one line in
 * `why`. */
int event_policy_parse(struct event_policy *out, const char *text, size_t len, char *why,
		       size_t why_bytes);
/* Reads the file at `path` by event_policy_parse(). Returns 0, or with one line in `why` an
 * error: -EINVAL for the text, else the -errno of reading (-ENOENT: the file does not exist). */
int event_policy_read(struct event_policy *out, const char *path, char *why, size_t why_bytes);
/* Checks what a host asks for. `number`: how many events were allowed before this one. Returns
 * true, or false with the reason. An allowed event has a known kind, and names of letters, digits,
 * '_' and, of a function, '.'. */
bool event_policy_allows(const struct event_policy *p, const struct message_config_event *e,
			 size_t number, char why[EVENT_POLICY_WHY]);

#endif
