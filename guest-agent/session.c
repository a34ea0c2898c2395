// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct echo_pending {
	uint32_t id;
	uint64_t received;
};

/* The number of answers of one kind in the second that began at begin_ms. */
struct answers {
	uint64_t begin_ms;
	unsigned int n;
};

struct session {
	struct session_options options;
	enum session_state state;
	uint64_t id, next_id;
	uint32_t frame_seq;
	bool hello_wanted;
	uint64_t hello_sent_ms;
	struct answers hellos, echo_answers;

	struct frame_reader reader;
	struct frame_unpacker *unpacker;
	struct frame_order order;
	struct message_hello *peer;
	struct message_config config;
	bool config_came;
	struct byte_buffer payload;

	struct echo_pending echoes[SESSION_ECHOES_MAX];
	size_t n_echoes, echo_at;

	struct session_stats stats;
	bool said_garbage, said_unexpected;
};

struct session *session_new(const struct session_options *options)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->options = *options;
	s->next_id = options->seed;
	frame_reader_init(&s->reader);
	s->unpacker = frame_unpacker_new();
	s->peer = malloc(sizeof(*s->peer));
	if (!s->unpacker || !s->peer) {
		session_free(s);
		return NULL;
	}
	return s;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	frame_reader_fini(&s->reader);
	frame_unpacker_free(s->unpacker);
	byte_buffer_fini(&s->payload);
	free(s->peer);
	free(s);
}

/* splitmix64: well spread ids from one random seed. */
static uint64_t session_id_next(struct session *s)
{
	uint64_t z = s->next_id += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* A new order of numbers, announced by a HELLO. */
static void session_renew(struct session *s)
{
	s->id = session_id_next(s);
	s->frame_seq = 0;
	s->hello_wanted = true;
	s->n_echoes = 0;
	s->config_came = false;
	s->stats.sessions++;
}

void session_begin(struct session *s)
{
	session_end(s);
	s->state = SESSION_GREETING;
	s->said_garbage = s->said_unexpected = false;
	session_renew(s);
}

void session_end(struct session *s)
{
	struct frame_reader_stats kept = s->reader.stats;

	s->state = SESSION_DOWN;
	s->n_echoes = 0;
	s->config_came = false;
	s->order = (struct frame_order){0};
	/* Half a frame of the old connection must not swallow the start of the next. */
	frame_reader_fini(&s->reader);
	frame_reader_init(&s->reader);
	s->reader.stats = kept;
}

enum session_state session_state(const struct session *s)
{
	return s->state;
}

uint64_t session_number(const struct session *s)
{
	return s->stats.sessions;
}

static void session_say(struct session *s, const char *line)
{
	if (s->options.say)
		s->options.say(s->options.context, line);
}

static int on_hello(struct session *s, const uint8_t *payload, size_t len, uint64_t received)
{
	char line[256];
	int err;

	(void)received;
	err = message_hello_unpack(payload, len, s->peer);
	if (err)
		return err;
	s->hello_wanted = true; /* whoever greets wants to hear us */
	if (s->peer->protocol_min <= VS_PROTOCOL_MAX && s->peer->protocol_max >= VS_PROTOCOL_MIN) {
		s->state = SESSION_OPEN;
		return 0;
	}
	if (s->state != SESSION_REFUSED) {
		snprintf(
			line, sizeof(line),
			"the host (vcpuscope %s) speaks protocol %" PRIu32 "..%" PRIu32
			", this agent %d..%d: install matching versions; sending nothing until then",
			s->peer->program_version, s->peer->protocol_min, s->peer->protocol_max,
			VS_PROTOCOL_MIN, VS_PROTOCOL_MAX);
		session_say(s, line);
	}
	s->state = SESSION_REFUSED;
	return 0;
}

static int on_echo_request(struct session *s, const uint8_t *payload, size_t len, uint64_t received)
{
	struct message_echo_request request;
	int err;

	err = message_echo_request_unpack(payload, len, &request);
	if (err)
		return err;
	/* Its HELLO may have been lost on the fresh connection; this is proof enough of a host. */
	if (s->state == SESSION_GREETING)
		s->state = SESSION_OPEN;
	if (s->n_echoes == SESSION_ECHOES_MAX) {
		s->stats.echoes_refused++;
		return 0;
	}
	s->echoes[(s->echo_at + s->n_echoes++) % SESSION_ECHOES_MAX] =
		(struct echo_pending){.id = request.id, .received = received};
	return 0;
}

static int on_config(struct session *s, const uint8_t *payload, size_t len, uint64_t received)
{
	struct message_config config;
	int err;

	(void)received;
	memset(&config, 0, sizeof(config));
	err = message_config_unpack(payload, len, &config);
	if (err)
		return err;
	s->config = config;
	s->config_came = true;
	s->stats.configs++;
	return 0;
}

static const struct {
	enum frame_kind kind;
	int (*handle)(struct session *s, const uint8_t *payload, size_t len, uint64_t received);
} handlers[] = {
	{FRAME_HELLO, on_hello},
	{FRAME_ECHO_REQUEST, on_echo_request},
	{FRAME_CONFIG, on_config},
};

static void frame_handle(struct session *s, const struct frame_view *frame, uint64_t received)
{
	const uint8_t *payload;
	char line[128];
	size_t len;

	if (s->order.started && s->order.session_id != frame->header.session_id &&
	    s->state != SESSION_GREETING) {
		/* Another host session on what looks like the same connection: the host came back.
		 */
		s->state = SESSION_GREETING;
		session_renew(s);
	}
	if (frame_order_check(&s->order, &frame->header) < 0) {
		s->stats.frames_replayed++;
		return;
	}
	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
		if (handlers[i].kind != frame->header.kind)
			continue;
		if (frame_unpack(s->unpacker, frame, &payload, &len) ||
		    handlers[i].handle(s, payload, len, received))
			s->stats.frames_malformed++;
		return;
	}
	s->stats.frames_unexpected++;
	if (!s->said_unexpected) {
		s->said_unexpected = true;
		snprintf(line, sizeof(line),
			 "ignoring frames of kind %u from the host: not known to this version",
			 frame->header.kind);
		session_say(s, line);
	}
}

