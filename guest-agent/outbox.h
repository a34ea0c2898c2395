/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chooses the next frame to send: first HELLO, then echo replies, then the send queue. It sends one
 * complete frame after the other. If the connection ends in the middle of a frame, the frame is
 * lost. If that frame came from the queue, it is reported as dropped. A frame from the queue is
 * kept for the next connection if none of its bytes was written.
 */
#ifndef AGENT_OUTBOX_H
#define AGENT_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest-agent/channel.h"
#include "guest-agent/send_queue.h"
#include "guest-agent/session.h"

struct outbox_events {
	/* Appends the HELLO frame (session_hello()) to `out`. Returns 0 or -errno. */
	int (*hello)(void *context, uint64_t now_ms, struct byte_buffer *out);
	/* Reports a frame from the queue that was lost because its connection ended. */
	send_queue_dropped dropped;
	void *context;
};

struct outbox {
	struct session *session;  /* borrowed */
	struct send_queue *queue; /* borrowed */
	struct outbox_events events;
	struct byte_buffer frame; /* the frame that is being sent */
	size_t written;
	uint64_t stamped; /* session_number() at its session_stamp(); 0: not stamped yet */
	bool queued;      /* the frame came from the queue */
	struct send_item item;
};

void outbox_init(struct outbox *o, struct session *session, struct send_queue *queue,
		 const struct outbox_events *events);
void outbox_fini(struct outbox *o);
/* Writes as much as the channel accepts, up to a limit after which the loop can do other work. */
void outbox_pump(struct outbox *o, struct channel *channel, uint64_t now_ms);
/* Handles the end of a connection. Call it after session_end(). */
void outbox_cut(struct outbox *o);
/* Returns true if a frame or the rest of one waits. */
bool outbox_waits(const struct outbox *o);

#endif
