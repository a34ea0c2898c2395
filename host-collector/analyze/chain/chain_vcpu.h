/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The open chains of one vCPU: what analyze/chain/chain.h joins, event by event. Whoever feeds it has
 * found out which vCPU an event is about; nothing here looks anything up.
 */
#ifndef CHAIN_CHAIN_VCPU_H
#define CHAIN_CHAIN_VCPU_H

#include "host-collector/analyze/chain/chain.h"

enum {
	CHAIN_VECTORS = 256,
	CHAIN_OPEN_MAX = 32,
	CHAIN_IRQS = 32,
	CHAIN_ALONE = 4,
	CHAIN_RAISERS = 8,
	CHAIN_MOVES = 64,           /* a power of two */
	CHAIN_SYSTEM_VECTOR = 0xec, /* Linux: from here on no device's */
	CHAIN_RESCHEDULE_VECTOR = 0xfd,
};

/* Where the vCPU thread is, as far as interrupts care. */
enum chain_where {
	CHAIN_IN_GUEST,
	CHAIN_IN_EXIT, /* KVM or VMM */
	CHAIN_WAITING, /* for a pCPU, or stopped */
	CHAIN_SLEEPING,
	CHAIN_NOWHERE, /* not known */
	CHAIN_WHERE_COUNT
};

enum chain_end { CHAIN_END_HANDLED, CHAIN_END_HALF, CHAIN_END_TORN };

struct chain_sink {
	void (*closed)(void *context, const struct chain *c, enum chain_end end);
	void (*late)(void *context, const struct chain *c);
	/* A timer's, after none was handled for the limit. */
	void (*tick)(void *context, const struct chain *c);
	/* Found lost; then, if it ever is, handled; else once more at the end. */
	void (*lost)(void *context, const struct chain *c, bool halted, uint32_t progress);
	void (*found)(void *context, const struct chain *c);
	/* Raised for a vCPU (or CHAIN_NO_VCPU), and not accepted. vector 0: not told. */
	void (*ignored)(void *context, uint32_t vm, uint32_t vcpu, enum chain_source source,
			uint8_t vector);
	void *context;
};

struct chain_open {
	struct chain c;
	bool used;
	bool kicked; /* the vCPU was not in the guest when it began, or has left it since */
	bool inject_missing, handler_missing; /* may be, for events were lost */
	/* Its handler ran unseen; kept for its injection, which is no other interrupt's, if it
	 * comes until then, for the clocks. */
	bool torn;
	struct host_ns torn_until;
	bool masked;    /* the vCPU slept with it pending, and the guest was not idle (a spinlock's
			   HLT) */
	bool ambiguous; /* by the clocks, a handler before it may have served it */
	bool halted;    /* LOST for this */
	bool progress_known;
	uint64_t progress_begun;               /* the vCPU's when it began... */
	uint64_t progress;                     /* and when time enough had passed */
	int64_t counted_ns[CHAIN_WHERE_COUNT]; /* so much of the vCPU's clocks is in place_ns */
	struct host_ns last;
};

/* A handler whose interrupt has not been seen (yet). */
struct chain_alone {
	bool used, vector, exited;
	bool torn; /* only its exit was seen */
	uint32_t number;
	struct host_ns t, exit;
	uint32_t err_ns;
	struct chain_open *deferred; /* injected then: its, unless another follows at once */
	struct host_ns injected;
	int64_t clock_ns[CHAIN_WHERE_COUNT]; /* the vCPU's at `t` */
};

