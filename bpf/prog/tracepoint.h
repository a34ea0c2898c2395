/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The classic tracepoints. One BPF program serves all of them; a table says which event each one
 * becomes and where its fields lie in this kernel's record. Included by BPF programs and by user
 * space.
 *
 * User space writes a row without its type, then attaches the program to the tracepoint with the
 * index of the row as cookie. After all rows are attached it writes the types. Until a row has its
 * type its hits are ignored; after that it never changes.
 */
#ifndef PROG_TRACEPOINT_H
#define PROG_TRACEPOINT_H

#include "proto/event.h"

enum {
	VS_TRACEPOINTS_MAX = 256, /* a power of two */
	VS_TRACEPOINT_PARTS = 2,  /* number of fields that share one argument of an event */
};

struct vs_tracepoint_field {
	vs_u16 offset;
	vs_u16 bytes; /* size, 1 to 8; 0: not in this kernel's record, reads as 0 */
	vs_u16 shift; /* position in the argument, in bits */
	vs_u16 is_signed;
};

struct vs_tracepoint {
	vs_u32 type;   /* enum vs_event_type; 0: unused */
	vs_u16 scope;  /* enum vs_scope */
	vs_u16 always; /* 1: handled at every level; the vCPU's states derive from it */
	struct vs_tracepoint_field arg0[VS_TRACEPOINT_PARTS];
	struct vs_tracepoint_field arg1[VS_TRACEPOINT_PARTS];
};

/* Identifies a request until it ends. */
struct vs_request {
	vs_u64 first, second;
};

/* Returns the request that an event of scope VS_SCOPE_BEGIN or VS_SCOPE_END begins or ends. In all
 * their types, arg0 (the sector) and the lower half of arg1 (the device) identify it. */
static inline __attribute__((always_inline)) struct vs_request request_of(const struct vs_event *e)
{
	return (struct vs_request){.first = e->arg0, .second = (vs_u32)e->arg1};
}

#endif
