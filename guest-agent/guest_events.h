/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Handles the events that a host requested: resolves them on this kernel, within the owner's
 * policy, attaches them, and describes them to the host. Pointers are hashed before they leave the
 * guest (pointer_hash.h).
 *
 * All events together have a limit of hits per second and CPU. If for 2 s more hits exceed the
 * limit than stay within it, the event with the most hits is detached, and its description says
 * so.
 */
#ifndef AGENT_GUEST_EVENTS_H
#define AGENT_GUEST_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/capture/capture_event.h"
#include "guest-agent/event_policy.h"
#include "proto/event.h"
#include "proto/message.h"

enum {
	GUEST_EVENTS_CHECK_MS = 1000,
	GUEST_EVENTS_AGAIN_MS = 10000, /* then the descriptions are sent again, for late readers */
	GUEST_EVENTS_FLOODED = 2, /* number of checks in a row after which an event is detached */
	GUEST_EVENTS_HIT_COST_NS = 300,
};

/* The functions of a capture that guest_events uses (capture_event.h). Tests replace them. */
struct guest_events_source {
	int (*add)(void *context, const struct capture_event *event, uint32_t *id);
	int (*state)(void *context, uint32_t id, uint64_t now_ms, struct capture_event_state *out);
	void (*remove)(void *context, uint32_t id);
	void *context;
};

struct guest_events;

/* Limits the hits of `c` to the policy's rate. Borrows `c`, copies `policy`. Returns 0, -ENOMEM or
 * -EIO (no random numbers). */
int guest_events_new(const struct event_policy *policy, struct capture *c,
		     struct guest_events **out);
int guest_events_new_from(const struct event_policy *policy,
			  const struct guest_events_source *source, struct guest_events **out);
void guest_events_free(struct guest_events *g); /* NULL is allowed */
/* Captures exactly the events of `asked` that the policy and this kernel allow. An event that was
 * captured before stays attached. */
void guest_events_set(struct guest_events *g, const struct message_config *asked);
/* Detaches all events; `why` becomes the reason in their descriptions. */
void guest_events_stop(struct guest_events *g, const char *why);
/* Checks limits; call it every 100 ms or so. Returns the descriptions if `session` has not received
 * their current version, else NULL. Valid until the next call. */
const struct message_user_events *guest_events_step(struct guest_events *g, uint64_t now_ms,
						    uint64_t session);
/* Hashes the pointers in hits (batcher_rewrite()). context: the struct guest_events. */
void guest_events_hash(void *context, struct vs_event *events, size_t n);
/* Returns the number of hits so far, also of those above the limit. Each costs the guest about
 * GUEST_EVENTS_HIT_COST_NS where it happens. */
uint64_t guest_events_hits(const struct guest_events *g);

#endif
