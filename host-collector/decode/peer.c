/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/decode/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock/sample.h"

static bool is_chosen(const struct peer *p)
{
	return *p->chosen == p;
}

static void on_frame(void *context, const struct frame_view *frame, uint64_t arrival_tsc)
{
	struct peer *p = context;

	if (is_chosen(p))
		p->kind->to.frame(p->kind->to.context, frame, arrival_tsc);
	else
		p->early++;
}

static void on_observation(void *context, const struct message_echo_observation *observation)
{
	struct peer *p = context;

	if (is_chosen(p))
		p->kind->to.observation(p->kind->to.context, observation);
}

static void on_hello(void *context, const struct message_hello *hello)
{
	struct peer *p = context;

	if (!*p->chosen)
		*p->chosen = p;
	if (is_chosen(p))
		p->kind->to.hello(p->kind->to.context, hello);
}

static void on_heartbeat(void *context, const struct message_heartbeat *heartbeat)
{
	struct peer *p = context;

	if (is_chosen(p))
		p->kind->to.heartbeat(p->kind->to.context, heartbeat);
}

static void on_note(void *context, enum note_kind kind, const char *text)
{
	struct peer *p = context;

	p->kind->to.note(p->kind->to.context, kind, text);
}

static bool on_send(void *context, const uint8_t *bytes, size_t len, uint64_t *sent_tsc)
{
	struct peer *p = context;
	ssize_t n;

	*sent_tsc = clock_tsc_read();
	n = p->tls ? tls_send(p->tls, bytes, len)
		   : send(p->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	/* A frame that went out in part would read as damage, and what TLS has begun to send cannot
	 * be taken back: start afresh. A broken pipe is seen by the next read. */
	if (p->tls ? n < (ssize_t)len : n >= 0 && (size_t)n < len)
		shutdown(p->fd, SHUT_RDWR);
	return n == (ssize_t)len;
}

int peer_open(int fd, const struct peer_kind *kind, struct peer **chosen, struct peer **out)
{
	struct peer *p = calloc(1, sizeof(*p));
	const struct guest_session_events events = {.frame = on_frame,
						    .observation = on_observation,
						    .hello = on_hello,
						    .heartbeat = on_heartbeat,
						    .note = on_note,
						    .send = on_send,
						    .context = p};
	int err = 0;

	if (!p) {
		close(fd);
		return -ENOMEM;
	}
	p->fd = fd;
	p->kind = kind;
	p->chosen = chosen;
	p->session = guest_session_new(kind->hello, &events);
	if (!p->session)
		err = -ENOMEM;
	else if (kind->psk->key_bytes)
		err = tls_server_new(fd, kind->psk, &p->tls);
	if (err) {
		peer_close(p);
		return err;
	}
	guest_session_ask(p->session, kind->request);
	*out = p;
	return 0;
}

int peer_let_go(struct peer *p)
{
	const int fd = p->fd;

	tls_free(p->tls);
	guest_session_free(p->session);
	free(p);
	return fd;
}

void peer_close(struct peer *p)
{
	if (p)
		close(peer_let_go(p));
}

void peer_stats_add(const struct peer *p, struct guest_session_stats *sum)
{
	struct guest_session_stats stats;

	guest_session_stats_get(p->session, &stats);
	stats.refused += p->early;
	guest_session_stats_add(sum, &stats);
}

ssize_t peer_read(struct peer *p, void *data, size_t len)
{
	ssize_t n;

	if (p->tls)
		return tls_receive(p->tls, data, len);
	n = recv(p->fd, data, len, MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}
