/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The protocol with one host: the caller passes in received bytes and fetches frames to send. It
 * does no I/O and reads no clock.
 *
 * A connection begins with the agent's HELLO. The agent repeats it every second until a HELLO or
 * an echo request of the host arrives, because the first message on a new virtio-serial connection
 * can get lost. Until then the agent sends nothing else and keeps its backlog.
 *
 * A port does not show that the host has reconnected. A frame of another host session shows it;
 * then the agent starts a new session, too.
 *
 * Echo replies precede all queued frames. HELLO frames and echo replies have a rate limit, so a
 * host that floods the agent with requests costs the guest little.
 *
 * A frame gets its session id and number when it is sent, not when it is made: it may wait through
 * several connections.
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
	SESSION_ECHOES_MAX = 64, /* waiting for a reply at a time; more are refused and counted */
	SESSION_HELLO_MS = 1000,
	/* Limits of answers per second. A collector sends at most 20 echo requests per second and
	 * two HELLOs per connection. */
	SESSION_HELLOS_PER_S = 30,
	SESSION_ECHOES_PER_S = 100,
};

enum session_state {
	SESSION_DOWN = 0,
	SESSION_GREETING, /* connected; no HELLO or echo request of the host yet */
	SESSION_OPEN,
	SESSION_REFUSED, /* no common protocol version */
};

struct session_options {
	struct frame_writer *writer; /* borrowed */
	uint64_t seed;               /* random; session ids are derived from it */
	/* Logs a line, once per kind of problem and connection. */
	void (*say)(void *context, const char *line);
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

/* Returns NULL if out of memory. Copies the options. */
struct session *session_new(const struct session_options *options);
void session_free(struct session *s);

/* Report that the channel came up and went down. */
void session_begin(struct session *s);
void session_end(struct session *s);
/* Parses received bytes. received: stream time read after they arrived. Returns 0 or -ENOMEM. */
int session_receive(struct session *s, const uint8_t *data, size_t len, uint64_t received);
enum session_state session_state(const struct session *s);

/* Returns the host's newest Config once, NULL if there is no new one. Valid until the next
 * session_receive(). */
const struct message_config *session_config_take(struct session *s);

/* Returns true if a HELLO should be sent now. now_ms: time of any monotonic clock, ms. */
bool session_hello_due(const struct session *s, uint64_t now_ms);
/* Appends the HELLO frame to `out`. Pass it to session_stamp() before sending. Returns 0 or
 * -errno. */
int session_hello(struct session *s, const struct message_hello *hello, uint64_t now_ms,
		  struct byte_buffer *out);
/* Returns true if a HELLO waits, even if the rate limit delays it. Send nothing else before it. */
bool session_hello_waits(const struct session *s);
/* Returns true if an echo reply should be sent now. */
bool session_echo_due(const struct session *s, uint64_t now_ms);
/* Appends the oldest echo reply. now: stream time right before it is sent. Returns 0 or -errno. */
int session_echo(struct session *s, uint64_t now_ms, uint64_t now, struct byte_buffer *out);
/* Sets the session id and the next number of a complete frame. Call it once per frame, in the
 * order of sending. If session_number() changes before the first byte is sent, call it again. */
void session_stamp(struct session *s, uint8_t *frame);
/* Returns the number of sessions that have begun; 0: none yet. */
uint64_t session_number(const struct session *s);

/* Returns the totals of all sessions since session_new(). */
void session_stats_get(const struct session *s, struct session_stats *out);

#endif
