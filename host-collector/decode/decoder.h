/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Starts, supervises and stops the decoder process of one guest (worker.h) for the collector.
 *
 * The collector parses none of the guest's bytes: it reads checked records from shared memory
 * (ring.h). A decoder ends when the connection closes, and the collector ends one that hangs,
 * writes invalid records or exceeds twice its CPU budget. `ended` reports the reason; the caller
 * decides whether to start another decoder. All functions run on the loop's thread.
 */
#ifndef DECODE_DECODER_H
#define DECODE_DECODER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "host-collector/decode/ring.h"

/* Limits for one guest. A value of 0 selects the default (decoder.c). */
struct decoder_budget {
	uint64_t bytes_per_s;  /* read from the channel; more stays unread, and the agent drops
				  events */
	uint64_t memory_bytes; /* of the decoder process, beyond what it uses at its start */
	uint32_t cpu_permille; /* CPU time of the decoder process, per mille of one CPU */
};
/* Replaces each 0 with the default. */
void decoder_budget_fill(struct decoder_budget *budget);

struct decoder_events {
	/* Delivers a checked record. It is valid during the call; the callee may modify it. */
	void (*record)(void *context, struct guest_record *record);
	/* Reports the end; the last call. died: true unless the decoder ended because the
	 * connection did. */
	void (*ended)(void *context, bool died, const char *why);
	void *context;
};

struct decoder;

/* Starts a decoder. fd: a connected non-blocking socket, which the function owns even on failure;
 * or -1: the connections come through decoder_hand(), the decoder chooses the agent's (gate.h), and
 * it ends when no connection is left. hello: the greeting for the agent. request: the configuration
 * that the decoder requests from the agent (guest_session_ask()). psk: if it holds a key,
 * connections from decoder_hand() must use TLS with this key. Returns 0 or -errno. */
int decoder_start(uv_loop_t *loop, int fd, const struct message_hello *hello,
		  const struct message_config *request, const struct tls_psk *psk,
		  const struct decoder_budget *budget, const struct decoder_events *events,
		  struct decoder **out);
/* Kills the decoder. Calls no callback. The loop frees `d` when the process has ended, or after 2 s
 * if the kernel still holds it. NULL is allowed. */
void decoder_stop(struct decoder *d);
/* Detects a decoder that hangs or exceeds twice its CPU budget. Call it about every 50 ms; now_ms
 * is uv_now(). May call `ended`. */
void decoder_tick(struct decoder *d, uint64_t now_ms);
/* Passes a connection to a decoder that was started with fd -1. Returns 0; -EAGAIN if the queue is
 * full, then the caller still owns `fd`; or another -errno, then `fd` is closed (-EPIPE: the
 * decoder already has its agent or has ended). */
int decoder_hand(struct decoder *d, int fd);
pid_t decoder_pid(const struct decoder *d);

#endif
