/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/link/link.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host-collector/decode/framer.h"
#include "host-collector/decode/config_text.h"
#include "host-collector/link/hybrid_vsock.h"
#include "host-collector/link/socket_file.h"
#include "proto/log_limit.h"

enum {
	TICK_MS = 50,
	RETRY_MIN_MS = 100,
	RETRY_MAX_MS = 2000,
	SILENCE_MS = 3000, /* without an answer to HELLO for so long, the link says so */
	DEATH_RETRY_MAX_MS = 30000,
	DEATH_RARE_MS = 10000, /* a decoder that lived this long is replaced without more delay */
	ACCEPTS_AT_ONCE = 64,  /* connections accepted before the loop's other handles are served */
};

/* The last hidden line about the channel's state; text "": none. */
struct hidden_state {
	enum note_kind kind;
	char text[VS_TEXT_MAX];
};

struct guest_link {
	uv_loop_t *loop;
	struct link_address address;
	struct message_hello hello; /* the host's */
	struct message_config request;
	struct decoder_budget budget;
	struct link_events events;
	uv_timer_t timer;
	uv_poll_t *poll; /* of fd or listener; freed when libuv has closed it */
	int fd;          /* until it is connected; then the decoder owns it */
	int listener;
	int kept;                /* a connection that the decoder was too busy for; -1: none */
	struct decoder *decoder; /* NULL: not connected */
	struct framer *framer;
	bool redials; /* connects again after the connection has ended */
	bool listens; /* on a socket of its own */
	char agent_version[32];
	bool talked, hello_known, said_silence, said_refused, closed;
	int dial_error, said_dial_error; /* the last one; 0: none since it worked */
	unsigned int retry_ms, death_retry_ms;
	struct hybrid_vsock_answer answer;
	uint64_t asked_ms; /* uv_now() when a port was requested of the VMM */
	uint64_t next_dial_ms, connected_ms, connections, deaths, frames, refused_records;
	uint64_t connection_frames;
	struct log_limit lines;     /* for notes, over all connections */
	struct log_limit strangers; /* for notes about connections that are not the agent's */
	struct hidden_state hidden_state;
	/* Ids of events that are known to be missing on this connection. */
	uint32_t missing[VS_USER_EVENTS_MAX];
	size_t n_missing;
	struct record_stats now, before; /* of this decoder; the sum of all earlier ones */
};

static void on_poll(uv_poll_t *poll, int status, int events);
static void on_accept(uv_poll_t *poll, int status, int events);
static void on_answer(uv_poll_t *poll, int status, int events);

/* At the end of a time in which lines were hidden, says how many, and the channel's state. */
static void hidden_note(struct guest_link *l, uint64_t now_ms)
{
	const uint64_t n =
		log_limit_hidden(&l->lines, now_ms) + log_limit_hidden(&l->strangers, now_ms);
	const struct hidden_state hidden = l->hidden_state;
	char text[VS_TEXT_MAX];

	if (!n)
		return;
	snprintf(text, sizeof(text), "channel %.60s: %" PRIu64 " more lines were not shown",
		 l->address.text, n);
	l->events.note(l->events.context, NOTE_PROTOCOL, text);
	if (log_limit_is_reached(&l->lines, now_ms))
		return; /* only lines about strangers were hidden */
	l->hidden_state.text[0] = '\0';
	if (hidden.text[0])
		l->events.note(l->events.context, hidden.kind, hidden.text);
}

/* All lines and notes that a guest can cause pass through here, under one limit. Of the hidden
 * lines, the last one about the channel's state is kept, because readers act on it. */
