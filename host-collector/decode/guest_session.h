/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs the host's side of the protocol with one agent: it takes received bytes and delivers frames.
 * It does no I/O and reads no clock; the caller supplies both.
 *
 * On a new connection the host sends HELLO, and repeats it every second until the agent has sent a
 * frame other than HELLO: the first message on a new virtio-serial connection may be lost, and an
 * agent that starts later has not received it. Echo requests start after the agent's HELLO.
 *
 * The session checks all input. It skips damaged frames, drops replayed frames, and refuses all
 * frames of an agent whose protocol version it does not support. It counts each of these and
 * reports the first of each kind with a note.
 */
#ifndef DECODE_GUEST_SESSION_H
#define DECODE_GUEST_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"
#include "proto/message.h"

struct guest_session;

struct guest_session_events {
	/* Delivers a valid frame of a supported protocol version, in order; also echo replies and
	 * frames of a kind that this version does not know. Borrowed during the call. */
	void (*frame)(void *context, const struct frame_view *frame, uint64_t arrival_tsc);
	/* Reports a round trip. The field `vm` is 0; the caller knows the VM. */
	void (*observation)(void *context, const struct message_echo_observation *observation);
	/* Reports that an agent introduced itself, for the first time or after a restart. */
	void (*hello)(void *context, const struct message_hello *hello);
	void (*heartbeat)(void *context, const struct message_heartbeat *heartbeat);
	/* Reports a message for the user; `text` fits a NOTE. */
	void (*note)(void *context, enum note_kind kind, const char *text);
	/* Sends without waiting. Stores the TSC that it read just before the send. Returns false if
	 * it did not send all bytes. */
	bool (*send)(void *context, const uint8_t *bytes, size_t len, uint64_t *sent_tsc);
	void *context;
};

struct guest_session_stats {
	uint64_t bytes, frames;  /* received bytes; valid frames */
	uint64_t damaged;        /* frames with a wrong CRC, size or version, or never completed */
	uint64_t skipped_bytes;  /* bytes skipped to find the next valid frame */
	uint64_t replayed, lost; /* frames, according to their sequence numbers */
	uint64_t refused;        /* frames of an unsupported protocol or unexpected kind */
	uint64_t echo_requests, echo_replies;
	uint64_t last_frame_ms; /* time of the last valid frame on this connection, ms; 0: none */
	bool hello_known;       /* the agent introduced itself on this connection */
	bool refusing;          /* the peer is not an agent or uses an unsupported protocol */
	uint64_t unanswered; /* requests that the session repeated without an answer and gave up */
};

/* Adds the counts of `more` to `sum`; copies last_frame_ms and the flags from `more`. */
void guest_session_stats_add(struct guest_session_stats *sum,
			     const struct guest_session_stats *more);

/* Allocates a session; copies `hello`, the host's greeting. Returns NULL if there is no memory. */
struct guest_session *guest_session_new(const struct message_hello *hello,
					const struct guest_session_events *events);
void guest_session_free(struct guest_session *s);
/* Requests this configuration (message_config.h; copied) from the current agent and from each later
 * one. If an agent does not support requests, the session reports a note. The agent's reply is
 * delivered as a frame. */
void guest_session_ask(struct guest_session *s, const struct message_config *config);
/* Starts a new connection: chooses a new session id and sends HELLO. Returns 0, -EIO (no random
 * number) or -ENOMEM. */
int guest_session_start(struct guest_session *s, uint64_t now_ms);
/* Processes bytes that arrived at `arrival_tsc`. Returns 0 or -ENOMEM. */
int guest_session_receive(struct guest_session *s, const uint8_t *data, size_t len,
			  uint64_t arrival_tsc, uint64_t now_ms);
/* Repeats HELLO and unanswered requests, sends echo requests, and abandons frames that stay
 * incomplete for 3 s. Call it every 50 ms while connected. */
void guest_session_tick(struct guest_session *s, uint64_t now_ms);
void guest_session_stats_get(const struct guest_session *s, struct guest_session_stats *out);

#endif
