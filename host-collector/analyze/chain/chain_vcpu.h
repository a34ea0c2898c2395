/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The open chains of one vCPU. Joins one event at a time, by the rules of chain.h. The caller
 * (chain_route.c) has already found the vCPU of each event. Memory is bounded: at most
 * CHAIN_OPEN_MAX chains are open, and no function allocates.
 */
#ifndef CHAIN_CHAIN_VCPU_H
#define CHAIN_CHAIN_VCPU_H

#include "host-collector/analyze/chain/chain.h"

enum {
	CHAIN_VECTORS = 256,
	CHAIN_OPEN_MAX = 32,        /* open chains */
	CHAIN_IRQS = 32,            /* irqs whose vector is kept */
	CHAIN_ALONE = 4,            /* handlers that wait for their interrupt */
	CHAIN_RAISERS = 8,          /* tasks of unknown VMs */
	CHAIN_MOVES = 64,           /* past places of the vCPU thread; a power of two */
	CHAIN_SYSTEM_VECTOR = 0xec, /* Linux: first vector that no device uses */
	CHAIN_RESCHEDULE_VECTOR = 0xfd,
};

/* Where the vCPU thread is: the vCPU's state, as far as interrupts depend on it. */
enum chain_where {
	CHAIN_IN_GUEST,
	CHAIN_IN_EXIT, /* on a pCPU in KVM or the VMM */
	CHAIN_WAITING, /* runnable or stopped */
	CHAIN_SLEEPING,
	CHAIN_NOWHERE, /* unknown */
	CHAIN_WHERE_COUNT
};

enum chain_end {
	CHAIN_END_HANDLED, /* with its handler */
	CHAIN_END_HALF,    /* without a handler: unmatched */
	CHAIN_END_TORN,    /* incomplete: lost events may hide its handler */
};

/* Receives the results. All callbacks are required; chains are borrowed for the call. */
struct chain_sink {
	void (*closed)(void *context, const struct chain *c, enum chain_end end);
	/* A handler began later than the limit. */
	void (*late)(void *context, const struct chain *c);
	/* A timer interrupt was handled, at least the limit after the previous one. */
	void (*tick)(void *context, const struct chain *c);
	/* An interrupt was found lost. Called again by chain_vcpu_finish if it is still pending. */
	void (*lost)(void *context, const struct chain *c, bool halted, uint32_t progress);
	/* The handler of an interrupt that was found lost has begun. */
	void (*found)(void *context, const struct chain *c);
	/* An interrupt was raised and not accepted. vcpu may be CHAIN_NO_VCPU; vector 0: unknown.
	 */
	void (*ignored)(void *context, uint32_t vm, uint32_t vcpu, enum chain_source source,
			uint8_t vector);
	void *context;
};

/* The receivers of the results. Each listener has a limit of its own, which does not affect how
 * events are joined. */
enum { CHAIN_LISTENERS_MAX = 3 };
struct chain_listeners {
	size_t n;
	struct chain_listener {
		int64_t limit_ns; /* age from which an interrupt is late or lost */
		struct chain_sink sink;
	} of[CHAIN_LISTENERS_MAX];
};

/* What was found out about a pending interrupt for one listener. */
struct chain_pending {
	bool lost;
	bool halted;         /* lost because the vCPU halted with it pending */
	bool progress_known; /* `progress` is valid */
	uint64_t progress;   /* chain_vcpu.progress a quarter of the limit after its accept */
};

struct chain_open {
	struct chain c; /* c.lost has the value for the listener that is called */
	bool kicked; /* the vCPU was not in the guest at its begin, or has left the guest since */
	bool inject_missing, handler_missing; /* a gap may hide its injection, its handler */
	/* Its handler ran without an event. Kept until torn_until (the clocks' error), so that its
	 * injection is not taken for another interrupt's. */
	bool torn;
	struct host_ns torn_until;
	bool masked;    /* the vCPU slept with it pending while the guest was not idle (the HLT of
			   a spinlock) */
	bool ambiguous; /* within the clocks' error, an earlier handler may have served it */
	struct chain_pending pending[CHAIN_LISTENERS_MAX];
	uint64_t progress_begun;               /* chain_vcpu.progress at its begin */
	int64_t counted_ns[CHAIN_WHERE_COUNT]; /* chain_vcpu.clock_ns when c.place_ns was updated
						  last */
	struct host_ns last;                   /* its newest point */
};