static void __attribute__((format(printf, 3, 4)))
note(struct guest_link *l, enum note_kind kind, const char *format, ...)
{
	struct hidden_state *hidden = &l->hidden_state;
	char text[VS_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	hidden_note(l, uv_now(l->loop));
	if (log_limit_admit(&l->lines, uv_now(l->loop))) {
		hidden->text[0] = '\0';
		l->events.note(l->events.context, kind, text);
	} else if (kind == NOTE_CHANNEL_UP || kind == NOTE_CHANNEL_DOWN) {
		hidden->kind = kind;
		memcpy(hidden->text, text, sizeof(text));
	}
}

/* Passes on a note about a connection that is not known to be the agent. Such notes have a limit of
 * their own, so that they do not hide notes about the agent. */
static void note_stranger(struct guest_link *l, enum note_kind kind, const char *text)
{
	hidden_note(l, uv_now(l->loop));
	if (log_limit_admit(&l->strangers, uv_now(l->loop)))
		l->events.note(l->events.context, kind, text);
}

static void poll_freed(uv_handle_t *handle)
{
	free(handle);
}

static void poll_stop(struct guest_link *l)
{
	if (l->poll)
		uv_close((uv_handle_t *)l->poll, poll_freed);
	l->poll = NULL;
}

static int poll_start(struct guest_link *l, int fd, int events, uv_poll_cb callback)
{
	int err;

	poll_stop(l);
	l->poll = malloc(sizeof(*l->poll));
	if (!l->poll)
		return -ENOMEM;
	err = uv_poll_init(l->loop, l->poll, fd);
	if (err) {
		free(l->poll);
		l->poll = NULL;
		return err;
	}
	l->poll->data = l;
	return uv_poll_start(l->poll, events, callback);
}

/* ---- totals of all decoders ---- */

static void stats_add(struct record_stats *sum, const struct record_stats *more)
{
	guest_session_stats_add(&sum->session, &more->session);
	sum->malformed += more->malformed;
	sum->unknown_dropped += more->unknown_dropped;
	sum->cpu_ns += more->cpu_ns;
	sum->held_ms += more->held_ms;
	sum->blocked_ms += more->blocked_ms;
}

/* ---- begin and end of connections ---- */

static void dial_later(struct guest_link *l, uint64_t delay_ms)
{
	l->next_dial_ms = uv_now(l->loop) + delay_ms;
}

static void retry_later(struct guest_link *l)
{
	dial_later(l, l->retry_ms);
	if (l->retry_ms < RETRY_MAX_MS)
		l->retry_ms *= 2;
}

/* A connection could not be made. */
static void connection_fail(struct guest_link *l)
{
	poll_stop(l);
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	l->asked_ms = 0;
	retry_later(l);
}

static void connection_over(struct guest_link *l)
{
	stats_add(&l->before, &l->now);
	memset(&l->now, 0, sizeof(l->now));
	l->decoder = NULL;
	l->talked = l->hello_known = false;
}

static void decoder_died(struct guest_link *l, const char *why)
{
	if (uv_now(l->loop) - l->connected_ms >= DEATH_RARE_MS)
		l->death_retry_ms = RETRY_MIN_MS;
	l->deaths++;
	note(l, NOTE_CHANNEL_DOWN, "channel %.40s: its decoder is over: %.40s; the next in %.1f s",
	     l->address.text, why, l->death_retry_ms / 1000.0);
	dial_later(l, l->death_retry_ms);
	l->death_retry_ms *= 2;
	if (l->death_retry_ms > DEATH_RETRY_MAX_MS)
		l->death_retry_ms = DEATH_RETRY_MAX_MS;
}

static void on_decoder_ended(void *context, bool died, const char *why)
{
	struct guest_link *l = context;
	bool talked = l->talked;

	connection_over(l);
	if (died) {
		decoder_died(l, why);
		return;
	}
	if (talked)
		note(l, NOTE_CHANNEL_DOWN, "channel %.60s is down: %s", l->address.text, why);
	if (!l->redials)
		dial_later(l, 0);
	else
		retry_later(l);
}

static void kept_close(struct guest_link *l)
{
	if (l->kept >= 0)
		close(l->kept);
	l->kept = -1;
}

/* ---- messages of the decoder ---- */

static void on_hello(struct guest_link *l, const struct message_hello *hello)
{
	note(l, NOTE_CHANNEL_UP, "agent %.32s on guest kernel %.48s, %zu CPUs",
	     hello->program_version, hello->kernel_release, hello->n_cpus);
	l->talked = l->hello_known = true;
	l->n_missing = 0;
	if (!l->redials) { /* the next connection waits until the decoder has ended */
		poll_stop(l);
		kept_close(l);
	}
	snprintf(l->agent_version, sizeof(l->agent_version), "%.31s", hello->program_version);
	l->retry_ms = RETRY_MIN_MS;
	l->events.hello(l->events.context, hello);
}

/* The frame has the whole answer; these lines are for people. */
static void on_config_reply(struct guest_link *l, const struct message_config_reply *reply)
{
	char text[VS_TEXT_MAX];

	config_describe(&reply->in_force, text, sizeof(text));
	note(l, NOTE_GUEST_CONFIG, "%s", text);
	for (size_t i = 0; i < reply->n_limits; i++) {
		config_limit_describe(&reply->limits[i], text, sizeof(text));
		note(l, NOTE_GUEST_CONFIG, "%s", text);
	}
}

/* The frame has all of it; these lines name each event that is missing once. */
static void on_user_events(struct guest_link *l, const struct message_user_events *m)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct message_user_event *e = &m->events[i];
		size_t k = 0;

		if (!(e->flags & (USER_FAILED | USER_DETACHED)))
			continue;
		while (k < l->n_missing && l->missing[k] != e->id)
			k++;
		if (k < l->n_missing || k == VS_USER_EVENTS_MAX)
			continue;
		l->missing[l->n_missing++] = e->id;
		note(l, NOTE_GUEST_CONFIG, "guest:%.20s:%.24s is %s: %s", e->system, e->name,
		     e->flags & USER_DETACHED ? "detached" : "missing", e->why);
	}
}

