/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event ring of a CPU: one element of a memory-mapped BPF array. The programs that run on the
 * CPU write it, ring_reader.c reads it in place. Included by BPF programs and by user space.
 *
 * A program claims a slot by an atomic add to `head`, then reads the time, fills the slot and
 * stores `type` last. An interrupt may occur between these steps. Its program claims a later slot,
 * possibly with an earlier time, and completes it before the interrupted program completes its own.
 * Therefore the reader delivers nothing behind an incomplete slot, and all events that are out of
 * order are within one read. A slot with type 0 is free or incomplete. The reader sets the type to
 * 0 before it advances `tail`, which frees the slots.
 *
 * If the ring is full, the new event is dropped. The `seq` of a slot holds the value that the drop
 * counter had when the slot was claimed. The reader adds the slot's position. In the resulting
 * numbers each gap is as long as the number of dropped events.
 */
#ifndef PROG_RING_H
#define PROG_RING_H

#include "proto/event.h"

/* head and tail are in separate cache lines, because different CPUs write them. */
struct vs_ring {
	vs_u64 head;    /* number of slots claimed so far */
	vs_u64 dropped; /* number of events dropped because the ring was full */
	vs_u64 pad0[6];
	vs_u64 tail; /* number of slots freed so far */
	vs_u64 pad1[7];
	struct vs_event slots[];
};

enum {
	VS_RING_SLOTS_MIN = 64,
	/* Slots in reserve: programs at different levels of nested interrupts may check for room at
	 * the same time. */
	VS_RING_SLACK = 40, /* a hit of a user's event has up to 8 records */
	VS_CPUS_MAX = 1024, /* so VS_CPU_COLLECTOR in event.h is the highest CPU number */
};

#endif
