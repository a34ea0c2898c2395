/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the agent's connection among all connections to a listening channel. Any process that can
 * reach the port may connect and send nothing or arbitrary bytes; such a process must not keep the
 * agent out.
 *
 * The collector accepts each connection and passes it, unread, to the decoder, where the gate runs.
 * A connection that sent nothing costs one descriptor. Up to GATE_WAITING_MAX connections wait;
 * beyond that, each new connection makes the gate close one: the oldest that sent nothing, else the
 * oldest that has not shown the TLS key, else the oldest. The gate serves all connections that send
 * something concurrently. It chooses the first that completes a TLS handshake or, on a plain port,
 * introduces itself as an agent.
 *
 * GATE_PROVE_MS after its start, an unchosen connection is closed: on a TLS port always, on a plain
 * port only if another connection waits. A single silent connection on a plain port may be QEMU's,
 * for a guest whose agent has not started yet, and QEMU may not connect again.
 */
#ifndef DECODE_GATE_H
#define DECODE_GATE_H

#include "host-collector/decode/peer.h"

enum {
	GATE_WAITING_MAX = 2048,
	GATE_PROVE_MS = 5000,
};

struct gate;

/* Allocates a gate. descriptor: the Unix socket that delivers the connections (gate_hand()). The
 * gate borrows descriptor, kind and chosen, and stores the agent's connection in *chosen. most: the
 * largest number of waiting connections, at most GATE_WAITING_MAX; less if the process may open
 * fewer descriptors. Returns NULL if there is no memory. */
struct gate *gate_new(int descriptor, size_t most, const struct peer_kind *kind,
		      struct peer **chosen);
/* Frees the gate and closes all connections except the chosen one. NULL is allowed. */
void gate_free(struct gate *g);
/* Waits up to wait_ms for activity and handles a bounded amount of it. Returns 0, -EPIPE (the
 * collector closed its end of `descriptor`) or -ENOMEM. */
int gate_turn(struct gate *g, uint64_t now_ms, int wait_ms);
/* Closes the connections whose GATE_PROVE_MS have passed (see above), and repeats HELLO on the
 * others. Call it every 50 ms. */
void gate_tick(struct gate *g, uint64_t now_ms);
/* Returns the number of waiting connections. */
size_t gate_waiting(const struct gate *g);
/* Adds the counts of all connections except the chosen one to `sum`. */
void gate_stats_add(const struct gate *g, struct guest_session_stats *sum);

/* Sends `fd` through `descriptor`; the collector calls this. Returns 0, -EAGAIN if the queue is
 * full, or another -errno. Closes `fd` in all cases but -EAGAIN. */
int gate_hand(int descriptor, int fd);

#endif