static void on_guest_frame(struct guest_link *l, struct guest_record *r)
{
	struct frame_item frame;

	if (framer_item(l->framer, r, &frame)) {
		l->refused_records++;
		if (!l->said_refused)
			note(l, NOTE_PROTOCOL,
			     "a decoder handed over what no agent sends; dropped");
		l->said_refused = true;
		return;
	}
	l->frames++;
	l->connection_frames++;
	if (r->head.kind == FRAME_HELLO && r->head.fresh)
		on_hello(l, &r->hello);
	l->events.frame(l->events.context, &frame, r->head.arrival_tsc);
	if (r->head.kind == FRAME_CONFIG_REPLY && !l->closed)
		on_config_reply(l, &r->config_reply);
	if (r->head.kind == FRAME_USER_EVENTS && !l->closed)
		on_user_events(l, &r->user_events);
	if (r->head.kind == FRAME_HEARTBEAT && !l->closed)
		l->events.heartbeat(l->events.context, &r->heartbeat);
}

static void on_decoder_note(struct guest_link *l, const struct message_note *said)
{
	/* The notes that a decoder may send. The link itself writes all others. */
	enum note_kind kind = said->kind == NOTE_CHANNEL_DOWN ? NOTE_CHANNEL_DOWN : NOTE_PROTOCOL;

	if (l->listens && !l->hello_known)
		note_stranger(l, kind, said->text);
	else
		note(l, kind, "%s", said->text);
}

static void on_record(void *context, struct guest_record *r)
{
	struct guest_link *l = context;

	if (r->head.kind == RECORD_OBSERVATION)
		l->events.observation(l->events.context, &r->observation);
	else if (r->head.kind == RECORD_NOTE)
		on_decoder_note(l, &r->note);
	else if (r->head.kind == RECORD_STATS)
		l->now = r->stats;
	else if (r->head.kind == RECORD_UNKNOWN)
		framer_unknown(l->framer, r);
	else
		on_guest_frame(l, r);
}

/* Starts a decoder for the connection `fd`; with -1, for connections that are passed to it later.
 */
static bool decoder_begin(struct guest_link *l, int fd)
{
	const struct decoder_events events = {on_record, on_decoder_ended, l};
	int err;

	l->connected_ms = uv_now(l->loop);
	l->connection_frames = 0;
	l->said_silence = false;
	l->dial_error = l->said_dial_error = 0;
	err = decoder_start(l->loop, fd, &l->hello, &l->request, &l->address.psk, &l->budget,
			    &events, &l->decoder);
	if (err) {
		l->decoder = NULL;
		decoder_died(l, strerror(-err));
	}
	return !err;
}

/* l->fd is connected: passes it to a new decoder. */
static void connection_up(struct guest_link *l)
{
	int fd = l->fd;

	poll_stop(l);
	l->fd = -1;
	l->asked_ms = 0;
	l->connections++;
	decoder_begin(l, fd);
}

/* Passes a new connection to the decoder, which finds out whether it is the agent's. Returns false
 * if the decoder takes no more connections now. If it is only busy, keeps `fd` for later. */
static bool connection_hand(struct guest_link *l, int fd)
{
	int err;

	if (!l->decoder && !decoder_begin(l, -1)) {
		close(fd);
		return false;
	}
	err = decoder_hand(l->decoder, fd);
	if (err == -EAGAIN)
		l->kept = fd;
	return !err;
}

/* Passes on the kept connection. Returns false if it must wait longer. */
static bool kept_hand(struct guest_link *l)
{
	int fd = l->kept;

	l->kept = -1;
	if (fd >= 0)
		connection_hand(l, fd);
	return l->kept < 0;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct guest_link *l = poll->data;
	bool failed;

	(void)status, (void)events;
	/* libuv reports EBADF for each error; the socket has the real one. */
	failed = link_address_connected(l->fd) != 0;
	if (!failed && l->address.ask_port)
		failed = hybrid_vsock_request(l->fd, l->address.ask_port) ||
			 poll_start(l, l->fd, UV_READABLE, on_answer);
	if (failed) {
		connection_fail(l);
	} else if (!l->address.ask_port) {
		connection_up(l);
	} else {
		l->asked_ms = uv_now(l->loop);
		l->answer = (struct hybrid_vsock_answer){0};
	}
}