/* A handler whose interrupt has not been observed so far. */
struct chain_alone {
	bool used, vector, exited;
	bool torn; /* only its exit was observed */
	uint32_t number;
	struct host_ns t, exit; /* entry; exit if `exited` */
	uint32_t err_ns;
	/* Its chain, unless another interrupt follows within the clocks' error. */
	struct chain_open *deferred;
	struct host_ns injected;             /* injection of `deferred` */
	int64_t clock_ns[CHAIN_WHERE_COUNT]; /* chain_vcpu.clock_ns at `t` */
};

/* The members that most events read or change come first: they are in few cache lines, what a sweep
 * needs of most vCPUs is in one. With many vCPUs, the rest does not fit into a cache. */
struct chain_vcpu {
	uint32_t vm, vcpu;
	uint16_t pcpu;
	bool injects;          /* KVM emits injections */
	bool takes_uninjected; /* some interrupts that are not posted have no injection */
	bool handlers_counted; /* the guest aggregates short handlers (level summary) */
	bool agent;            /* the guest's events arrive */
	bool woken_known;      /* the thread was woken and has not entered the guest since */
	bool woken_spent;      /* an accepted interrupt explains the wake-up */
	uint32_t in_use;       /* bitmap of the open chains */
	unsigned n_accepted, n_deferred;
	enum chain_where where;
	/* No open chain without a pending interrupt is old enough to be closed until then. */
	struct host_ns none_old_until;
	struct host_ns since; /* begin of `where` */
	uint64_t n_moves;     /* number of all moves; the newest CHAIN_MOVES are kept */
	uint64_t progress;    /* number of guest events that need interrupts on */

	int64_t clock_ns[CHAIN_WHERE_COUNT]; /* time spent in each before `since` */
	/* Earliest possible time of the newest task switch or softirq. */
	struct host_ns progress_since;
	struct host_ns guest_first, guest_last; /* its first and newest event */

	struct host_ns gap_until;    /* a gap may hide the handler of a chain that begins before */
	uint64_t guest_seen;         /* number of the guest's events */
	uint64_t guest_gap;          /* 1 + guest_seen at the last gap; 0: no gap */
	uint64_t exit_seen;          /* guest_seen at the newest exit of a handler */
	struct chain_open *entering; /* injected; its VM-entry follows */
	struct chain_open *handling; /* its handler runs */
	struct chain_open *leaving;  /* its handler has ended; softirqs may follow */
	struct chain_open *softirq;  /* its softirq runs */

	struct chain_open *newest; /* the last that was handled */
	/* Newest exit of a handler; newest one before the last entry. */
	struct host_ns exit_last, exit_before;
	struct host_ns tick;  /* begin of the newest timer's handler */
	uint64_t n_delivered; /* chains with injection and handler */
	/* Smoothed time from injection to handler, and its deviation (as in RFC 6298). Includes the
	 * clocks' error. */
	int64_t delivery_ns, delivery_varies_ns;
	uint32_t guest_err_ns; /* bound on the error of its newest events */
	unsigned n_alone;      /* number of all handlers alone; the newest CHAIN_ALONE are kept */

	struct chain_plain { /* the newest accept, by kvm_apic_accept_irq */
		struct host_ns t;
		int32_t raiser;
		uint8_t vector;
	} plain;
	const struct chain_listeners *listeners;
	uint64_t handlers_alone;              /* handlers whose interrupt was not observed */
	uint64_t handled[CHAIN_VECTORS / 64]; /* bitmap of vectors that had a handler */
	uint64_t timers[CHAIN_VECTORS / 64];  /* bitmap of vectors that a timer used */
	struct host_ns woken, scheduled;
	int64_t woken_clock_ns[CHAIN_WHERE_COUNT];
	uint8_t accepted[CHAIN_VECTORS], served[CHAIN_VECTORS]; /* 1 + index into open; 0: none */
	struct chain_move { /* earlier values of `where` and `since` */
		struct host_ns since;
		enum chain_where where;
	} moves[CHAIN_MOVES];
	struct chain_open open[CHAIN_OPEN_MAX];
	struct chain_irq { /* the vector of an irq, with the number of confirmations */
		bool used;
		uint32_t irq;
		uint8_t vector, trust;
	} irqs[CHAIN_IRQS];
	unsigned n_raisers;
	struct chain_raiser { /* a task whose VM is unknown */
		int32_t pid;
		uint8_t vector, handled; /* handled: newest interrupts without delay */
	} raisers[CHAIN_RAISERS];
	struct chain_alone alone[CHAIN_ALONE];
} __attribute__((aligned(64)));

