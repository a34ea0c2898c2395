/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Classic tracepoints, all through one program: which event each becomes and where its fields lie
 * in this kernel's record. Userspace writes an entry before it attaches the program to the
 * tracepoint with the entry's index as cookie; the type, which makes hits events, follows once
 * all are attached. It never changes after that. Included by BPF programs and by userspace.
 */
#ifndef PROG_TRACEPOINT_H
#define PROG_TRACEPOINT_H

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

/* Whose hits of a tracepoint become events. */
enum vs_tracepoint_scope {
	VS_SCOPE_FOLLOWED = 0, /* the followed threads' own */
	VS_SCOPE_ANYONE = 1,   /* all: what concerns a VM is not done by its threads alone */
	VS_SCOPE_BEGIN = 2,    /* the followed threads' own, and they begin a request */
	VS_SCOPE_END = 3,      /* those that end a request that a followed thread began */
};

struct vs_tracepoint {
	vs_u32 type;   /* enum vs_event_type; 0: unused */
	vs_u16 scope;  /* enum vs_tracepoint_scope */
	vs_u16 always; /* whatever the VM's level: the states of vCPUs come from it */
	struct vs_tracepoint_field arg0[VS_TRACEPOINT_PARTS];
	struct vs_tracepoint_field arg1[VS_TRACEPOINT_PARTS];
};

/* What tells one request from another until it ends: the first argument (the sector) and the lower
 * half of the second (the device). */
struct vs_request {
	vs_u64 first, second;
};

#endif
