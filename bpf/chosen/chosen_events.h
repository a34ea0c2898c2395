/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Resolves events that a user chose (`-e EVENT`, `events =`) for this machine: each becomes an
 * event that the capture can attach (capture_event.h) and its description (message_user_event). The
 * collector resolves the events of the host, the agent those that its host asks for.
 */
#ifndef CHOSEN_CHOSEN_EVENTS_H
#define CHOSEN_CHOSEN_EVENTS_H

#include <stddef.h>

#include "bpf/capture/capture_event.h"
#include "proto/message.h"
#include "proto/query/event_spec.h"
#include "proto/query/expr.h"

struct chosen_event {
	struct capture_event capture;
	struct message_user_event description; /* without id, state and counts */
};

struct chosen_events {
	size_t n;
	struct chosen_event events[VS_USER_EVENTS_MAX];
};

/* Resolves the events of `text`, separated by commas, and appends them. Their tracepoints and
 * functions must exist now. guest: the request to which events of guests are appended unchanged;
 * NULL: such events are refused. Returns 0; -ENOMEM; or, with *error, whose position is in `text`,
 * -EINVAL, -ENOENT (this kernel does not have the event), -E2BIG (too many events) or -EACCES. */
int chosen_events_add(struct chosen_events *c, struct message_config *guest, const char *text,
		      struct expr_error *error);

/* What the owner of this machine does not allow. */
struct chosen_limits {
	bool no_texts; /* no texts in fields or filters */
	/* No pointers in filters: comparisons would reveal their values. */
	bool no_pointers_compared;
};

/* Resolves a tracepoint or function of this kernel within `limits`. The spec in the description is
 * "". Returns as chosen_events_add(); -EPERM: the limits do not allow it. The position in *error
 * counts from the same place as event_spec.at. */
int chosen_kernel_event(const struct event_spec *spec, const struct chosen_limits *limits,
			struct chosen_event *out, struct expr_error *error);

#endif
