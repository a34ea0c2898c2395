/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The gate of a channel that listens: which of the connections is the agent's? Anybody who reaches
 * the port can connect, say nothing, or say anything; none of that may keep the agent out.
 *
 * The collector accepts and hands every connection over, unread. One that has sent nothing costs
 * its descriptor only, and up to GATE_WAITING_MAX of them wait at the same time; then the oldest is
 * closed for each that comes. Whoever sends something is served at once, beside all others: the
 * first that completes a TLS handshake, or on a plain port introduces itself as an agent, is
 * chosen. Of those, one that has shown its key is closed last.
 *
 * After GATE_PROVE_MS a connection that has not got so far is closed: on a TLS port always, on a
 * plain port as soon as another one waits. (A lone silent one may be QEMU, connected for a guest
 * whose agent does not run yet, and need not come back.)
 */
#ifndef DECODE_GATE_H
#define DECODE_GATE_H

#include "host-collector/decode/peer.h"

enum {
	GATE_WAITING_MAX = 2048,
	GATE_PROVE_MS = 5000,
};

struct gate;

/* door: a Unix socket by which the connections come (gate_hand); borrowed, as are kind and chosen,
 * in which the agent's connection is left. most: how many may wait, GATE_WAITING_MAX or less if
 * this process may not have so many descriptors. NULL on ENOMEM. */
struct gate *gate_new(int door, size_t most, const struct peer_kind *kind, struct peer **chosen);
/* Closes all connections but the chosen one. NULL is allowed. */
void gate_free(struct gate *g);
/* Waits up to wait_ms for something to do, and does a bounded part of it. 0, -EPIPE (the collector
 * has closed its end of the door), -ENOMEM. */
int gate_turn(struct gate *g, uint64_t now_ms, int wait_ms);
/* Call it every 50 ms. */
void gate_tick(struct gate *g, uint64_t now_ms);
/* How many wait. */
size_t gate_waiting(const struct gate *g);
/* Adds what was received on all connections but the chosen one. */
void gate_stats_add(const struct gate *g, struct guest_session_stats *sum);

/* The collector's side: sends `fd` through `door` and closes it. 0; -EAGAIN: too many are under
 * way, `fd` stays open; -errno. */
int gate_hand(int door, int fd);

#endif
