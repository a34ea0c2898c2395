/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Classic tracepoints, all through one program: which event each becomes and where its fields lie
 * in this kernel's record. Userspace writes an entry before it attaches the program to the
 * tracepoint with the entry's index as cookie; it never changes after that. Included by BPF
 * programs and by userspace.
 */
#ifndef BPF_TRACEPOINT_H
#define BPF_TRACEPOINT_H

#include "proto/event.h"

enum {
	VS_TRACEPOINTS_MAX = 32, /* a power of two */
	VS_TRACEPOINT_PARTS = 2, /* fields that share one argument of an event */
};

struct vs_tracepoint_field {
	vs_u16 offset;
	vs_u16 bytes; /* 1 to 8; 0: this kernel's record has no such field, it counts as zero */
	vs_u16 shift; /* its place in the argument, bits */
	vs_u16 is_signed;
};

struct vs_tracepoint {
	vs_u32 type;      /* enum vs_event_type; 0: unused */
	vs_u32 by_anyone; /* also if the current task is none of a VM's threads */
	struct vs_tracepoint_field arg0[VS_TRACEPOINT_PARTS];
	struct vs_tracepoint_field arg1[VS_TRACEPOINT_PARTS];
};

#endif
