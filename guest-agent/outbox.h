/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What goes out next: greetings, then answers to echo requests, then the queue, one whole frame
 * after the other. Only the frame on the wire may be half written; if the connection ends then, it
 * is lost and, if it came from the queue, told as dropped. A frame of the queue of which nothing
 * was written is kept for the next connection.
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
	/* Appends the HELLO frame (session_hello) to `out`. 0 or -errno. */
	int (*hello)(void *context, uint64_t now_ms, struct byte_buffer *out);
	/* A frame of the queue was cut in two by the end of its connection. */
	send_queue_dropped dropped;
	void *context;
};

struct outbox {
	struct session *session;  /* borrowed */
	struct send_queue *queue; /* borrowed */
	struct outbox_events events;
	struct byte_buffer frame; /* on the wire */
	size_t written;
	uint64_t stamped; /* session_number() when it was, 0: not yet */
	bool queued;      /* it came from the queue */
	struct send_item item;
};

void outbox_init(struct outbox *o, struct session *session, struct send_queue *queue,
		 const struct outbox_events *events);
void outbox_fini(struct outbox *o);
/* Writes what the channel takes now, up to a bound after which the loop has its turn. */
void outbox_pump(struct outbox *o, struct channel *channel, uint64_t now_ms);
/* The connection ended; call it behind session_end(). */
void outbox_cut(struct outbox *o);
/* Does anything wait to go out? */
bool outbox_waits(const struct outbox *o);

#endif
