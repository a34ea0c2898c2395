/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/decode/gate.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock/sample.h"
#include "proto/event.h"

enum {
	TAKE_AT_ONCE = 64, /* connections, then those that wait have their turn */
	READ_BYTES = 16 * 1024,
	/* Connections that are talked to. A plain one may hold 2 MiB of a frame that goes on. */
	PEERS_MAX_TLS = 64,
	PEERS_MAX_PLAIN = 8,
	SAY_MS = 1000,
};

struct waiting {
	int fd; /* the peer's, if there is one; -1: gone */
	uint64_t since_ms;
	struct peer *peer; /* NULL: nothing was heard */
	bool heard;
	bool proven; /* has shown its key */
};

struct gate {
	int descriptor;
	const struct peer_kind *kind;
	struct peer **chosen;
	size_t n, n_peers, most;                  /* n: at most `most` */
	struct waiting waiting[GATE_WAITING_MAX]; /* the oldest first */
	struct pollfd polls[1 + GATE_WAITING_MAX];
	struct guest_session_stats ended;
	uint64_t late, crowded, said_ms; /* closed since said_ms: for these reasons */
	uint8_t buffer[READ_BYTES];
};

static bool has_tls(const struct gate *g)
{
	return g->kind->psk->key_bytes != 0;
}

struct gate *gate_new(int descriptor, size_t most, const struct peer_kind *kind,
		      struct peer **chosen)
{
	struct gate *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->descriptor = descriptor;
	g->most = most < GATE_WAITING_MAX ? most : GATE_WAITING_MAX;
	g->kind = kind;
	g->chosen = chosen;
	return g;
}

size_t gate_waiting(const struct gate *g)
{
	return g->n;
}

/* ---- connections end ---- */

/* The chosen one is only let go of. */
static void waiting_end(struct gate *g, struct waiting *w)
{
	if (w->fd < 0)
		return;
	if (!w->peer) {
		close(w->fd);
	} else {
		g->n_peers--;
		if (*g->chosen != w->peer) {
			peer_stats_add(w->peer, &g->ended);
			peer_close(w->peer);
		}
	}
	w->fd = -1;
	w->peer = NULL;
}

/* Takes out those that have ended. */
static void waiting_compact(struct gate *g)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->n; i++) {
		if (g->waiting[i].fd >= 0)
			g->waiting[kept++] = g->waiting[i];
	}
	g->n = kept;
}

void gate_free(struct gate *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->n; i++)
		waiting_end(g, &g->waiting[i]);
	free(g);
}

void gate_stats_add(const struct gate *g, struct guest_session_stats *sum)
{
	guest_session_stats_add(sum, &g->ended);
	for (size_t i = 0; i < g->n; i++) {
		if (g->waiting[i].peer && g->waiting[i].peer != *g->chosen)
			peer_stats_add(g->waiting[i].peer, sum);
	}
}

/* The one to close when there are too many: the oldest silent one, else the oldest without a key,
 * else the oldest (a first message that shows the key can be a copy). NULL: there is none.
 * with_peer: one that is talked to. */
static struct waiting *least_worth(struct gate *g, bool with_peer)
{
	struct waiting *found = NULL;

	for (size_t i = 0; i < g->n; i++) {
		struct waiting *w = &g->waiting[i];

		if (w->fd < 0 || (with_peer && !w->peer))
			continue;
		if (!w->heard)
			return w;
		if (!found || (found->proven && !w->proven))
			found = w;
	}
	return found;
}

/* ---- one connection ---- */

static void note(struct gate *g, const char *text)
{
	g->kind->to.note(g->kind->to.context, NOTE_CHANNEL_DOWN, text);
}

/* Begins to talk. 0 or -errno: it has ended. */
static int peer_begin(struct gate *g, struct waiting *w, uint64_t now_ms)
{
	const size_t most = has_tls(g) ? PEERS_MAX_TLS : PEERS_MAX_PLAIN;
	int err = 0;

	if (g->n_peers >= most) {
		struct waiting *other = least_worth(g, true);

		if (!other) {
			g->crowded++;
			waiting_end(g, w);
			return -EAGAIN;
		}
		g->crowded += other->heard;
		if (other->heard) {
			waiting_end(g, other);
		} else { /* it can wait without being talked to */
			peer_let_go(other->peer);
			other->peer = NULL;
			g->n_peers--;
		}
	}
	err = peer_open(w->fd, g->kind, g->chosen, &w->peer);
	if (err) {
		w->peer = NULL;
		w->fd = -1;
		return err;
	}
	g->n_peers++;
	/* On a plain port both introduce themselves at once. */
	if (!has_tls(g))
		err = guest_session_start(w->peer->session, now_ms);
	if (err)
		waiting_end(g, w);
	return err;
}

static void shake_hands(struct gate *g, struct waiting *w, uint64_t now_ms)
{
	char why[VS_TEXT_MAX] = "";
	int err = tls_handshake(w->peer->tls, why, sizeof(why));

	if (err == -EAGAIN) {
		w->proven = tls_key_shown(w->peer->tls);
	} else if (err) {
		note(g, why);
		waiting_end(g, w);
	} else if (guest_session_start(w->peer->session, now_ms)) {
		waiting_end(g, w);
	} else {
		*g->chosen = w->peer;
	}
}

