/* SPDX-License-Identifier: GPL-2.0-only */
/* What hints.c keeps of the events, for hints_facts.c to make facts of. */
#ifndef STALL_HINTS_INTERNAL_H
#define STALL_HINTS_INTERNAL_H

#include "host-collector/analyze/stall/hints.h"

enum hint_kind {
	HINT_SPIN,   /* PAUSE exits, one after the other */
	HINT_CALL,   /* `what`, another vCPU, owes the answer to an interrupt */
	HINT_POLL,   /* reads of the device register `what` */
	HINT_NESTED, /* it entered a guest of its own, and did not come back before the end */
	HINT_KEPT,   /* the host kept it from the guest; `pid` had its pCPU, if any */
	HINT_UNSEEN, /* nobody knows what it did */
};

struct hint {
	enum hint_kind kind;
	enum vcpu_state state; /* HINT_KEPT: the longest */
	struct host_ns begin, end;
	uint64_t what;
	uint32_t count;
	int32_t pid;
	enum keeper keeper; /* what `pid` did */
	int64_t longest_ns;
};

enum { LOSSES = 64, HINTS_KEPT = 256, CALLERS = 4, REGISTERS = 4, RETURN_EVENTS = 8 };

/* Shorter pieces explain no stall, and would push out those that do. */
static const int64_t hint_min_ns = 1000000;

struct run { /* under way */
	struct host_ns begin, last;
	uint64_t what;
	uint32_t count, others; /* others: of its kind, but not it, meanwhile */
};

struct vcpu_hints {
	struct run spin, nested, registers[REGISTERS];
	bool in_guest_of_its_own;
	struct { /* unanswered interrupts that call this CPU */
		bool open;
		uint32_t caller;
		struct host_ns since;
	} calls[CALLERS];
	struct hint kept; /* under way if longer than nothing */
	/* The guest CPU's silence that ended last, and when it answered a call just after that. */
	struct host_ns guest_last, silence_end, called;
	unsigned since_silence;
	uint64_t n; /* ever */
	struct hint *ring;
};

struct hints {
	bool spins_exit; /* a PAUSE exit has been seen: this machine has them */
	uint64_t n_lost; /* times in which events of the host's were missing, the newest kept */
	struct loss {
		struct host_ns first, last;
	} lost[LOSSES];
	struct vcpu_hints *vcpus[VS_CPUS_MAX];
};

enum { HINT_PORT_BIT = 63 }; /* of `what` of HINT_POLL: it is a port */

/* Who kept a vCPU from the guest, in a span that denies: 0 if nobody is known. */
int32_t hint_keeper(const struct vcpu_span *span, enum keeper *how);
/* The run so far, as a hint. */
struct hint hint_of_run(const struct run *r, enum hint_kind kind);
/* KVM doubles the time that a spin may take until its next exit, as long as the thread is not
 * scheduled: what follows within that time belongs to it, also if one exit was lost in between. */
int64_t hint_spin_gap_ns(const struct run *r);
/* Are these reads of one register a poll? */
bool hint_run_polls(const struct run *r);

#endif
