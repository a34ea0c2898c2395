/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One connection in a decoder process: its bytes, plain or over TLS, and the protocol session on
 * them (guest_session.h). Several connections may be open until one is chosen as the agent's
 * (gate.h). From the others only notes are delivered.
 */
#ifndef DECODE_PEER_H
#define DECODE_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host-collector/decode/guest_session.h"
#include "proto/tls.h"

/* What all connections of a decoder share. The connections borrow it; it must outlive them. */
struct peer_kind {
	const struct message_hello *hello;    /* the host's greeting */
	const struct message_config *request; /* the configuration to request from the agent */
	const struct tls_psk *psk;            /* TLS key; without a key the connection is plain */
	struct guest_session_events to;       /* for the chosen connection; `send` unused */
};

struct peer {
	int fd;
	const struct peer_kind *kind;
	struct tls *tls; /* NULL: plain */
	struct guest_session *session;
	uint64_t early; /* frames dropped before this peer was chosen */
	/* The chosen connection; *chosen is NULL until there is one. A peer sets it to itself when
	 * it receives a valid HELLO of an agent and no peer is chosen. */
	struct peer **chosen;
};

/* Opens a peer on `fd`, a connected non-blocking socket, which the function owns even on failure.
 * Returns 0, -ENOMEM or the error of tls_server_new(). */
int peer_open(int fd, const struct peer_kind *kind, struct peer **chosen, struct peer **out);
void peer_close(struct peer *p); /* NULL is allowed */
int peer_let_go(struct peer *p); /* frees everything except the socket, which it returns */
/* Adds the session's counts to `sum`; frames that arrived before this peer was chosen count as
 * refused. */
void peer_stats_add(const struct peer *p, struct guest_session_stats *sum);
/* Reads without waiting. Returns the number of bytes, 0 at the end of the connection, or -errno. */
ssize_t peer_read(struct peer *p, void *data, size_t len);

#endif
