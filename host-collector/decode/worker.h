/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decoder process. It holds a guest's connection or the socket that delivers connections
 * (gate.h), the shared ring (ring.h) and a descriptor that wakes the collector. It gives up its
 * rights (bpf/isolation/confine.h) before it reads any byte from the guest. Then it runs the
 * protocol (guest_session.h), decodes each frame completely and writes records to the ring.
 * decoder.h starts the process.
 */
#ifndef DECODE_WORKER_H
#define DECODE_WORKER_H

#include <stdbool.h>

/* argv[0] of a decoder process. */
#define WORKER_NAME "vcpuscope-decoder"
/* Returns whether this process was started as a decoder. main() of each program that uses decoder.h
 * calls this first, and worker_main() if it is true. */
bool worker_is_meant(int argc, char **argv);
/* Runs the decoder until the connection ends. Returns an enum worker_exit, which main() must pass
 * to _exit(): exit handlers may make system calls that are forbidden here. */
int worker_main(void);

/* The descriptors that the process is started with, in the order of helper_spawn()
 * (bpf/isolation/helper.h). */
enum worker_descriptor { WORKER_CHANNEL = 3, WORKER_RING = 4, WORKER_WAKE = 5, WORKER_N = 6 };

enum worker_exit {
	WORKER_DONE = 0,       /* the connection ended; a RECORD_DOWN gives the reason */
	WORKER_TROUBLE = 1,    /* out of memory or another failure at the start */
	WORKER_UNCONFINED = 2, /* it could not give up its rights; a RECORD_NOTE gives the reason */
};

#endif
