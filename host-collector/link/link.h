/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The link to one guest's agent. It connects, and connects again after a growing delay, or it
 * listens. A decoder process (decode/decoder.h) runs the protocol. The link passes it the
 * connection or, if it listens, all connections, among which the decoder finds the agent's
 * (decode/gate.h). The link encodes the decoded records into new frames, so no byte from a guest
 * gets beyond the decoder.
 *
 * If a decoder dies, its data are lost, and the next one starts after a growing delay. The link
 * reports and counts this. Runs on the caller's libuv loop; not thread-safe.
 */
#ifndef LINK_LINK_H
#define LINK_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "host-collector/decode/decoder.h"
#include "host-collector/link/address.h"
#include "host-collector/decode/guest_session.h"
#include "proto/frame_item.h"

enum link_state {
	LINK_DOWN,    /* not connected; trying again */
	LINK_SILENT,  /* connected, no HELLO received yet */
	LINK_TALKING, /* the agent sent its HELLO */
	LINK_REFUSED, /* the peer uses another protocol */
};

struct link_events {
	/* The frames that guest_session.h delivers, checked. Borrowed for the call. */
	void (*frame)(void *context, struct frame_item *frame, uint64_t arrival_tsc);
	void (*observation)(void *context, const struct message_echo_observation *observation);
	void (*hello)(void *context, const struct message_hello *hello);
	void (*heartbeat)(void *context, const struct message_heartbeat *heartbeat);
	/* Receives one line of plain text, for example when an agent connects or disconnects. */
	void (*note)(void *context, enum note_kind kind, const char *text);
	void *context;
};

struct guest_link;

/* Opens a link. hello: the collector's own. budget: NULL for the default. Copies address, hello,
 * budget and events. Calls no callback before the loop runs. main() of the program must run
 * worker_main() on request (decode/worker.h). Returns 0 or -ENOMEM. An address that cannot be used
 * now is tried again, which a note and the statistics report. */
int guest_link_open(uv_loop_t *loop, const struct link_address *address,
		    const struct message_hello *hello, const struct decoder_budget *budget,
		    const struct link_events *events, struct guest_link **out);
/* Sets the configuration that the link requests of the agent (guest_session_ask()), from the next
 * connection on. Copies it. */
void guest_link_ask(struct guest_link *l, const struct message_config *request);
/* Adds `fd`, a connected non-blocking socket, which the link owns from now on, in all cases. For an
 * address with `adopts` it replaces the previous connection, because the caller knows that it is
 * the VM's. For an address with `handed` it is one of the connections among which the decoder finds
 * the agent (decode/gate.h); it is closed if the agent is already connected or the decoder is
 * busy. */
void guest_link_adopt(struct guest_link *l, int fd);
/* Closes the link. Calls no callback after that; the memory is freed after one more run of the
 * loop. */
void guest_link_close(struct guest_link *l);

struct guest_link_stats {
	enum link_state state;
	uint64_t connections;   /* number of connections so far */
	char agent_version[32]; /* version that the agent reported; "": none yet */
	char trouble[256];      /* why the address cannot be used; "": it can be used */
	uint64_t decoder_deaths;
	pid_t decoder_pid;           /* 0: no decoder runs */
	uint64_t frames;             /* number of frames delivered */
	uint64_t refused_records;    /* records from a decoder with values that no agent sends */
	struct record_stats decoder; /* sum of all decoders, at most 50 ms old */
};
/* Fills the statistics of all connections since guest_link_open(). */
void guest_link_stats_get(const struct guest_link *l, struct guest_link_stats *out);

#endif
