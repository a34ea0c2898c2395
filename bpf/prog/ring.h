/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A CPU's event ring: one element of a memory-mapped BPF array, written by the probes of that CPU,
 * emptied in place by ring_reader.c. Included by BPF programs and by userspace.
 *
 * A probe claims a slot by an atomic add to `head`, then takes the time, fills the slot and stores
 * `type` last. An interrupt may nest anywhere in between; it then claims a later slot with an
 * earlier time and has finished before the outer slot is committed. So whatever a reader sees
 * behind an uncommitted slot is held back, and all inversions lie within what it hands out at
 * once. A slot with type 0 is free or being written; the reader zeroes the type before it moves
 * `tail`, which makes room for probes.
 *
 * A full ring drops the new event. `seq` of a slot holds the drop counter's value when it was
 * claimed; the reader adds the position, which yields numbers whose gaps are the drops.
 */
#ifndef PROG_RING_H
#define PROG_RING_H

#include "proto/event.h"

/* head and tail live on cache lines of their own: different sides write them. */
struct vs_ring {
	vs_u64 head;    /* slots claimed so far */
	vs_u64 dropped; /* events refused because the ring was full */
	vs_u64 pad0[6];
	vs_u64 tail; /* slots given back so far */
	vs_u64 pad1[7];
	struct vs_event slots[];
};

enum {
	VS_RING_SLOTS_MIN = 64,
	/* Probes that may pass the check for room at once: one per nesting level, with a margin. */
	VS_RING_SLACK = 16,
	VS_CPUS_MAX = 1024, /* as VS_CPU_COLLECTOR in event.h assumes */
};

#endif