struct chain_accept {
	uint8_t vector;
	bool level, certain; /* as in struct chain */
	bool posted;         /* from kvm_apicv_accept_irq, which follows kvm_apic_accept_irq */
	bool own;            /* accepted by the vCPU's own thread */
	bool source_known;   /* the source event was observed, source_at is valid; else source is
				inferred */
	enum chain_source source;
	struct host_ns source_at;
	uint32_t gsi;
	int32_t raiser;
	uint32_t err_ns;
};

/* The time of an event, with the bound on its error. */
struct chain_when {
	struct host_ns t;
	uint32_t err_ns;
};

/* Initializes `v`. Borrows the listeners. */
void chain_vcpu_init(struct chain_vcpu *v, uint32_t vm, uint32_t vcpu,
		     const struct chain_listeners *listeners);
/* Makes the decisions that were deferred until `t`. */
void chain_deferred_check(struct chain_vcpu *v, struct host_ns t);
/* Advances the time to `t` and makes the decisions that were deferred until then. Call it before
 * each of the following functions, so that the result does not depend on the frequency of sweeps.
 */
static inline void chain_vcpu_now(struct chain_vcpu *v, struct host_ns t)
{
	if (v->n_deferred) /* mostly none */
		chain_deferred_check(v, t);
}
/* Events of the host. */
void chain_vcpu_moved(struct chain_vcpu *v, struct host_ns t, enum chain_where where);
void chain_vcpu_woken(struct chain_vcpu *v, struct host_ns t);
void chain_vcpu_scheduled(struct chain_vcpu *v, struct host_ns t, uint16_t pcpu);
void chain_vcpu_accept(struct chain_vcpu *v, struct host_ns t, const struct chain_accept *a);
/* again: KVM injects the interrupt again because an exit interrupted its delivery. */
void chain_vcpu_inject(struct chain_vcpu *v, struct chain_when w, uint8_t vector, bool again);
void chain_vcpu_entry(struct chain_vcpu *v, struct host_ns t);
/* vector -1: unknown */
void chain_vcpu_eoi(struct chain_vcpu *v, struct host_ns t, int vector);
/* Records that events of pCPU `cpu` since `from` are missing. */
void chain_vcpu_host_gap(struct chain_vcpu *v, struct host_ns from, uint16_t cpu);
/* Events of the guest. `vector`: `number` is a vector, else an irq. */
void chain_vcpu_handler(struct chain_vcpu *v, struct chain_when w, bool vector, uint32_t number);
void chain_vcpu_handler_exit(struct chain_vcpu *v, struct host_ns t, bool vector, uint32_t number);
void chain_vcpu_softirq(struct chain_vcpu *v, struct chain_when w, uint32_t number);
void chain_vcpu_softirq_exit(struct chain_vcpu *v, struct host_ns t, uint32_t number);
void chain_vcpu_switch(struct chain_vcpu *v, struct chain_when w);
/* `lost` events are missing from `w` on. length_ns: length of the gap, 0 if unknown. lost 0: the
 * gap lasts until the guest's next event. */
void chain_vcpu_guest_gap(struct chain_vcpu *v, struct chain_when w, uint64_t lost,
			  int64_t length_ns);
/* The vCPU halted from..to. Called when the halt is over. */
void chain_vcpu_halted(struct chain_vcpu *v, struct host_ns from, struct host_ns to);
/* Finds lost interrupts and closes old chains. Call it regularly. `idle`: the guest CPU idles, or
 * its state is unknown. */
void chain_vcpu_sweep(struct chain_vcpu *v, struct host_ns now, bool idle);
/* Closes the open chains. Pending ones are not passed to sink.closed. */
void chain_vcpu_finish(struct chain_vcpu *v, struct host_ns now);

#endif
