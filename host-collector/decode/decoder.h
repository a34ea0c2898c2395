/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One guest's decoder process (worker.h), seen from the collector: started with the connection,
 * watched, drained, stopped. The collector parses nothing of what the guest sent: it takes checked
 * records out of shared memory. A decoder that dies, hangs, writes what is no record or uses more
 * CPU than it may is over, and `ended` says which; starting another one is the caller's.
 */
#ifndef DECODE_DECODER_H
#define DECODE_DECODER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "host-collector/decode/ring.h"

/* What one guest may use up. 0: the default (decoder.c). */
struct decoder_budget {
	uint64_t bytes_per_s;  /* of its channel; beyond it is not read, and its agent drops */
	uint64_t memory_bytes; /* of the decoder */
	uint32_t cpu_permille; /* of one CPU, for the decoder */
};
/* Puts the defaults where there is 0. */
void decoder_budget_fill(struct decoder_budget *budget);

struct decoder_events {
	/* Checked; valid during the call, and the callee's to change. */
	void (*record)(void *context, struct guest_record *record);
	/* The last call. died: not because the connection ended. */
	void (*ended)(void *context, bool died, const char *why);
	void *context;
};

struct decoder;

/* Takes over `fd`, a connected non-blocking socket, in any case; -1: one of the connections that
 * decoder_hand() brings becomes the agent's (gate.h), and it ends when none is left. hello: what
 * the agent is greeted with. wish: what it is asked for (guest_session_ask). psk: if it has a key,
 * the connections that are handed over must speak TLS with it. 0 or -errno. */
int decoder_start(uv_loop_t *loop, int fd, const struct message_hello *hello,
		  const struct message_config *wish, const struct tls_psk *psk,
		  const struct decoder_budget *budget, const struct decoder_events *events,
		  struct decoder **out);
/* Kills it and waits for that; calls nothing back. Frees when the loop has run once more. NULL is
 * allowed. */
void decoder_stop(struct decoder *d);
/* Call it every 50 ms or so: notices one that hangs. now_ms: uv_now(). May call `ended`. */
void decoder_tick(struct decoder *d, uint64_t now_ms);
/* Of a decoder that was started without a connection: takes over one. 0, -EPIPE (it has its
 * agent), -errno: `fd` is closed; -EAGAIN: too many are under way to it, `fd` is still the
 * caller's. */
int decoder_hand(struct decoder *d, int fd);
pid_t decoder_pid(const struct decoder *d);

#endif
