/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The link to one guest's agent: connects (or listens), comes back with a growing delay, stamps
 * what arrives and what leaves with the TSC, and runs the protocol (guest_session.h) on it.
 *
 * Memory is bounded by one largest frame each way; whoever floods the link is read at most
 * 256 KiB per turn of the loop.
 */
#ifndef LINK_LINK_H
#define LINK_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "host-collector/link/address.h"
#include "host-collector/link/guest_session.h"

enum link_state {
	LINK_DOWN,    /* nobody serves the socket; dialling again */
	LINK_SILENT,  /* connected, nothing heard yet */
	LINK_TALKING, /* the agent introduced itself */
	LINK_REFUSED, /* what talks there is of another protocol */
};

struct link_events {
	/* As in guest_session.h. */
	void (*frame)(void *context, const struct frame_view *frame, uint64_t arrival_tsc);
	void (*observation)(void *context, const struct message_echo_observation *observation);
	void (*hello)(void *context, const struct message_hello *hello);
	void (*heartbeat)(void *context, const struct message_heartbeat *heartbeat);
	/* Comings and goings too; one plain line. */
	void (*note)(void *context, enum note_kind kind, const char *text);
	void *context;
};

struct guest_link;

/* hello: ours. Nothing is called back before the loop runs. 0 or -errno (a listening address that
 * cannot be bound; an address to connect to may come later). */
int guest_link_open(uv_loop_t *loop, const struct link_address *address,
		    const struct message_hello *hello, const struct link_events *events,
		    struct guest_link **out);
/* Uses a connected descriptor, which it owns, and does not dial again. For tests. */
int guest_link_open_fd(uv_loop_t *loop, int fd, const struct message_hello *hello,
		       const struct link_events *events, struct guest_link **out);
/* Calls nothing back any more; memory is freed when the loop has run once more. */
void guest_link_close(struct guest_link *l);

struct guest_link_stats {
	enum link_state state;
	uint64_t connections; /* so far */
	struct guest_session_stats session;
};
void guest_link_stats_get(const struct guest_link *l, struct guest_link_stats *out);

#endif
