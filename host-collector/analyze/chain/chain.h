/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interrupt chains: joins the events of one interrupt, on the host and in the guest, to one chain,
 * from the event that raised it to its EOI. docs/chains.md has the rules and a worked example.
 * A point without an event is "not observed", never zero. A stage has a length only if both of its
 * points were observed.
 *
 * The joiner (chain_internal.h) matches events by vCPU, vector and order. An accept sets the
 * vector's bit in the local APIC (IRR). Further accepts before the injection coalesce with the
 * first. The handler that follows the injection belongs to the chain. Without an injection event
 * (posted interrupts, a KVM without that tracepoint), the handler clears the bit. The guest reports
 * Linux irq numbers, not vectors; injections show which irq has which vector. A guest's stamp may
 * precede its cause by at most the clocks' error.
 *
 * Lost events: a chain whose handler may have run without an event is incomplete. Incomplete chains
 * are counted in chain_group.torn and in no other figure. A gap of a pCPU can hide an injection
 * only if the vCPU may have run there. A gap of a guest CPU can hide a whole handler only if at
 * least two events are missing.
 */
#ifndef CHAIN_CHAIN_H
#define CHAIN_CHAIN_H

#include "clock/histogram.h"
#include "host-collector/model/model.h"

/* X(NAME, "name"): what raised the interrupt. */
#define CHAIN_SOURCES(X)                                                                           \
	X(UNKNOWN, "unknown")                                                                      \
	X(MSI, "msi")                                                                              \
	X(GSI, "gsi")                                                                              \
	X(IPI, "ipi")                                                                              \
	X(TIMER, "timer")

enum chain_source {
#define X(NAME, ...) CHAIN_SOURCE_##NAME,
	CHAIN_SOURCES(X)
#undef X
		CHAIN_SOURCE_COUNT
};

/* X(NAME, "name", meaning): the points of a chain, in the usual order. */
#define CHAIN_POINTS(X)                                                                            \
	X(SOURCE, "source", "kvm_msi_set_irq, kvm_set_irq or kvm_apic_ipi")                        \
	X(ACCEPT, "accept", "the vCPU's local APIC took it (kvm_apic_accept_irq)")                 \
	X(WAKEUP, "wakeup", "the sleeping vCPU thread was woken; of a timer: it expired")          \
	X(SCHED_IN, "sched_in", "the vCPU thread got a pCPU")                                      \
	X(INJECT, "inject", "kvm_inj_virq")                                                        \
	X(ENTRY, "entry", "the kvm_entry that delivered it")                                       \
	X(HANDLER, "handler", "the guest's vector entry or irq_handler_entry")                     \
	X(HANDLER_EXIT, "handler_exit", "the end of that handler")                                 \
	X(SOFTIRQ, "softirq", "the first softirq that ran on its way out")                         \
	X(SOFTIRQ_EXIT, "softirq_exit", "the end of that softirq")                                 \
	X(EOI, "eoi", "kvm_eoi or kvm_pv_eoi: as KVM learned of it")

enum chain_point {
#define X(NAME, ...) CHAIN_##NAME,
	CHAIN_POINTS(X)
#undef X
		CHAIN_POINT_COUNT
};

/* X(NAME, "name", from, to): the stages of a chain. LATENCY starts at chain.begin. */
#define CHAIN_STAGES(X)                                                                            \
	X(LATENCY, "latency", POINT_COUNT, HANDLER)                                                \
	X(RAISE, "raise", SOURCE, ACCEPT)                                                          \
	X(WAKE, "wake", ACCEPT, WAKEUP)                                                            \
	X(SCHEDULE, "schedule", WAKEUP, SCHED_IN)                                                  \
	X(WAIT, "wait", ACCEPT, INJECT)                                                            \
	X(ENTER, "enter", INJECT, ENTRY)                                                           \
	X(DELIVER, "deliver", ENTRY, HANDLER)                                                      \
	X(HANDLE, "handle", HANDLER, HANDLER_EXIT)                                                 \
	X(SOFTIRQ_WAIT, "softirq_wait", HANDLER_EXIT, SOFTIRQ)                                     \
	X(SOFTIRQ_RUN, "softirq_run", SOFTIRQ, SOFTIRQ_EXIT)                                       \
	X(SERVICE, "service", INJECT, EOI)

enum chain_stage {
#define X(NAME, ...) CHAIN_STAGE_##NAME,
	CHAIN_STAGES(X)
#undef X
		CHAIN_STAGE_COUNT
};

