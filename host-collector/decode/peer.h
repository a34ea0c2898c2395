/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One connection as a decoder process sees it: the bytes, by TLS or plain, and the protocol session
 * on them (decode/guest_session.h). Several may be open until one is chosen to be the agent's
 * (gate.h); of the others nothing but notes goes any further.
 */
#ifndef DECODE_PEER_H
#define DECODE_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host-collector/decode/guest_session.h"
#include "proto/tls.h"

/* What all connections of a decoder share; borrowed, must outlive them. */
struct peer_kind {
	const struct message_hello *hello; /* ours */
	const struct message_config *wish; /* what the agent is asked for */
	const struct tls_psk *psk;         /* without a key: the bytes are plain */
	struct guest_session_events to;    /* `send` is not used */
};

struct peer {
	int fd;
	const struct peer_kind *kind;
	struct tls *tls; /* NULL: plain */
	struct guest_session *session;
	uint64_t early; /* frames before it was chosen, which are dropped */
	/* The one that was chosen, NULL: none yet. A plain peer chooses itself when it introduces
	 * itself as an agent, if none was chosen before. */
	struct peer **chosen;
};

/* Takes over `fd`, a connected non-blocking socket, in any case. 0, -ENOMEM, or what
 * tls_server_new() says. */
int peer_open(int fd, const struct peer_kind *kind, struct peer **chosen, struct peer **out);
void peer_close(struct peer *p); /* NULL is allowed */
int peer_let_go(struct peer *p); /* frees all but the socket, which it returns */
/* Adds what its session counted; frames before it was chosen were refused. */
void peer_stats_add(const struct peer *p, struct guest_session_stats *sum);
/* Bytes, 0 at the end, or -errno. */
ssize_t peer_read(struct peer *p, void *data, size_t len);

#endif