static int plain_read(struct gate *g, struct waiting *w, uint64_t now_ms)
{
	const ssize_t n = peer_read(w->peer, g->buffer, sizeof(g->buffer));
	const uint64_t tsc = clock_tsc_read();
	struct guest_session_stats stats;
	int err;

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0) {
		waiting_end(g, w);
		return 0;
	}
	w->heard = true;
	err = guest_session_receive(w->peer->session, g->buffer, (size_t)n, tsc, now_ms);
	/* An agent of another version is an agent. */
	guest_session_stats_get(w->peer->session, &stats);
	if (!err && stats.refusing && !*g->chosen)
		*g->chosen = w->peer;
	return err;
}

/* It can be read from, or written to if it waited for that. 0 or -ENOMEM. */
static int waiting_serve(struct gate *g, struct waiting *w, uint64_t now_ms)
{
	uint8_t first;
	ssize_t n;

	if (!w->peer) {
		n = recv(w->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0) {
			waiting_end(g, w);
			return 0;
		}
		w->heard = true;
		if (peer_begin(g, w, now_ms))
			return 0;
	}
	if (!w->peer->tls)
		return plain_read(g, w, now_ms);
	w->heard = true;
	shake_hands(g, w, now_ms);
	return 0;
}

/* ---- connections come ---- */

/* The next descriptor, -EAGAIN, -EPIPE, -errno. */
static int listener_receive(int descriptor)
{
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(sizeof(int))];
	} control;
	uint8_t byte;
	struct iovec iov = {&byte, 1};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	const ssize_t n = recvmsg(descriptor, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *header;
	int fd;

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (!n)
		return -EPIPE;
	header = CMSG_FIRSTHDR(&message);
	/* With all descriptors in use the kernel delivers the message without it. */
	if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EMFILE;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

int gate_hand(int descriptor, int fd)
{
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	uint8_t byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	int err;

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	err = sendmsg(descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ? 0 : -errno;
	if (err != -EAGAIN)
		close(fd);
	return err;
}

/* Makes room for one more. False: there is none. */
static bool room_make(struct gate *g)
{
	struct waiting *other = least_worth(g, false);

	g->crowded++;
	if (!other)
		return false;
	waiting_end(g, other);
	waiting_compact(g);
	return true;
}

/* 0 or -EPIPE. */
static int listener_take(struct gate *g, uint64_t now_ms)
{
	for (int i = 0; i < TAKE_AT_ONCE; i++) {
		int fd = listener_receive(g->descriptor);

		if (fd == -EAGAIN)
			return 0;
		if (fd == -EMFILE) { /* it is lost, but the next finds room */
			room_make(g);
			continue;
		}
		if (fd < 0)
			return -EPIPE;
		if (g->n == g->most && !room_make(g)) {
			close(fd);
			continue;
		}
		g->waiting[g->n] = (struct waiting){.fd = fd, .since_ms = now_ms};
		/* A plain peer hears from us at once, while there is room for that. */
		if (has_tls(g) || g->n_peers >= PEERS_MAX_PLAIN ||
		    !peer_begin(g, &g->waiting[g->n], now_ms))
			g->n++;
	}
	return 0;
}

/* ---- turns ---- */

static short events_wanted(const struct waiting *w)
{
	return w->peer && w->peer->tls && w->heard && tls_wants_write(w->peer->tls) ? POLLOUT
										    : POLLIN;
}

int gate_turn(struct gate *g, uint64_t now_ms, int wait_ms)
{
	const size_t n = g->n;
	int err = 0;

	g->polls[0] = (struct pollfd){.fd = g->descriptor, .events = POLLIN};
	for (size_t i = 0; i < n; i++)
		g->polls[1 + i] = (struct pollfd){.fd = g->waiting[i].fd,
						  .events = events_wanted(&g->waiting[i])};
	if (poll(g->polls, 1 + n, wait_ms) <= 0)
		return 0;
	for (size_t i = 0; i < n && !err && !*g->chosen; i++) {
		if (g->polls[1 + i].revents && g->waiting[i].fd >= 0)
			err = waiting_serve(g, &g->waiting[i], now_ms);
	}
	waiting_compact(g);
	if (!err && !*g->chosen && g->polls[0].revents)
		err = listener_take(g, now_ms);
	return err;
}

/* One line for all that were closed, at most once a second. */
static void closed_say(struct gate *g, uint64_t now_ms)
{
	char text[VS_TEXT_MAX];

	if ((!g->late && !g->crowded) || now_ms - g->said_ms < SAY_MS)
		return;
	if (g->late)
		snprintf(text, sizeof(text), "refused: no %s for %d s (connections closed: %llu)",
			 has_tls(g) ? "TLS handshake" : "HELLO of an agent", GATE_PROVE_MS / 1000,
			 (unsigned long long)g->late);
	else
		snprintf(text, sizeof(text),
			 "more connections than can wait; closed the oldest that proved nothing "
			 "(%llu)",
			 (unsigned long long)g->crowded);
	note(g, text);
	g->late = g->crowded = 0;
	g->said_ms = now_ms;
}

void gate_tick(struct gate *g, uint64_t now_ms)
{
	size_t left = g->n;

	for (size_t i = 0; i < g->n; i++) {
		struct waiting *w = &g->waiting[i];

		if (now_ms - w->since_ms >= GATE_PROVE_MS && (has_tls(g) || left > 1)) {
			g->late++;
			left--;
			waiting_end(g, w);
		} else if (w->peer && !w->peer->tls) {
			guest_session_tick(w->peer->session, now_ms);
		}
	}
	waiting_compact(g);
	closed_say(g, now_ms);
}