/* A division of the time from chain.begin to the handler. The parts sum to that time. */
enum chain_place {
	CHAIN_PLACE_NOT_SCHEDULED,  /* the vCPU thread was runnable and had no pCPU */
	CHAIN_PLACE_ASLEEP,         /* halted (or blocked) until woken */
	CHAIN_PLACE_EXIT_HANDLING,  /* on a pCPU in KVM or the VMM */
	CHAIN_PLACE_INTERRUPTS_OFF, /* in the guest, which did not take interrupts */
	CHAIN_PLACE_DELIVERY, /* in the guest: until KVM kicked it out, and from entry to handler */
	CHAIN_PLACE_UNKNOWN,  /* the vCPU's state is not known */
	CHAIN_PLACE_COUNT
};

/* Return the name that tables and JSON use, for example "msi". Static strings. */
const char *chain_source_name(enum chain_source s);
const char *chain_stage_name(enum chain_stage s);

struct chain {
	uint32_t vm, vcpu;
	uint8_t vector;
	bool level;   /* level-triggered */
	bool posted;  /* delivered without an exit (kvm_apicv_accept_irq) */
	bool certain; /* the task that raised it proves that it belongs to this VM */
	bool lost;    /* was found lost (CHAIN_LOST) */
	enum chain_source source;
	uint32_t gsi;                       /* if source is GSI */
	int32_t raiser;                     /* host thread that ran when it was accepted */
	int32_t irq;                        /* the guest's irq number; -1: none or unknown */
	int32_t softirq;                    /* number of the softirq; -1: none */
	uint32_t coalesced;                 /* further accepts that its handler served */
	uint32_t observed;                  /* bit per enum chain_point */
	uint32_t host_err_ns, guest_err_ns; /* bounds on the error of each side's stamps */
	struct host_ns begin;
	struct host_ns at[CHAIN_POINT_COUNT]; /* valid for points in `observed` */
	int64_t place_ns[CHAIN_PLACE_COUNT];  /* valid if HANDLER is in `observed` */
};

static inline bool chain_saw(const struct chain *c, enum chain_point p)
{
	return c->observed >> p & 1;
}

/* Computes the length of a stage in nanoseconds. It can be negative because of the clocks' error.
 * Returns false if the stage was not observed. */
bool chain_stage_ns(const struct chain *c, enum chain_stage s, int64_t *ns);

/* The `vcpu` of groups that count raised interrupts whose target vCPU is unknown. */
#define CHAIN_NO_VCPU 0xfffffu

/* Counters of the chains of one vCPU, vector and source. */
struct chain_group {
	uint32_t vm, vcpu;
	uint8_t vector; /* 0: unknown (`ignored` only) */
	enum chain_source source;
	int32_t irq;         /* of the newest chain that has one; -1: none */
	uint64_t handled;    /* chains joined to their handler */
	uint64_t half;       /* unmatched: no handler, and no guest events cover the time */
	uint64_t coalesced;  /* accepts that coalesced with an earlier one */
	uint64_t posted;     /* of `handled`: posted interrupts */
	uint64_t torn;       /* incomplete chains, in none of the above */
	uint64_t ignored;    /* raised but accepted by no local APIC, in none of the above */
	uint64_t moved;      /* of `handled`: the irq's previous chain had another vector or vCPU */
	uint64_t late, lost; /* see enum chain_trouble_kind */
	uint64_t negative;   /* stages of negative length */
	uint64_t beyond;     /* of `negative`: by more than the clocks' error */
	struct histogram stages[CHAIN_STAGE_COUNT]; /* lengths in ns; negative ones count as 0 */
	int64_t place_ns[CHAIN_PLACE_COUNT];        /* sums over `handled` */
};

/*
 * Evidence for the verdicts interrupt_lost and timer_late.
 *
 * LATE: the interrupt was handled later than the limit.
 *
 * LOST: the interrupt was accepted, certainly belongs to this VM, and was not handled within the
 * limit. No lost event can hide a handler. The vCPU halted for the limit with the interrupt
 * pending, or the guest made progress that needs interrupts on. Such progress is a task switch, a
 * softirq, or an interrupt that was accepted after the previous handler had ended.
 */
enum chain_trouble_kind { CHAIN_LATE, CHAIN_LOST };

