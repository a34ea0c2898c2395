/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The link to one guest's agent: connects and comes back with a growing delay, or listens. It hands
 * its connection, or all among which the agent's is (decode/gate.h), to a decoder process of its own
 * (decode/decoder.h), which runs the protocol. What comes back is packed into frames anew: no byte
 * that a guest made gets beyond the decoder.
 *
 * A decoder that dies costs what it held and the time until the next one, which comes with a
 * growing delay too; both are said and counted.
 */
#ifndef LINK_LINK_H
#define LINK_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "host-collector/decode/decoder.h"
#include "host-collector/link/address.h"
#include "host-collector/decode/guest_session.h"

enum link_state {
	LINK_DOWN,    /* nobody serves the socket; dialling again */
	LINK_SILENT,  /* connected, nothing heard yet */
	LINK_TALKING, /* the agent introduced itself */
	LINK_REFUSED, /* what talks there is of another protocol */
};

struct link_events {
	/* As in guest_session.h. */
	void (*frame)(void *context, const struct frame_view *frame, uint64_t arrival_tsc);
	void (*observation)(void *context, const struct message_echo_observation *observation);
	void (*hello)(void *context, const struct message_hello *hello);
	void (*heartbeat)(void *context, const struct message_heartbeat *heartbeat);
	/* Comings and goings too; one plain line. */
	void (*note)(void *context, enum note_kind kind, const char *text);
	void *context;
};

struct guest_link;

/* hello: ours. budget: NULL is the default. Nothing is called back before the loop runs. The
 * program runs worker_main() when it is asked to (decode/worker.h). 0 or -ENOMEM: an address that
 * cannot be used now is tried again, which a note and the statistics tell. */
int guest_link_open(uv_loop_t *loop, const struct link_address *address,
		    const struct message_hello *hello, const struct decoder_budget *budget,
		    const struct link_events *events, struct guest_link **out);
/* What the agent is asked for (guest_session_ask), from the next connection on; copied. */
void guest_link_ask(struct guest_link *l, const struct message_config *wish);
/* Takes over `fd`, a connected non-blocking socket, in any case. Of an address that adopts it takes
 * the place of the connection before, for whoever calls knows that it is the VM's; of one that is
 * handed connections it is one of those among which the agent is looked for (decode/gate.h), and is
 * closed if the agent is there. */
void guest_link_adopt(struct guest_link *l, int fd);
/* Calls nothing back any more; memory is freed when the loop has run once more. */
void guest_link_close(struct guest_link *l);

struct guest_link_stats {
	enum link_state state;
	uint64_t connections;   /* so far */
	char agent_version[32]; /* as it said; "": never heard */
	char trouble[256];      /* why the address cannot be used; "": it can */
	uint64_t decoder_deaths;
	pid_t decoder_pid;           /* 0: none runs */
	uint64_t frames;             /* handed on */
	uint64_t refused_records;    /* of a decoder: values that no agent sends */
	struct record_stats decoder; /* of all decoders so far, at most 50 ms old */
};
/* Since it was opened, all connections together. */
void guest_link_stats_get(const struct guest_link *l, struct guest_link_stats *out);

#endif
