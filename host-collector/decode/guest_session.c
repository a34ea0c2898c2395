/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/decode/guest_session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
	HELLO_REPEAT_MS = 1000,
	ECHO_FAST_MS = 50,  /* for the first two seconds: the map is wanted soon */
	ECHO_SLOW_MS = 200, /* then: enough to follow drift */
	/* since the last request, after a batch: live, its events wait for a round trip */
	ECHO_BUSY_MS = 100,
	ECHO_FAST_FOR_MS = 2000,
	ECHO_WAITING_MAX = 64, /* requests without a reply yet; older ones are given up */
	TORN_FRAME_MS = 3000,
	CONFIG_REPEAT_MS = 2000, /* an agent takes one a second */
	CONFIG_TRIES = 5,
	/* Frames of descriptions per second: an agent sends one when something changed, which a
	 * request or a flood can cause, each once a second, and one at a session's begin. */
	DESCRIPTIONS_PER_S = 8,
	NEWER_FIELDS = 2, /* fields of a Config that not every agent knows */
};

struct echo_waiting {
	uint32_t id;
	bool waits;
	uint64_t sent_tsc;
};

struct guest_session {
	struct guest_session_events events;
	struct message_hello hello; /* ours */
	struct frame_writer *writer;
	struct frame_unpacker *unpacker;
	struct frame_reader reader;
	struct frame_order order;
	struct byte_buffer out, payload;
	struct guest_session_stats stats;
	struct frame_reader_stats counted; /* of the reader's: already in stats */
	uint64_t guest_session_id;
	bool refused;    /* the guest's session speaks another protocol */
	bool heard_more; /* than HELLO, in this guest session */
	bool said_damage, said_replay, said_protocol, said_no_config;
	bool said_newer[NEWER_FIELDS]; /* that the agent does not know the field */
	bool said_descriptions;
	unsigned int descriptions; /* in the second that began then */
	uint64_t descriptions_ms;
	struct message_config config; /* what we ask for; no field: nothing */
	uint32_t unknown;             /* bits of enum config_field that the agent does not know */
	unsigned int config_tries;    /* left; 0: nothing is to be asked */
	uint64_t config_due_ms;
	uint64_t hello_due_ms, echo_sent_ms, echo_due_ms, echo_fast_until_ms, torn_since_ms;
	uint64_t torn_frames_seen, last_arrival_tsc;
	uint32_t echo_id;
	struct echo_waiting waiting[ECHO_WAITING_MAX];
	union { /* too large for the stack of a callback */
		struct message_hello hello;
		struct message_heartbeat heartbeat;
		struct message_echo_reply reply;
		struct message_config_reply config_reply;
	} in;
};

struct guest_session *guest_session_new(const struct message_hello *hello,
					const struct guest_session_events *events)
{
	struct guest_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->events = *events;
	s->hello = *hello;
	frame_reader_init(&s->reader);
	s->unpacker = frame_unpacker_new();
	if (!s->unpacker) {
		guest_session_free(s);
		return NULL;
	}
	return s;
}

void guest_session_free(struct guest_session *s)
{
	if (!s)
		return;
	frame_reader_fini(&s->reader);
	frame_unpacker_free(s->unpacker);
	frame_writer_free(s->writer);
	byte_buffer_fini(&s->out);
	byte_buffer_fini(&s->payload);
	free(s);
}

void guest_session_stats_get(const struct guest_session *s, struct guest_session_stats *out)
{
	*out = s->stats;
	out->refusing = s->refused;
}

void guest_session_stats_add(struct guest_session_stats *sum,
			     const struct guest_session_stats *more)
{
	sum->bytes += more->bytes;
	sum->frames += more->frames;
	sum->damaged += more->damaged;
	sum->skipped_bytes += more->skipped_bytes;
	sum->replayed += more->replayed;
	sum->lost += more->lost;
	sum->refused += more->refused;
	sum->echo_requests += more->echo_requests;
	sum->echo_replies += more->echo_replies;
	sum->last_frame_ms = more->last_frame_ms;
	sum->hello_known = more->hello_known;
	sum->refusing = more->refusing;
	sum->unanswered += more->unanswered;
}

