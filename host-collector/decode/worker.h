/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decoder process, from its first instruction to its last: it holds one guest's connection, or
 * the door by which connections come among which the agent's is (gate.h), the shared ring (ring.h)
 * and a descriptor to wake the collector, confines itself (bpf/isolation/confine.h), and only then
 * reads. It runs the protocol (decode/guest_session.h), decodes every frame completely, and hands
 * over what is left as records. decoder.h starts it.
 */
#ifndef DECODE_WORKER_H
#define DECODE_WORKER_H

#include <stdbool.h>

/* argv[0] of a decoder: any program that uses decoder.h asks this first in main(). */
#define WORKER_NAME "vcpuscope-decoder"
/* Was this process started to be a decoder? Asked first of all in main(). */
bool worker_is_meant(int argc, char **argv);
/* Returns when the connection has ended: what main() gives to _exit() (enum worker_exit), for exit
 * handlers may make calls that kill it. */
int worker_main(void);

/* The descriptors it is started with, in the order of helper_spawn() (bpf/isolation/helper.h). */
enum worker_descriptor { WORKER_CHANNEL = 3, WORKER_RING = 4, WORKER_WAKE = 5, WORKER_N = 6 };

enum worker_exit {
	WORKER_DONE = 0,       /* the connection ended, a RECORD_DOWN says why */
	WORKER_TROUBLE = 1,    /* out of memory */
	WORKER_UNCONFINED = 2, /* it could not give up its rights; a RECORD_NOTE says why */
};

#endif
