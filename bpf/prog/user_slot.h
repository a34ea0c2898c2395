/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The events that the user chose, as the BPF programs need them: where the values of a hit come
 * from, which hits are wanted, and how many. Included by BPF programs and by user space.
 *
 * Every event has a program of its own. All are copies of one program with gaps, into which user
 * space writes the numbers of a struct vs_user_event and the loads of its values (user_program.c).
 * So the verifier knows these numbers, and removes what they exclude.
 *
 * What changes while a program runs is in its slot. User space fills the slot, attaches the
 * program, and stores the id last. Hits are ignored while the id is 0.
 */
#ifndef PROG_USER_SLOT_H
#define PROG_USER_SLOT_H

#include "proto/event.h"

enum {
	VS_USER_SLOTS_MAX = 64, /* a power of two */
	VS_USER_SLOT_VALUES = 16,
	VS_USER_TESTS_MAX = 16,
	/* Hits are limited in windows of 2^27 ns (134 ms), on each CPU. */
	VS_USER_WINDOW_LOG2_NS = 27,
	/* Results of the tests, where otherwise the index of the next test is. */
	VS_USER_KEEP = 0xfe,
	VS_USER_SKIP = 0xff,
};

/* Where a value of a hit comes from. */
enum vs_user_from {
	VS_FROM_CONTEXT = 0, /* `offset` in the tracepoint's record, or in struct pt_regs */
	/* In the process's memory, `number` bytes after the address in a register. */
	VS_FROM_USER = 1,
	/* Characters `number` to `number` + 7 of a text of variable length. `offset`: offset of the
	 * field in the tracepoint's record that says where the text is (__data_loc). */
	VS_FROM_DATA = 2,
	VS_FROM_NUMBER = 3, /* always `number` */
	VS_FROM_CPU = 4,
	VS_FROM_TID = 5,
	VS_FROM_PID = 6,
	VS_FROM_COMM = 7,  /* of the current task: from character `offset` on */
	VS_FROM_COUNT = 8, /* count number `number` of the looks (look_shared.h) */
	VS_FROM_STACK = 9, /* number of the hit's stack; 0: none was taken */
	/* As VS_FROM_CONTEXT, by a load that user space has written into the program. Only user
	 * space uses it for its copy of an event. */
	VS_FROM_LOAD = 10,
};

struct vs_user_value {
	vs_u16 offset;
	vs_u16 bytes; /* 1 to 8; with any other number, the value is 0 */
	vs_u16 from;  /* enum vs_user_from */
	vs_u16 is_signed;
	vs_s64 number;
};

enum vs_user_compare {
	VS_COMPARE_EQUAL = 0,
	VS_COMPARE_LESS = 1,
	VS_COMPARE_LESS_SIGNED = 2,
};

/* Compares (value & mask) with `number`. All jumps go forward. */
struct vs_user_test {
	struct vs_user_value value;
	vs_u64 mask, number;
	vs_u16 compare;           /* enum vs_user_compare */
	vs_u16 on_true, on_false; /* index of the next test, VS_USER_KEEP or VS_USER_SKIP */
	vs_u16 reserved;
};

struct vs_user_slot {
	vs_u32 id; /* 0: hits are ignored */
	/* 1: hits of every task; 0: hits of followed threads whose VM is in `vms` and, unless `vms`
	 * is 0, of watched tasks (watch.h) */
	vs_u32 untraced;
	vs_u64 vms; /* bits 1 << (number of the VM % 64) */
};

/* The values of the tests and, after them, those of a hit's event. */
enum { VS_USER_LOADS = VS_USER_TESTS_MAX + VS_USER_SLOT_VALUES };

/* What user space writes into the program of an event. */
struct vs_user_event {
	vs_u32 slot; /* index */
	vs_u32 n_values;
	vs_u32 first_test; /* VS_USER_KEEP: there is no test */
	vs_u32 per_window; /* largest number of hits per window and CPU that become events */
	vs_u32 returned;   /* by the program */
	vs_u32 stack;      /* 1: a hit that becomes an event takes the stack of its task */
	struct vs_user_value values[VS_USER_SLOT_VALUES];
	struct vs_user_test tests[VS_USER_TESTS_MAX];
};

/*
 * The gaps. A number: the 64-bit constant VS_USER_GAP << 32 | offset in struct vs_user_event << 8 |
 * bytes. A load of 8 bytes at the offset VS_USER_GAP_LOAD + i of the context: the load of value i
 * (VS_USER_LOADS), if it needs one.
 */
enum { VS_USER_GAP = 0x76734761, VS_USER_GAP_LOAD = 0x6000 };

/* Counts the hits of a slot on one CPU. */
struct vs_user_state {
	vs_u64 window;     /* the current one: CLOCK_MONOTONIC >> VS_USER_WINDOW_LOG2_NS */
	vs_u64 tick;       /* the kernel's count of ticks when `window` was determined */
	vs_u64 taken;      /* in this window */
	vs_u64 skipped;    /* hits above the limit since the last VS_EVENT_USER_LIMITED */
	vs_u64 skipped_ns; /* CLOCK_MONOTONIC of the first of them */
	vs_u64 limited;    /* total of hits above the limit */
	vs_u64 kept;       /* total of hits that became events */
	/* The task whose name was announced last, and that name. */
	vs_u64 announced_ids, announced_comm[2];
	vs_u64 announcements; /* number of names that had been emitted then */
};

#endif
