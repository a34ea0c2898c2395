/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The host's side of the protocol with one agent: bytes in, frames out; no I/O and no clock of its
 * own.
 *
 * A connection begins with our HELLO, repeated every second until the agent has sent something
 * other than its own HELLO (the first message on a fresh virtio-serial connection can get lost, and
 * an agent that starts later has not heard the first). Echo requests begin with the agent's HELLO.
 * Whatever a guest sends is checked: damaged bytes cost the damaged frames, replayed frames are
 * dropped, an agent of another protocol is refused as a whole; all of it is counted and said once.
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
	/* A good frame, in order, of a protocol we speak; echo replies too. Borrowed. */
	void (*frame)(void *context, const struct frame_view *frame, uint64_t arrival_tsc);
	/* A round trip (vm is 0: the caller knows). */
	void (*observation)(void *context, const struct message_echo_observation *observation);
	/* The agent introduced itself, for the first time or anew. */
	void (*hello)(void *context, const struct message_hello *hello);
	void (*heartbeat)(void *context, const struct message_heartbeat *heartbeat);
	/* Something a person should know; text fits a NOTE. */
	void (*note)(void *context, enum note_kind kind, const char *text);
	/* Sends now or not at all; *sent_tsc: read just before. False if it did not go out whole.
	 */
	bool (*send)(void *context, const uint8_t *bytes, size_t len, uint64_t *sent_tsc);
	void *context;
};

struct guest_session_stats {
	uint64_t bytes, frames;  /* received; frames: good ones */
	uint64_t damaged;        /* frames with wrong CRC, size or version, or never completed */
	uint64_t skipped_bytes;  /* passed over to find the next good frame */
	uint64_t replayed, lost; /* frames, by their numbers */
	uint64_t refused;        /* frames of a protocol we do not speak, or of no known meaning */
	uint64_t echo_requests, echo_replies;
	uint64_t last_frame_ms; /* when the last good frame came; 0: none on this connection */
	bool hello_known;       /* on this connection */
	bool refusing;          /* who talks there is of another protocol */
	uint64_t unanswered;    /* of our wishes: given up */
};

/* Counts of several sessions together; what is no count comes from `more`. */
void guest_session_stats_add(struct guest_session_stats *sum,
			     const struct guest_session_stats *more);

/* hello: ours, copied. NULL on ENOMEM. */
struct guest_session *guest_session_new(const struct message_hello *hello,
					const struct guest_session_events *events);
void guest_session_free(struct guest_session *s);
/* What each agent is asked for from now on (message_config.h; copied), if it takes such wishes;
 * else a note says that it does not. Its reply comes as a frame. */
void guest_session_ask(struct guest_session *s, const struct message_config *config);
/* A connection came up: a new session id, HELLO goes out. 0 or -errno (no randomness, ENOMEM). */
int guest_session_start(struct guest_session *s, uint64_t now_ms);
/* Bytes that arrived at `arrival_tsc`. 0 or -ENOMEM. */
int guest_session_receive(struct guest_session *s, const uint8_t *data, size_t len,
			  uint64_t arrival_tsc, uint64_t now_ms);
/* Call every 50 ms while connected: repeats HELLO, sends echo requests, gives up on torn frames. */
void guest_session_tick(struct guest_session *s, uint64_t now_ms);
void guest_session_stats_get(const struct guest_session *s, struct guest_session_stats *out);

#endif
