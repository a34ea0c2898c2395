/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The protocol with one host: bytes in, frames out; no I/O and no clock of its own.
 *
 * A connection begins with our HELLO, repeated every second until the host is heard (the first
 * message on a fresh virtio-serial connection can get lost). Until then nothing else is sent: a
 * backlog is worth more than a guess that somebody reads. A HELLO from another host session means
 * that the host reconnected without our noticing, which a port cannot tell us: we start a new
 * session too. Echo requests are answered ahead of everything queued.
 * Answers have a rate: a host that floods us with questions waits, and costs the guest little.
 *
 * Frames get their session id and number when they leave, not when they are made: they may wait
 * through several connections, or never leave.
 */
#ifndef AGENT_SESSION_H
#define AGENT_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buffer.h"
#include "proto/frame.h"
#include "proto/message.h"

enum {
	SESSION_ECHOES_MAX = 64, /* unanswered at a time; more are refused and counted */
	SESSION_HELLO_MS = 1000,
	/* Answers within a second, whoever asks how often. A collector asks for 20 echoes, and
	 * greets twice in a connection. */
	SESSION_HELLOS_PER_S = 30,
	SESSION_ECHOES_PER_S = 100,
};

enum session_state {
	SESSION_DOWN = 0,
	SESSION_GREETING, /* connected, the host not heard yet */
	SESSION_OPEN,
	SESSION_REFUSED, /* the host speaks no version of ours */
};

struct session_options {
	struct frame_writer *writer;                  /* borrowed */
	uint64_t seed;                                /* random; the session ids follow from it */
	void (*say)(void *context, const char *line); /* once per kind of trouble and connection */
	void *context;
};

struct session_stats {
	uint64_t sessions;
	uint64_t echoes, echoes_refused;
	uint64_t configs;
	uint64_t frames_replayed, frames_unexpected, frames_malformed;
	struct frame_reader_stats reader;
};

struct session;

struct session *session_new(const struct session_options *options); /* NULL on ENOMEM */
void session_free(struct session *s);

/* The channel came up; went down. */
void session_begin(struct session *s);
void session_end(struct session *s);
/* Bytes that arrived; `received` is the stream time read after they did. 0 or -ENOMEM. */
int session_receive(struct session *s, const uint8_t *data, size_t len, uint64_t received);
enum session_state session_state(const struct session *s);

/* The host's newest Config, once; NULL: none came since. Valid until the next session_receive. */
const struct message_config *session_config_take(struct session *s);

/* Should a HELLO go out now? now_ms: any monotonic clock. */
bool session_hello_due(const struct session *s, uint64_t now_ms);
/* Appends the HELLO frame, to be stamped like any other. 0 or -errno. */
int session_hello(struct session *s, const struct message_hello *hello, uint64_t now_ms,
		  struct byte_buffer *out);
/* A HELLO is owed, due or not: nothing else may go out before it. */
bool session_hello_waits(const struct session *s);
bool session_echo_due(const struct session *s, uint64_t now_ms);
/* Appends the oldest echo reply. `now`: stream time just before it is written. 0 or -errno. */
int session_echo(struct session *s, uint64_t now_ms, uint64_t now, struct byte_buffer *out);
/* Gives a whole frame this session's id and the next number; call once per frame, in the order of
 * writing. A frame that was stamped but not written by then needs it again: session_number()
 * differs from when it was stamped. */
void session_stamp(struct session *s, uint8_t *frame);
/* Counts the sessions begun; 0: none yet. */
uint64_t session_number(const struct session *s);

/* Since it was made, all sessions together. */
void session_stats_get(const struct session *s, struct session_stats *out);

#endif
