/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/link/link.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock/sample.h"

enum {
	TICK_MS = 50,
	RETRY_MIN_MS = 100,
	RETRY_MAX_MS = 2000,
	SILENCE_MS = 3000, /* an agent answers a HELLO at once; then it is worth a word */
	READ_BYTES = 64 * 1024,
	READS_PER_TURN = 4,
};

struct guest_link {
	uv_loop_t *loop;
	struct link_address address;
	struct link_events events;
	struct guest_session *session;
	uv_timer_t timer;
	uv_poll_t *poll; /* of fd or listener; freed when libuv has closed it */
	int fd, listener;
	bool connecting, redials;
	bool talked, said_silence;
	int said_dial_error;
	unsigned int retry_ms;
	uint64_t next_dial_ms, connected_ms, connections;
	uint8_t buffer[READ_BYTES];
};

static void on_poll(uv_poll_t *poll, int status, int events);
static void on_accept(uv_poll_t *poll, int status, int events);

static void __attribute__((format(printf, 3, 4)))
note(struct guest_link *l, enum note_kind kind, const char *format, ...)
{
	char text[VS_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
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

/* Drops the connection; a listener goes back to listening, a dialler dials again later. */
static void connection_drop(struct guest_link *l, const char *why)
{
	bool was_up = l->fd >= 0 && !l->connecting;

	poll_stop(l);
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	l->connecting = false;
	if (was_up && l->talked)
		note(l, NOTE_CHANNEL_DOWN, "channel %.60s is down: %s", l->address.text, why);
	l->talked = false;
	if (l->listener >= 0)
		poll_start(l, l->listener, UV_READABLE, on_accept);
	l->next_dial_ms = uv_now(l->loop) + l->retry_ms;
	if (l->retry_ms < RETRY_MAX_MS)
		l->retry_ms *= 2;
}

static void connection_up(struct guest_link *l)
{
	int err;

	l->connecting = false;
	l->connections++;
	l->connected_ms = uv_now(l->loop);
	l->said_silence = false;
	l->said_dial_error = 0;
	err = poll_start(l, l->fd, UV_READABLE, on_poll);
	if (!err)
		err = guest_session_start(l->session, uv_now(l->loop));
	if (err)
		connection_drop(l, strerror(-err));
}

static void readable(struct guest_link *l)
{
	for (int i = 0; i < READS_PER_TURN && l->fd >= 0; i++) {
		ssize_t n = recv(l->fd, l->buffer, sizeof(l->buffer), MSG_DONTWAIT);
		uint64_t tsc = clock_tsc_read();
		int err;

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			connection_drop(l, n ? strerror(errno) : "closed by the other end");
			return;
		}
		err = guest_session_receive(l->session, l->buffer, (size_t)n, tsc, uv_now(l->loop));
		if (err) {
			connection_drop(l, strerror(-err));
			return;
		}
		if ((size_t)n < sizeof(l->buffer))
			return;
	}
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct guest_link *l = poll->data;
	int err;

	if (status < 0) {
		/* libuv says EBADF for whatever is wrong; the socket knows better. */
		err = link_address_connected(l->fd);
		connection_drop(l, err ? strerror(-err) : "closed by the other end");
		return;
	}
	if (l->connecting) {
		err = link_address_connected(l->fd);
		if (err)
			connection_drop(l, strerror(-err));
		else
			connection_up(l);
		return;
	}
	if (events & UV_READABLE)
		readable(l);
}

static void on_accept(uv_poll_t *poll, int status, int events)
{
	struct guest_link *l = poll->data;
	int fd;

	(void)events;
	if (status < 0)
		return;
	fd = link_address_accept(&l->address, l->listener);
	if (fd < 0)
		return;
	l->fd = fd;
	connection_up(l);
}

static void dial(struct guest_link *l)
{
	int fd = link_address_open(&l->address);

	if (fd < 0) {
		if (fd != l->said_dial_error)
			note(l, NOTE_CHANNEL_DOWN, "channel %.60s: %s; trying again",
			     l->address.text, strerror(-fd));
		l->said_dial_error = fd;
		connection_drop(l, "");
		return;
	}
	l->fd = fd;
	l->connecting = true;
	if (poll_start(l, fd, UV_WRITABLE, on_poll))
		connection_drop(l, "");
}

/* Connected, but nobody answers: find out why, say it once per connection. */
static void silence_check(struct guest_link *l)
{
	struct guest_session_stats stats;
	static const char *const causes[] = {
		[LINK_BACKLOG_UNKNOWN] = "no agent runs in the guest, or its port has another name",
		[LINK_BACKLOG_SERVED] = "no agent runs in the guest, or its port has another name",
		[LINK_BACKLOG_BUSY] = "another client holds it (a port serves one)",
		[LINK_BACKLOG_STUCK] = "QEMU does not accept; is it stopped?",
	};

	guest_session_stats_get(l->session, &stats);
	if (l->said_silence || stats.frames || uv_now(l->loop) - l->connected_ms < SILENCE_MS)
		return;
	l->said_silence = true;
	note(l, NOTE_CHANNEL_DOWN, "channel %.40s: silent for %d s: %s", l->address.text,
	     SILENCE_MS / 1000, causes[link_address_backlog(&l->address, NULL)]);
}

static void on_timer(uv_timer_t *timer)
{
	struct guest_link *l = timer->data;

	if (l->fd >= 0 && !l->connecting) {
		guest_session_tick(l->session, uv_now(l->loop));
		if (l->fd >= 0)
			silence_check(l);
	} else if (l->redials && l->fd < 0 && uv_now(l->loop) >= l->next_dial_ms) {
		dial(l);
	}
}

/* ---- what the session says ---- */

static bool session_send(void *context, const uint8_t *bytes, size_t len, uint64_t *sent_tsc)
{
	struct guest_link *l = context;
	ssize_t n;

	if (l->fd < 0)
		return false;
	*sent_tsc = clock_tsc_read();
	n = send(l->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	/* A frame that went out in part would read as damage: start afresh. A broken pipe is seen
	 * by the next read. */
	if (n >= 0 && (size_t)n < len)
		shutdown(l->fd, SHUT_RDWR);
	return n == (ssize_t)len;
}

static void session_frame(void *context, const struct frame_view *frame, uint64_t arrival_tsc)
{
	struct guest_link *l = context;

	l->events.frame(l->events.context, frame, arrival_tsc);
}

static void session_observation(void *context, const struct message_echo_observation *observation)
{
	struct guest_link *l = context;

	l->events.observation(l->events.context, observation);
}

static void session_hello(void *context, const struct message_hello *hello)
{
	struct guest_link *l = context;

	note(l, NOTE_CHANNEL_UP, "agent %.32s on guest kernel %.48s, %zu CPUs",
	     hello->program_version, hello->kernel_release, hello->n_cpus);
	l->talked = true;
	l->retry_ms = RETRY_MIN_MS;
	l->events.hello(l->events.context, hello);
}

static void session_heartbeat(void *context, const struct message_heartbeat *heartbeat)
{
	struct guest_link *l = context;

	l->events.heartbeat(l->events.context, heartbeat);
}

static void session_note(void *context, enum note_kind kind, const char *text)
{
	struct guest_link *l = context;

	l->events.note(l->events.context, kind, text);
}

static struct guest_link *link_new(uv_loop_t *loop, const struct message_hello *hello,
				   const struct link_events *events)
{
	struct guest_link *l = calloc(1, sizeof(*l));
	const struct guest_session_events session_events = {
		.frame = session_frame,
		.observation = session_observation,
		.hello = session_hello,
		.heartbeat = session_heartbeat,
		.note = session_note,
		.send = session_send,
		.context = l,
	};

	if (!l)
		return NULL;
	l->session = guest_session_new(hello, &session_events);
	if (!l->session) {
		free(l);
		return NULL;
	}
	l->loop = loop;
	l->events = *events;
	l->fd = -1;
	l->listener = -1;
	l->retry_ms = RETRY_MIN_MS;
	uv_timer_init(loop, &l->timer);
	l->timer.data = l;
	uv_timer_start(&l->timer, on_timer, 0, TICK_MS);
	return l;
}

int guest_link_open(uv_loop_t *loop, const struct link_address *address,
		    const struct message_hello *hello, const struct link_events *events,
		    struct guest_link **out)
{
	struct guest_link *l;
	int listener = -1, err = 0;

	if (address->listens) {
		listener = link_address_open(address);
		if (listener < 0)
			return listener;
	}
	l = link_new(loop, hello, events);
	if (!l) {
		if (listener >= 0)
			close(listener);
		return -ENOMEM;
	}
	l->address = *address;
	l->listener = listener;
	l->redials = !address->listens;
	if (listener >= 0)
		err = poll_start(l, listener, UV_READABLE, on_accept);
	if (err) {
		guest_link_close(l);
		return err;
	}
	*out = l;
	return 0;
}

int guest_link_open_fd(uv_loop_t *loop, int fd, const struct message_hello *hello,
		       const struct link_events *events, struct guest_link **out)
{
	struct guest_link *l = link_new(loop, hello, events);

	if (!l) {
		close(fd);
		return -ENOMEM;
	}
	snprintf(l->address.text, sizeof(l->address.text), "(descriptor %d)", fd);
	l->address.tcp = true; /* no path to look up */
	l->fd = fd;
	connection_up(l);
	*out = l;
	return 0;
}

static void timer_closed(uv_handle_t *handle)
{
	struct guest_link *l = handle->data;

	guest_session_free(l->session);
	free(l);
}

void guest_link_close(struct guest_link *l)
{
	if (!l)
		return;
	poll_stop(l);
	if (l->fd >= 0)
		close(l->fd);
	if (l->listener >= 0) {
		close(l->listener);
		link_address_unlink(&l->address);
	}
	uv_close((uv_handle_t *)&l->timer, timer_closed);
}

void guest_link_stats_get(const struct guest_link *l, struct guest_link_stats *out)
{
	guest_session_stats_get(l->session, &out->session);
	out->connections = l->connections;
	if (l->fd < 0 || l->connecting)
		out->state = LINK_DOWN;
	else if (out->session.refusing)
		out->state = LINK_REFUSED;
	else
		out->state = out->session.hello_known ? LINK_TALKING : LINK_SILENT;
}