/* Reads the VMM's answer about the guest's port. */
static void on_answer(uv_poll_t *poll, int status, int events)
{
	struct guest_link *l = poll->data;
	const int err = hybrid_vsock_answer(l->fd, &l->answer);

	(void)status, (void)events;
	if (err == -EAGAIN)
		return;
	if (!err) {
		connection_up(l);
		return;
	}
	if (err != l->said_dial_error)
		note(l, NOTE_CHANNEL_DOWN, "channel %.60s: %s; trying again", l->address.text,
		     err == -ECONNREFUSED ? "nobody listens on this port in the guest"
		     : err == -EPROTO     ? "the VMM's answer to CONNECT is none"
					  : strerror(-err));
	l->said_dial_error = err;
	connection_fail(l);
}

/* Returns whether the other end has closed the connection without sending anything. */
static bool is_gone(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};
	int unread = 0;

	return poll(&p, 1, 0) == 1 && !ioctl(fd, FIONREAD, &unread) && !unread;
}

static bool connection_new(struct guest_link *l, int fd)
{
	l->connections++;
	if (!is_gone(fd))
		return connection_hand(l, fd);
	close(fd);
	return true;
}

static void on_accept(uv_poll_t *poll, int status, int events)
{
	struct guest_link *l = poll->data;
	bool more = status >= 0;

	(void)events;
	for (int i = 0; i < ACCEPTS_AT_ONCE && more; i++) {
		uint32_t cid;
		int fd = link_address_accept(&l->address, l->listener, &cid);

		if (fd == -EAGAIN)
			return;
		if (fd == -EACCES)
			note(l, NOTE_PROTOCOL, "channel %.60s: refused who connects from CID %u",
			     l->address.text, cid);
		else if (fd == -EPERM)
			note(l, NOTE_PROTOCOL,
			     "channel %.60s: refused a process that is not the VMM",
			     l->address.text);
		else if (fd != -ECONNABORTED && fd != -EINTR)
			more = fd >= 0 && connection_new(l, fd);
	}
	if (!more)
		poll_stop(l); /* the next tick starts it again */
}

static void open_failed(struct guest_link *l, int err)
{
	l->dial_error = err;
	if (err != l->said_dial_error)
		note(l, NOTE_CHANNEL_DOWN, "channel %.60s: %s; trying again", l->address.text,
		     socket_file_error(err));
	l->said_dial_error = err;
	retry_later(l);
}

/* Begins to listen if it does not listen yet. */
static void listen_again(struct guest_link *l)
{
	if (l->listener < 0)
		l->listener = link_address_open(&l->address);
	if (l->listener < 0) {
		open_failed(l, l->listener);
		l->listener = -1;
		return;
	}
	l->dial_error = l->said_dial_error = 0;
	poll_start(l, l->listener, UV_READABLE, on_accept);
}

static void dial(struct guest_link *l)
{
	int fd = link_address_open(&l->address);

	if (fd < 0) {
		open_failed(l, fd);
		return;
	}
	l->fd = fd;
	if (poll_start(l, fd, UV_WRITABLE, on_poll))
		connection_fail(l);
}

/* Returns the reason why the agent sends nothing: a static text. */
static const char *silence_explain(const struct guest_link *l)
{
	static const char *const causes[] = {
		[LINK_BACKLOG_UNKNOWN] = "no agent runs in the guest, or its port has another name",
		[LINK_BACKLOG_SERVED] = "no agent runs in the guest, or its port has another name",
		[LINK_BACKLOG_BUSY] = "another client holds it (a port serves one)",
		[LINK_BACKLOG_STUCK] = "QEMU does not accept; is it stopped?",
	};

	if (l->redials || l->address.adopts)
		return causes[link_address_backlog(&l->address, NULL)];
	return l->address.tls ? "nobody who connects completes a TLS handshake"
			      : "nobody who connects introduces itself as an agent";
}

/* Reports why a connection gets no answer, once per connection. */
static void silence_check(struct guest_link *l)
{
	if (l->said_silence || l->connection_frames || l->now.session.frames ||
	    uv_now(l->loop) - l->connected_ms < SILENCE_MS)
		return;
	l->said_silence = true;
	note(l, NOTE_CHANNEL_DOWN, "channel %.40s: silent for %d s: %s", l->address.text,
	     SILENCE_MS / 1000, silence_explain(l));
}

