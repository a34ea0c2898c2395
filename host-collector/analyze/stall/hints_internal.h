/* SPDX-License-Identifier: GPL-2.0-only */
/* The data that hints.c collects from events and that hints_facts.c turns into facts. */
#ifndef STALL_HINTS_INTERNAL_H
#define STALL_HINTS_INTERNAL_H

#include "host-collector/analyze/stall/hints.h"
#include "host-collector/analyze/stall/shown_events.h"
#include "host-collector/model/exit_name.h"

enum hint_kind {
	HINT_SPIN,   /* consecutive PAUSE exits */
	HINT_CALL,   /* vCPU `what` has not answered an IPI */
	HINT_POLL,   /* reads of the device register `what` */
	HINT_NESTED, /* it ran a nested guest */
	HINT_KEPT,   /* the host kept it from the guest */
	HINT_UNSEEN, /* its state is unknown */
};

struct hint {
	enum hint_kind kind;
	enum vcpu_state state; /* HINT_KEPT: state of its longest span */
	struct host_ns begin, end;
	uint64_t what;      /* HINT_CALL: vCPU; HINT_POLL: address or port (HINT_PORT_BIT) */
	uint32_t count;     /* number of events */
	int32_t pid;        /* HINT_KEPT: the host task responsible; 0: unknown */
	enum keeper keeper; /* HINT_KEPT: what `pid` did */
	int64_t longest_ns; /* HINT_KEPT: length of its longest span */
};

enum { LOSSES = 64, HINTS_KEPT = 256, CALLERS = 4, REGISTERS = 4, RETURN_EVENTS = 8 };

/* Shorter hints are not kept: they explain no stall and would displace longer ones. */
static const int64_t hint_min_ns = 1000000;

struct run { /* a hint in progress */
	struct host_ns begin, last;
	uint64_t what;
	uint32_t count, others; /* others: other device accesses meanwhile */
};

struct vcpu_hints {
	struct run spin, nested, registers[REGISTERS];
	bool in_guest_of_its_own;
	struct { /* unanswered IPIs to this vCPU */
		bool open;
		uint32_t caller;
		struct host_ns since;
	} calls[CALLERS];
	struct host_ns block_issued; /* when it last sent a request to a block device; 0: never */
	uint32_t block_device;       /* that device's number */
	struct hint kept;            /* in progress if longest_ns is not 0 */
	/* guest_last: time of the newest event. silence_end: end of the newest time without events.
	 * called: the same time, if the guest CPU answered an IPI just after it and the IPI may
	 * have been sent before it. */
	struct host_ns guest_last, silence_end, called;
	unsigned since_silence; /* events since silence_end */
	uint64_t n;             /* number of all hints; the newest HINTS_KEPT are kept */
	struct hint *ring;      /* HINTS_KEPT; NULL before the first */
};

/* What an exit shows, as found last. All zero: an exit without a sign, of no known processor. */
struct known_sign {
	uint32_t isa, reason;
	enum exit_sign sign;
};

enum { KNOWN_SIGNS = 64 };

struct hints {
	struct known_sign signs[KNOWN_SIGNS]; /* by reason % KNOWN_SIGNS */
	bool spins_exit; /* a PAUSE exit was observed: the host intercepts them */
	uint64_t n_lost; /* number of all losses of host events; the newest LOSSES are kept */
	struct loss {
		struct host_ns first, last;
	} lost[LOSSES];
	size_t vcpus_end; /* 1 + the highest index of a vCPU */
	struct vcpu_hints *vcpus[VS_CPUS_MAX];
	struct shown_events shown;
};

enum { HINT_PORT_BIT = 63 }; /* in `what` of HINT_POLL: the register is a port */

/* Returns the host task that kept the vCPU from the guest in this span; 0: unknown. Sets *how to
 * what the task did. */
int32_t hint_keeper(const struct vcpu_span *span, enum keeper *how);
/* Returns the run so far as a hint. */
struct hint hint_of_run(const struct run *r, enum hint_kind kind);
/* Returns the time in ns within which the next PAUSE exit belongs to the same spin. KVM doubles the
 * time between the exits of a spin while the thread stays on its pCPU; the result allows for one
 * lost exit. */
int64_t hint_spin_gap_ns(const struct run *r);
/* Returns true if the guest polls the register of this run. */
bool hint_run_polls(const struct run *r);

#endif