struct chain_trouble {
	enum chain_trouble_kind kind;
	struct chain chain;   /* what is known so far */
	struct host_ns until; /* time of the handler; invalid while `open` */
	bool open;            /* not handled yet */
	bool halted;          /* LOST: the vCPU halted with it pending */
	uint32_t progress;    /* LOST: events since then that need interrupts on */
};

#define CHAIN_LIMIT_NS 10000000ll

enum { CHAIN_WORST_MAX = 32, CHAIN_TROUBLES_MAX = 256 };

struct chain_options {
	/* Age from which an interrupt is late or lost; 0: CHAIN_LIMIT_NS. It affects neither how
	 * events are joined nor how the time is divided. */
	int64_t limit_ns;
	bool merge_vcpus; /* one group for all vCPUs of a VM, with vcpu 0 */
	bool uncounted;   /* no groups and no slowest chains, which saves their cost */
	/* Called for each chain that is closed and not incomplete: when the next interrupt of its
	 * vector is served, or about 1 s after its last point. May be NULL. */
	void (*closed)(void *context, const struct chain *c);
	/* Called for each trouble when it is found; again when a LATE one proves to be LOST, when a
	 * LOST one is handled, and by chains_finish for a LOST one that is still open. May be
	 * NULL. */
	void (*trouble)(void *context, const struct chain_trouble *t);
	void *context;
};

/* A timer interrupt that the vCPU handled, at least the limit after it had handled the previous
 * one. */
struct chain_tick {
	uint32_t vm, vcpu;
	struct host_ns accepted, handled;
	uint32_t err_ns;
};

struct chains;

/* Subscribes to the model. Feed the model no more after chains_free. Returns NULL if out of memory.
 */
struct chains *chains_new(struct model *m, const struct chain_options *options);
/* Returns chains with groups, troubles and a limit of their own that use the joined events of
 * `joined`, which saves the cost of joining them twice. Call it before the first event.
 * chains_finish() of `joined` finishes both. Feed the model no more after chains_free() of either;
 * free them in any order. Returns NULL if out of memory, or if three are joined already. */
struct chains *chains_share(struct chains *joined, const struct chain_options *options);
void chains_free(struct chains *x);
/* Replaces chain_options.closed and its context. */
void chains_watch(struct chains *x, void (*closed)(void *context, const struct chain *c),
		  void *context);
/* Closes the open chains; call it after the last event. Does nothing for the result of
 * chains_share(). A chain whose interrupt is still pending is counted in no group. If it is lost,
 * its trouble is updated up to this time. */
void chains_finish(struct chains *x);
/* Clears groups, slowest chains and troubles. Open chains stay open. */
void chains_clear(struct chains *x);
/* Returns -ENOMEM if something could not be counted, else 0. */
int chains_error(const struct chains *x);
/* Returns group number `index`; NULL after the last. Borrowed. */
const struct chain_group *chains_group(const struct chains *x, size_t index);
/* Returns the chain with the (`index` + 1)-th highest latency; NULL after the last. At most
 * CHAIN_WORST_MAX are kept. Borrowed. */
const struct chain *chains_worst(const struct chains *x, size_t index);
/* Returns trouble number `index` of the newest CHAIN_TROUBLES_MAX, in the order in which they were
 * found; NULL after the last. Borrowed until the next event. */
const struct chain_trouble *chains_trouble(const struct chains *x, size_t index);
/* Returns the trouble of this kind and vCPU with the longest overlap with from..to; NULL if none
 * overlaps. `timers`: consider only timers (LATE only). Borrowed until the next event. */
const struct chain_trouble *chains_trouble_in(const struct chains *x, uint32_t vm, uint32_t vcpu,
					      enum chain_trouble_kind kind, bool timers,
					      struct host_ns from, struct host_ns to);
/* Returns the vCPU's tick whose handler began at `t`; NULL if there is none among the newest 256 of
 * all vCPUs. Borrowed until the next event. */
const struct chain_tick *chains_tick_at(const struct chains *x, uint32_t vm, uint32_t vcpu,
					struct host_ns t);
/* Returns true if a timer interrupt of the VM was joined to its handler before. Only then does a
 * missing one count as evidence. */
bool chains_see_timers(const struct chains *x, uint32_t vm);
/* Returns the number of handlers without an interrupt on the host: the interrupt bypassed KVM, came
 * before the recording, or its events were lost. */
uint64_t chains_handlers_alone(const struct chains *x);

#endif