static void on_timer(uv_timer_t *timer);

/* All links of a loop have the same moments of work, so that the loop wakes up once for all. */
static void timer_start(struct guest_link *l)
{
	uv_timer_start(&l->timer, on_timer, TICK_MS - uv_now(l->loop) % TICK_MS, 0);
}

static void on_timer(uv_timer_t *timer)
{
	struct guest_link *l = timer->data;

	timer_start(l);
	hidden_note(l, uv_now(l->loop));
	if (l->decoder)
		decoder_tick(l->decoder, uv_now(l->loop));
	if (l->decoder)
		silence_check(l);
	if (l->fd >= 0 && l->address.ask_port && l->asked_ms &&
	    uv_now(l->loop) - l->asked_ms >= SILENCE_MS)
		connection_fail(l); /* the VMM did not answer in time */
	if (l->fd >= 0 || uv_now(l->loop) < l->next_dial_ms)
		return;
	if (l->redials && !l->decoder)
		dial(l);
	else if (!l->redials && !l->talked && !kept_hand(l))
		return;
	else if (l->listens && !l->poll && !l->talked)
		listen_again(l);
}

/* ---- life ---- */

static void link_freed(uv_handle_t *handle)
{
	struct guest_link *l = handle->data;

	framer_free(l->framer);
	free(l);
}

int guest_link_open(uv_loop_t *loop, const struct link_address *address,
		    const struct message_hello *hello, const struct decoder_budget *budget,
		    const struct link_events *events, struct guest_link **out)
{
	struct guest_link *l = calloc(1, sizeof(*l));
	int err = 0;

	if (!l)
		return -ENOMEM;
	l->loop = loop;
	l->address = *address;
	l->hello = *hello;
	if (budget)
		l->budget = *budget;
	decoder_budget_fill(&l->budget);
	l->events = *events;
	l->fd = l->listener = l->kept = -1;
	l->redials = !address->listens;
	l->listens = address->listens && !address->adopts && !address->handed;
	l->retry_ms = l->death_retry_ms = RETRY_MIN_MS;
	l->framer = framer_new();
	if (!l->framer)
		err = -ENOMEM;
	if (err) {
		free(l);
		return err;
	}
	/* At once, so that an agent that connects immediately is accepted. If it fails, the timer
	 * says so and tries again. */
	if (l->listens)
		l->listener = link_address_open(address);
	if (l->listener < 0)
		l->listener = -1;
	uv_timer_init(loop, &l->timer);
	l->timer.data = l;
	uv_timer_start(&l->timer, on_timer, 0, 0);
	*out = l;
	return 0;
}

void guest_link_ask(struct guest_link *l, const struct message_config *request)
{
	l->request = *request;
}

void guest_link_adopt(struct guest_link *l, int fd)
{
	const bool waits = !l->closed && uv_now(l->loop) >= l->next_dial_ms;

	if (l->address.handed && waits && !l->talked && l->kept < 0) {
		connection_new(l, fd);
		return;
	}
	if (l->closed || !l->address.adopts) {
		close(fd);
		return;
	}
	if (l->decoder) {
		decoder_stop(l->decoder);
		connection_over(l);
	}
	l->fd = fd;
	connection_up(l);
}

void guest_link_close(struct guest_link *l)
{
	if (!l || l->closed)
		return;
	hidden_note(l, UINT64_MAX);
	l->closed = true;
	decoder_stop(l->decoder);
	poll_stop(l);
	if (l->fd >= 0)
		close(l->fd);
	kept_close(l);
	if (l->listener >= 0) {
		link_address_unlink(&l->address);
		close(l->listener);
	}
	uv_close((uv_handle_t *)&l->timer, link_freed);
}

void guest_link_stats_get(const struct guest_link *l, struct guest_link_stats *out)
{
	*out = (struct guest_link_stats){
		.connections = l->connections,
		.decoder_deaths = l->deaths,
		.decoder_pid = l->decoder ? decoder_pid(l->decoder) : 0,
		.frames = l->frames,
		.refused_records = l->refused_records,
		.decoder = l->before,
	};
	memcpy(out->agent_version, l->agent_version, sizeof(out->agent_version));
	if (l->dial_error)
		snprintf(out->trouble, sizeof(out->trouble), "%s",
			 socket_file_error(l->dial_error));
	stats_add(&out->decoder, &l->now);
	if (!l->decoder)
		out->state = LINK_DOWN;
	else if (l->now.session.refusing)
		out->state = LINK_REFUSED;
	else
		out->state = l->hello_known ? LINK_TALKING : LINK_SILENT;
}