int session_receive(struct session *s, const uint8_t *data, size_t len, uint64_t received)
{
	const struct frame_reader_stats *stats = &s->reader.stats;
	uint64_t skipped = stats->skipped_bytes;
	struct frame_view frame;
	char line[256];
	int err;

	if (s->state == SESSION_DOWN)
		return 0;
	err = frame_reader_push(&s->reader, data, len);
	if (err)
		return err;
	while (frame_reader_next(&s->reader, &frame) > 0)
		frame_handle(s, &frame, received);
	if (stats->skipped_bytes != skipped && !s->said_garbage) {
		s->said_garbage = true;
		snprintf(line, sizeof(line),
			 "skipped %" PRIu64
			 " bytes from the host that are no frame (so far %" PRIu64
			 " of another version, %" PRIu64 " bad checksums): is the peer vcpuscope?",
			 stats->skipped_bytes - skipped, stats->bad_version, stats->bad_crc);
		session_say(s, line);
	}
	return 0;
}

const struct message_config *session_config_take(struct session *s)
{
	if (!s->config_came || s->state != SESSION_OPEN)
		return NULL;
	s->config_came = false;
	return &s->config;
}

static bool answer_allowed(const struct answers *a, uint64_t now_ms, unsigned int per_second)
{
	return a->n < per_second || now_ms - a->begin_ms >= 1000;
}

static void answer_count(struct answers *a, uint64_t now_ms)
{
	if (!a->n || now_ms - a->begin_ms >= 1000)
		*a = (struct answers){.begin_ms = now_ms};
	a->n++;
}

bool session_hello_due(const struct session *s, uint64_t now_ms)
{
	if (s->state == SESSION_DOWN)
		return false;
	if (s->hello_wanted)
		return answer_allowed(&s->hellos, now_ms, SESSION_HELLOS_PER_S);
	return s->state == SESSION_GREETING && now_ms - s->hello_sent_ms >= SESSION_HELLO_MS;
}

bool session_hello_waits(const struct session *s)
{
	return s->hello_wanted;
}

int session_hello(struct session *s, const struct message_hello *hello, uint64_t now_ms,
		  struct byte_buffer *out)
{
	int err;

	s->hello_wanted = false;
	s->hello_sent_ms = now_ms;
	answer_count(&s->hellos, now_ms);
	s->payload.len = 0;
	err = message_hello_pack(hello, &s->payload);
	if (err)
		return err;
	return frame_write(s->options.writer, FRAME_HELLO, s->payload.data, s->payload.len, out);
}

bool session_echo_due(const struct session *s, uint64_t now_ms)
{
	return s->n_echoes > 0 && s->state != SESSION_DOWN &&
	       answer_allowed(&s->echo_answers, now_ms, SESSION_ECHOES_PER_S);
}

int session_echo(struct session *s, uint64_t now_ms, uint64_t now, struct byte_buffer *out)
{
	struct message_echo_reply reply = {
		.id = s->echoes[s->echo_at].id,
		.received = s->echoes[s->echo_at].received,
		.sent = now,
	};
	int err;

	s->echo_at = (s->echo_at + 1) % SESSION_ECHOES_MAX;
	s->n_echoes--;
	answer_count(&s->echo_answers, now_ms);
	s->payload.len = 0;
	err = message_echo_reply_pack(&reply, &s->payload);
	if (err)
		return err;
	err = frame_write(s->options.writer, FRAME_ECHO_REPLY, s->payload.data, s->payload.len,
			  out);
	if (!err)
		s->stats.echoes++;
	return err;
}

void session_stamp(struct session *s, uint8_t *frame)
{
	frame_restamp(frame, s->id, s->frame_seq++);
}

void session_stats_get(const struct session *s, struct session_stats *out)
{
	*out = s->stats;
	out->reader = s->reader.stats;
}
