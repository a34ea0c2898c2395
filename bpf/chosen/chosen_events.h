/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The host events that a user chose (`-e EVENT`, `events =`), resolved for this machine: each
 * becomes an event that the capture can attach (capture_event.h) and its description
 * (message_user_event). host_stream.h attaches them and sends the descriptions.
 */
#ifndef CHOSEN_CHOSEN_EVENTS_H
#define CHOSEN_CHOSEN_EVENTS_H

#include <stddef.h>

#include "bpf/capture/capture_event.h"
#include "proto/query/expr.h"
#include "proto/message.h"

struct chosen_event {
	struct capture_event capture;
	struct message_user_event description; /* without id, state and counts */
};

struct chosen_events {
	size_t n;
	struct chosen_event events[VS_USER_EVENTS_MAX];
};

/* Resolves the events of `text`, separated by commas, and appends them. Their tracepoints and
 * functions must exist now. Returns 0; -ENOMEM; or -EINVAL, -ENOENT (this kernel does not have it),
 * -E2BIG (too many events) or -EACCES with *error, whose position is in `text`. */
int chosen_events_add(struct chosen_events *c, const char *text, struct expr_error *error);

#endif