struct chain_vcpu {
	uint32_t vm, vcpu;
	uint16_t pcpu;
	enum chain_where where;
	struct host_ns since;
	int64_t clock_ns[CHAIN_WHERE_COUNT]; /* time spent in each until `since` */
	struct chain_move {                  /* where it was before, from when on */
		struct host_ns since;
		enum chain_where where;
	} moves[CHAIN_MOVES];
	uint64_t n_moves; /* ever; the newest are kept */
	bool woken_known; /* it was woken, and has not entered the guest since */
	bool woken_spent; /* by an interrupt that an accept has shown */
	struct host_ns woken, scheduled;
	int64_t woken_clock_ns[CHAIN_WHERE_COUNT];
	bool injects;          /* this KVM shows injections */
	bool takes_uninjected; /* but not of all, and not as posted */
	bool handlers_counted; /* the guest does not tell all of its short handlers */
	bool agent;            /* the guest's events come: from, until */
	struct host_ns guest_first, guest_last;
	uint64_t progress;
	struct host_ns
		progress_since;   /* its newest came later than this, whatever the clocks say */
	uint32_t guest_err_ns;    /* of its newest events */
	struct host_ns gap_until; /* what begins until then may have been handled unseen */
	uint64_t guest_seen, guest_gap;       /* events; how many there were at the last gap... */
	uint64_t exit_seen;                   /* ...and at the newest end of a handler */
	uint64_t timers[CHAIN_VECTORS / 64];  /* vectors that have been a timer's */
	uint64_t handled[CHAIN_VECTORS / 64]; /* vectors that have had a handler */
	uint8_t accepted[CHAIN_VECTORS], served[CHAIN_VECTORS]; /* 1 + index into open, 0 none */
	unsigned n_accepted;
	struct chain_plain { /* the newest accept, by kvm_apic_accept_irq */
		struct host_ns t;
		int32_t raiser;
		uint8_t vector;
	} plain;
	struct chain_open open[CHAIN_OPEN_MAX];
	struct chain_open *entering; /* injected, the entry is to come */
	struct chain_open *handling; /* its handler runs */
	struct chain_open *leaving;  /* its handler has ended, softirqs may follow */
	struct chain_open *softirq;  /* whose softirq runs */
	struct chain_open *newest;   /* handled */
	struct chain_irq {
		bool used;
		uint32_t irq;
		uint8_t vector, trust;
	} irqs[CHAIN_IRQS];
	struct chain_raiser { /* of a task whose VM nobody has told */
		int32_t pid;
		uint8_t vector, handled; /* so many in a row, at once */
	} raisers[CHAIN_RAISERS];
	unsigned n_raisers;
	struct chain_alone alone[CHAIN_ALONE];
	unsigned n_alone, n_deferred;
	struct host_ns exit_last,
		exit_before; /* of handlers: the newest's; before the newest began */
	uint64_t n_delivered;
	/* From an injection to its handler, lately; the clocks' error is in it. */
	int64_t delivery_ns, delivery_varies_ns;
	struct host_ns tick; /* the newest timer's handler */
	uint64_t handlers_alone;
	int64_t limit_ns;
	struct chain_sink sink;
};

struct chain_accept {
	uint8_t vector;
	bool level, certain;
	bool posted;       /* kvm_apicv_accept_irq, which follows the accept */
	bool own;          /* in the vCPU's own thread */
	bool source_known; /* source, source_at: seen; else what can be told without */
	enum chain_source source;
	struct host_ns source_at;
	uint32_t gsi;
	int32_t raiser;
	uint32_t err_ns;
};

/* A point in time of an event, and its bound. */
struct chain_when {
	struct host_ns t;
	uint32_t err_ns;
};

/* limit_ns: from where on an interrupt is late. It decides what the sink is told of late and lost
 * ones, never how they are joined. The sink is copied. */
void chain_vcpu_init(struct chain_vcpu *v, uint32_t vm, uint32_t vcpu, int64_t limit_ns,
		     const struct chain_sink *sink);
/* It is `t` now: decides what was to be decided by then. Comes before each of the following, so
 * that the result does not depend on how often anybody looks. */
void chain_vcpu_now(struct chain_vcpu *v, struct host_ns t);
/* Host side. */
void chain_vcpu_moved(struct chain_vcpu *v, struct host_ns t, enum chain_where where);
void chain_vcpu_woken(struct chain_vcpu *v, struct host_ns t);
void chain_vcpu_scheduled(struct chain_vcpu *v, struct host_ns t, uint16_t pcpu);
void chain_vcpu_accept(struct chain_vcpu *v, struct host_ns t, const struct chain_accept *a);
void chain_vcpu_inject(struct chain_vcpu *v, struct chain_when w, uint8_t vector, bool again);
void chain_vcpu_entry(struct chain_vcpu *v, struct host_ns t);
/* vector -1: not known */
void chain_vcpu_eoi(struct chain_vcpu *v, struct host_ns t, int vector);
/* Events of pCPU `cpu` are missing since `from`. */
void chain_vcpu_host_gap(struct chain_vcpu *v, struct host_ns from, uint16_t cpu);
/* Guest side. `vector`: number is a vector, else an irq. */
void chain_vcpu_handler(struct chain_vcpu *v, struct chain_when w, bool vector, uint32_t number);
void chain_vcpu_handler_exit(struct chain_vcpu *v, struct host_ns t, bool vector, uint32_t number);
void chain_vcpu_softirq(struct chain_vcpu *v, struct chain_when w, uint32_t number);
void chain_vcpu_softirq_exit(struct chain_vcpu *v, struct host_ns t, uint32_t number);
void chain_vcpu_switch(struct chain_vcpu *v, struct chain_when w);
/* `lost` events are missing from `w` on, for length_ns if that is known, else 0; lost 0: until the
 * guest's next event. */
void chain_vcpu_guest_gap(struct chain_vcpu *v, struct chain_when w, uint64_t lost,
			  int64_t length_ns);
/* It halted from..to, as is known once it is over. */
void chain_vcpu_halted(struct chain_vcpu *v, struct host_ns from, struct host_ns to);
/* Now and then: what is lost, what is over. `idle`: by the guest's account, or nobody tells. */
void chain_vcpu_sweep(struct chain_vcpu *v, struct host_ns now, bool idle);
void chain_vcpu_finish(struct chain_vcpu *v, struct host_ns now);

#endif