static void __attribute__((format(printf, 3, 4)))
note(struct guest_session *s, enum note_kind kind, const char *format, ...)
{
	char text[VS_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	s->events.note(s->events.context, kind, text);
}

/* Frames what lies in s->payload and sends it. */
static bool payload_send(struct guest_session *s, enum frame_kind kind, uint64_t *sent_tsc)
{
	s->out.len = 0;
	if (frame_write(s->writer, kind, s->payload.data, s->payload.len, &s->out))
		return false;
	return s->events.send(s->events.context, s->out.data, s->out.len, sent_tsc);
}

static void hello_send(struct guest_session *s, uint64_t now_ms)
{
	uint64_t sent_tsc;

	s->hello_due_ms = now_ms + HELLO_REPEAT_MS;
	s->payload.len = 0;
	if (!message_hello_pack(&s->hello, &s->payload))
		payload_send(s, FRAME_HELLO, &sent_tsc);
}

static void echo_send(struct guest_session *s, uint64_t now_ms)
{
	struct message_echo_request request = {.id = s->echo_id};
	struct echo_waiting *slot = &s->waiting[request.id % ECHO_WAITING_MAX];

	s->echo_sent_ms = now_ms;
	s->echo_due_ms = now_ms + (now_ms < s->echo_fast_until_ms ? ECHO_FAST_MS : ECHO_SLOW_MS);
	s->payload.len = 0;
	if (message_echo_request_pack(&request, &s->payload))
		return;
	slot->waits = payload_send(s, FRAME_ECHO_REQUEST, &slot->sent_tsc);
	slot->id = s->echo_id++;
	s->stats.echo_requests += slot->waits;
}

void guest_session_ask(struct guest_session *s, const struct message_config *config)
{
	const uint32_t id = s->config.id + 1; /* not that of an answer still under way */

	s->config = *config;
	s->config.id = id;
	s->config_tries = s->stats.hello_known && config->asks ? CONFIG_TRIES : 0;
	s->config_due_ms = 0;
}

static void config_send(struct guest_session *s, uint64_t now_ms)
{
	struct message_config *c = &s->config;
	const uint32_t asks = c->asks;
	const size_t n_events = c->n_events;
	const uint64_t look_period_ns = c->look_period_ns;
	const char look_when = c->look_when[0];
	uint64_t sent_tsc;
	int err;

	s->config_due_ms = now_ms + CONFIG_REPEAT_MS;
	s->payload.len = 0;
	c->asks &= ~s->unknown;
	if (s->unknown & 1u << CONFIG_EVENTS)
		c->n_events = 0;
	if (s->unknown & 1u << CONFIG_LOOK) {
		c->look_period_ns = 0;
		c->look_when[0] = '\0';
	}
	err = message_config_pack(c, &s->payload);
	c->asks = asks;
	c->n_events = n_events;
	c->look_period_ns = look_period_ns;
	c->look_when[0] = look_when;
	if (!err)
		payload_send(s, FRAME_CONFIG, &sent_tsc);
	if (--s->config_tries)
		return;
	s->stats.unanswered++;
	note(s, NOTE_GUEST_CONFIG,
	     "the agent did not answer what was asked of it (--guest-*, -e guest:...)");
}

/* Fields that only newer agents know, and what their requests are called. */
static const struct {
	uint64_t feature;
	enum config_field field;
	const char *lacks;
} newer_fields[NEWER_FIELDS] = {
	{FEATURE_EVENTS, CONFIG_EVENTS, "cannot capture the events of -e guest:..."},
	{FEATURE_LOOK, CONFIG_LOOK, "does not look (--guest-look)"},
};

/* A guest session begins. */
static void config_begin(struct guest_session *s, const struct message_hello *hello)
{
	s->config_tries = 0;
	s->config_due_ms = 0;
	s->unknown = 0;
	if (!s->config.asks)
		return;
	if (hello->features & FEATURE_CONFIG) {
		for (size_t i = 0; i < NEWER_FIELDS; i++) {
			const uint32_t bit = 1u << newer_fields[i].field;

			if (hello->features & newer_fields[i].feature)
				continue;
			s->unknown |= bit;
			if (!(s->config.asks & bit) || s->said_newer[i])
				continue;
			s->said_newer[i] = true;
			note(s, NOTE_GUEST_CONFIG,
			     "agent %.24s %s (it is older); all else is recorded",
			     hello->program_version, newer_fields[i].lacks);
		}
		if (!(s->config.asks & ~s->unknown))
			return;
		s->config.id++;
		s->config_tries = CONFIG_TRIES;
		return;
	}
	if (!s->said_no_config)
		note(s, NOTE_GUEST_CONFIG,
		     "agent %.24s takes no requests (--guest-*, --sample-hz, -e guest:...): it "
		     "sends what its own options say",
		     hello->program_version);
	s->said_no_config = true;
}

static void config_reply_receive(struct guest_session *s, const uint8_t *payload, size_t len)
{
	if (!message_config_reply_unpack(payload, len, &s->in.config_reply) &&
	    s->in.config_reply.id == s->config.id)
		s->config_tries = 0;
}

int guest_session_start(struct guest_session *s, uint64_t now_ms)
{
	uint64_t id;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		return -EIO;
	frame_writer_free(s->writer);
	s->writer = frame_writer_new(id);
	if (!s->writer)
		return -ENOMEM;
	/* Half a frame of the old connection must not swallow the new one's first. */
	frame_reader_fini(&s->reader);
	frame_reader_init(&s->reader);
	memset(&s->counted, 0, sizeof(s->counted));
	memset(s->waiting, 0, sizeof(s->waiting));
	s->stats.hello_known = false;
	s->stats.last_frame_ms = 0;
	s->refused = false;
	s->heard_more = false;
	s->torn_since_ms = 0;
	s->config_tries = 0;
	s->echo_due_ms = now_ms;
	hello_send(s, now_ms);
	return 0;
}

/* Nothing of this guest session counts; says why, once per run. */
static void __attribute__((format(printf, 2, 3)))
session_refuse(struct guest_session *s, const char *format, ...)
{
	char text[VS_TEXT_MAX];
	va_list args;

	s->stats.refused++;
	s->refused = true;
	if (s->said_protocol)
		return;
	s->said_protocol = true;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	note(s, NOTE_PROTOCOL, "%s", text);
}

static void hello_receive(struct guest_session *s, const struct frame_view *frame,
			  const uint8_t *payload, size_t len, uint64_t now_ms)
{
	struct message_hello *hello = &s->in.hello;
	bool known = s->stats.hello_known && frame->header.session_id == s->guest_session_id;

	if (message_hello_unpack(payload, len, hello) || hello->role != STREAM_ROLE_GUEST) {
		session_refuse(s, "the peer is not a guest agent; ignored");
		return;
	}
	if (hello->protocol_min > VS_PROTOCOL_MAX || hello->protocol_max < VS_PROTOCOL_MIN) {
		session_refuse(s,
			       "agent %.24s speaks protocol %u to %u, this collector %d to %d: "
			       "update the older",
			       hello->program_version, hello->protocol_min, hello->protocol_max,
			       VS_PROTOCOL_MIN, VS_PROTOCOL_MAX);
		return;
	}
	s->refused = false;
	if (known)
		return;
	s->stats.hello_known = true;
	s->guest_session_id = frame->header.session_id;
	s->heard_more = false;
	s->echo_fast_until_ms = now_ms + ECHO_FAST_FOR_MS;
	s->echo_due_ms = now_ms;
	s->hello_due_ms = now_ms; /* an agent that restarted has not heard ours */
	config_begin(s, hello);
	s->events.hello(s->events.context, hello);
}

static void reply_receive(struct guest_session *s, const uint8_t *payload, size_t len,
			  uint64_t arrival_tsc)
{
	const struct message_echo_reply *reply = &s->in.reply;
	struct message_echo_observation observation;
	struct echo_waiting *slot;

	if (message_echo_reply_unpack(payload, len, &s->in.reply)) {
		s->stats.refused++;
		return;
	}
	slot = &s->waiting[reply->id % ECHO_WAITING_MAX];
	if (!slot->waits || slot->id != reply->id)
		return; /* answered before, or given up */
	slot->waits = false;
	s->stats.echo_replies++;
	observation = (struct message_echo_observation){.host_sent = slot->sent_tsc,
							.guest_received = reply->received,
							.guest_sent = reply->sent,
							.host_received = arrival_tsc};
	s->events.observation(s->events.context, &observation);
}

/* What an agent may send; everything else is the host's to write. */
static bool kind_is_guests(uint8_t kind)
{
	return frame_kind_senders(kind) & FRAME_BY_AGENT;
}

/* More descriptions than an agent has reason to send cost their sender only. */
static bool descriptions_admit(struct guest_session *s, uint64_t now_ms)
{
	if (now_ms - s->descriptions_ms >= 1000) {
		s->descriptions_ms = now_ms;
		s->descriptions = 0;
	}
	if (s->descriptions++ < DESCRIPTIONS_PER_S)
		return true;
	if (!s->said_descriptions)
		note(s, NOTE_PROTOCOL,
		     "descriptions of events come faster than an agent sends them; the rest is "
		     "dropped, counted");
	s->said_descriptions = true;
	return false;
}

static void frame_receive(struct guest_session *s, const struct frame_view *frame,
			  uint64_t arrival_tsc, uint64_t now_ms)
{
	const uint8_t *payload = NULL;
	uint8_t kind = frame->header.kind;
	size_t len = 0;
	int64_t lost = frame_order_check(&s->order, &frame->header);

	if (lost < 0) {
		s->stats.replayed++;
		if (!s->said_replay)
			note(s, NOTE_PROTOCOL, "a frame came twice; replays are dropped, counted");
		s->said_replay = true;
		return;
	}
	s->stats.lost += (uint64_t)lost;
	s->stats.frames++;
	s->stats.last_frame_ms = now_ms;
	if (!kind_is_guests(kind) || (s->refused && kind != FRAME_HELLO)) {
		s->stats.refused++;
		if (!frame_kind_senders(kind) && !s->refused)
			s->events.frame(s->events.context, frame, arrival_tsc);
		return;
	}
	if (kind == FRAME_USER_EVENTS && !descriptions_admit(s, now_ms)) {
		s->stats.refused++;
		return;
	}
	if (kind == FRAME_HELLO || kind == FRAME_ECHO_REPLY || kind == FRAME_HEARTBEAT ||
	    kind == FRAME_CONFIG_REPLY) {
		if (frame_unpack(s->unpacker, frame, &payload, &len)) {
			s->stats.refused++;
			return;
		}
	}
	if (kind == FRAME_HELLO)
		hello_receive(s, frame, payload, len, now_ms);
	else
		s->heard_more = true;
	if (kind == FRAME_BATCH && s->echo_sent_ms + ECHO_BUSY_MS < s->echo_due_ms)
		s->echo_due_ms = s->echo_sent_ms + ECHO_BUSY_MS;
	if (s->refused)
		return;
	s->events.frame(s->events.context, frame, arrival_tsc);
	if (kind == FRAME_CONFIG_REPLY)
		config_reply_receive(s, payload, len);
	else if (kind == FRAME_ECHO_REPLY)
		reply_receive(s, payload, len, arrival_tsc);
	else if (kind == FRAME_HEARTBEAT &&
		 !message_heartbeat_unpack(payload, len, &s->in.heartbeat))
		s->events.heartbeat(s->events.context, &s->in.heartbeat);
}

/* Adds what the reader counted since the last call, and says so the first time. */
static void damage_count(struct guest_session *s)
{
	const struct frame_reader_stats *now = &s->reader.stats;
	struct frame_reader_stats *old = &s->counted;
	uint64_t version = now->bad_version - old->bad_version;
	uint64_t damaged = now->bad_crc - old->bad_crc + now->bad_length - old->bad_length +
			   now->abandoned - old->abandoned + version;
	uint64_t skipped = now->skipped_bytes - old->skipped_bytes;

	if (!damaged && !skipped)
		return;
	s->stats.damaged += damaged;
	s->stats.skipped_bytes += skipped;
	*old = *now;
	if (version && !s->said_protocol) {
		note(s, NOTE_PROTOCOL,
		     "frames of another version than %d: update the older of agent and collector",
		     VS_FRAME_VERSION);
		s->said_protocol = true;
	} else if (!version && !s->said_damage) {
		note(s, NOTE_PROTOCOL,
		     "damaged or foreign bytes on the channel; skipped to the next good frame");
		s->said_damage = true;
	}
}

static void frames_take(struct guest_session *s, uint64_t arrival_tsc, uint64_t now_ms)
{
	struct frame_view frame;

	while (frame_reader_next(&s->reader, &frame))
		frame_receive(s, &frame, arrival_tsc, now_ms);
	damage_count(s);
}

int guest_session_receive(struct guest_session *s, const uint8_t *data, size_t len,
			  uint64_t arrival_tsc, uint64_t now_ms)
{
	int err = frame_reader_push(&s->reader, data, len);

	if (err)
		return err;
	s->stats.bytes += len;
	s->last_arrival_tsc = arrival_tsc;
	frames_take(s, arrival_tsc, now_ms);
	return 0;
}

static void torn_frame_check(struct guest_session *s, uint64_t now_ms)
{
	if (!frame_reader_is_partial(&s->reader) || s->torn_frames_seen != s->reader.stats.frames ||
	    !s->torn_since_ms) {
		s->torn_since_ms = now_ms;
		s->torn_frames_seen = s->reader.stats.frames;
		return;
	}
	if (now_ms - s->torn_since_ms < TORN_FRAME_MS)
		return;
	frame_reader_abandon(&s->reader);
	/* What followed the incomplete frame arrived no later than the last bytes. */
	frames_take(s, s->last_arrival_tsc, now_ms);
	s->torn_since_ms = now_ms;
}

void guest_session_tick(struct guest_session *s, uint64_t now_ms)
{
	if (!s->writer)
		return;
	torn_frame_check(s, now_ms);
	if (!s->heard_more && now_ms >= s->hello_due_ms)
		hello_send(s, now_ms);
	if (s->stats.hello_known && !s->refused && now_ms >= s->echo_due_ms)
		echo_send(s, now_ms);
	if (s->stats.hello_known && !s->refused && s->config_tries && now_ms >= s->config_due_ms)
		config_send(s, now_ms);
}
