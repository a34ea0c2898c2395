/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interrupt chains: joins a host's injection to the guest's handler, one chain per interrupt, from
 * whatever raised it to its EOI. A point that was not seen is "not observed", never zero, and a
 * stage counts only if both its ends were seen.
 *
 * The joiner (chain_internal.h) goes by vCPU, vector and order: an accept sets the vector's bit
 * (IRR), more accepts until the injection coalesce onto it, a handler consumes it. Where nothing
 * injects (posted interrupts, a KVM without that tracepoint) the handler itself does. A Linux irq
 * number is no vector: which it is, the injections teach. A guest's stamp may precede what caused
 * it by as much as the clocks may be wrong.
 *
 * Lost events: a chain that may have been handled unseen is torn, counted, and in no figure. Which
 * gap may hide what is known: injections are only missing where the vCPU ran, a handler's entry and
 * exit only where the guest CPU has a gap of two.
 */
#ifndef CHAIN_CHAIN_H
#define CHAIN_CHAIN_H

#include "clock/histogram.h"
#include "host-collector/model/model.h"

/* X(NAME, "name") What raised it. */
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

/* X(NAME, "name", meaning) */
#define CHAIN_POINTS(X)                                                                            \
	X(SOURCE, "source", "kvm_msi_set_irq, kvm_set_irq or kvm_apic_ipi")                        \
	X(ACCEPT, "accept", "the vCPU's local APIC took it (kvm_apic_accept_irq)")                 \
	X(WAKEUP, "wakeup", "the sleeping vCPU thread was woken; of a timer: it expired")          \
	X(SCHED_IN, "sched_in", "the vCPU thread got a pCPU")                                      \
	X(INJECT, "inject", "kvm_inj_virq")                                                        \
	X(ENTRY, "entry", "the kvm_entry that delivered it")                                       \
	X(HANDLER, "handler", "the guest's vector entry or irq_handler_entry")                     \
	X(HANDLER_EXIT, "handler_exit", "the end of that")                                         \
	X(SOFTIRQ, "softirq", "the first softirq that ran on its way out")                         \
	X(SOFTIRQ_EXIT, "softirq_exit", "the end of that")                                         \
	X(EOI, "eoi", "kvm_eoi or kvm_pv_eoi: as KVM learned of it")

enum chain_point {
#define X(NAME, ...) CHAIN_##NAME,
	CHAIN_POINTS(X)
#undef X
		CHAIN_POINT_COUNT
};

/* X(NAME, "name", from, to) LATENCY is from the chain's begin (chain_begin). */
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

/* X(NAME, "name", meaning) Where the time from begin to handler went; they sum to it. */
#define CHAIN_PLACES(X)                                                                            \
	X(NOT_SCHEDULED, "not_scheduled", "the vCPU thread wanted a pCPU")                         \
	X(ASLEEP, "asleep", "halted (or blocked) until woken")                                     \
	X(EXIT_HANDLING, "exit_handling", "on a pCPU in KVM or the VMM")                           \
	X(INTERRUPTS_OFF, "interrupts_off", "in the guest, which did not take interrupts")         \
	X(DELIVERY, "delivery",                                                                    \
	  "in the guest: until it was kicked out, and from entry to handler")                      \
	X(UNKNOWN, "unknown", "the vCPU's state is not known")

enum chain_place {
#define X(NAME, ...) CHAIN_PLACE_##NAME,
	CHAIN_PLACES(X)
#undef X
		CHAIN_PLACE_COUNT
};

/* As in tables and JSON ("msi"); static. */
const char *chain_source_name(enum chain_source s);
const char *chain_stage_name(enum chain_stage s);
const char *chain_place_name(enum chain_place p);

struct chain {
	uint32_t vm, vcpu;
	uint8_t vector;
	bool level;   /* level-triggered */
	bool posted;  /* delivered without an exit (kvm_apicv_accept_irq) */
	bool certain; /* that it is this VM's: the kernel does not say, its raiser is known */
	bool lost;    /* see chain_trouble */
	enum chain_source source;
	uint32_t gsi;                       /* of GSI */
	int32_t raiser;                     /* host thread (or whom it interrupted) */
	int32_t irq;                        /* the guest's irq number, -1: has none or not known */
	int32_t softirq;                    /* number of SOFTIRQ, -1 none */
	uint32_t coalesced;                 /* more accepts that it served */
	uint32_t observed;                  /* bit per enum chain_point */
	uint32_t host_err_ns, guest_err_ns; /* of the points that each side stamped */
	struct host_ns begin;
	struct host_ns at[CHAIN_POINT_COUNT]; /* where observed */
	int64_t place_ns[CHAIN_PLACE_COUNT];  /* if the handler was */
};

static inline bool chain_saw(const struct chain *c, enum chain_point p)
{
	return c->observed >> p & 1;
}

/* The length of a stage, negative by at most the clocks' error. False: not observed. */
bool chain_stage_ns(const struct chain *c, enum chain_stage s, int64_t *ns);

/* The vCPU of what was raised for nobody can tell whom. */
#define CHAIN_NO_VCPU 0xfffffu

/* Chains of one vCPU, vector and source. */
struct chain_group {
	uint32_t vm, vcpu;
	uint8_t vector; /* 0: not told by what raised it (`ignored` only) */
	enum chain_source source;
	int32_t irq;         /* the newest chain's */
	uint64_t handled;    /* joined to their handler */
	uint64_t half;       /* the guest's side not seen: no agent, or no tracepoint there */
	uint64_t coalesced;  /* accepts that another's handler served */
	uint64_t posted;     /* of handled */
	uint64_t torn;       /* events lost: in none of the above */
	uint64_t ignored;    /* raised, and no local APIC took it: in none of the above either */
	uint64_t moved;      /* of handled: its irq had come by another vector or vCPU before */
	uint64_t late, lost; /* beyond the limit; lost: see below */
	uint64_t negative;   /* stages below zero, within the clocks' error or not */
	uint64_t beyond;     /* of these: by more than the clocks' error */
	struct histogram stages[CHAIN_STAGE_COUNT]; /* negative ones count as 0 */
	int64_t place_ns[CHAIN_PLACE_COUNT];        /* sums */
};

/*
 * Evidence for the verdicts interrupt_lost and timer_late. LOST: accepted, certainly this VM's, not
 * handled for the limit although the vCPU halted with it pending, or the guest went on to do what
 * it only does with interrupts on (switched tasks, ran softirqs, took an interrupt of lower
 * priority), and no lost event can hide a handler. LATE: handled, but later than the limit.
 */
enum chain_trouble_kind { CHAIN_LATE, CHAIN_LOST };

struct chain_trouble {
	enum chain_trouble_kind kind;
	struct chain chain;   /* as it is known now */
	struct host_ns until; /* it was handled; or, `open`, is not yet */
	bool open;
	bool halted;       /* LOST: the vCPU slept with it pending */
	uint32_t progress; /* LOST: what the guest did since with interrupts on, events */
};

#define CHAIN_LIMIT_NS 10000000ll

enum { CHAIN_WORST_MAX = 32, CHAIN_TROUBLES_MAX = 256 };

struct chain_options {
	/* From when on an interrupt is late, or lost; 0: CHAIN_LIMIT_NS. How interrupts are joined,
	 * and where their time goes, does not depend on it. */
	int64_t limit_ns;
	bool merge_vcpus; /* one group for all vCPUs of a VM; its vcpu is 0 */
	/* Each chain as it is closed (about 1 s after its last point), torn ones not. May be NULL.
	 */
	void (*closed)(void *context, const struct chain *c);
	/* Each trouble as it is found; again if a LATE one turns out LOST, and once a LOST one is
	 * handled. May be NULL. */
	void (*trouble)(void *context, const struct chain_trouble *t);
	void *context;
};

/* A timer interrupt whose vCPU had handled none for the limit before. */
struct chain_tick {
	uint32_t vm, vcpu;
	struct host_ns accepted, handled;
	uint32_t err_ns;
};

struct chains;

/* Subscribes to the model, which must not be fed any more once this is freed. NULL on ENOMEM. */
struct chains *chains_new(struct model *m, const struct chain_options *options);
void chains_free(struct chains *x);
/* As chain_options.closed, which it replaces. */
void chains_watch(struct chains *x, void (*closed)(void *context, const struct chain *c),
		  void *context);
/* After the last event: closes the chains that are open; those not handled are counted nowhere, and
 * of those lost the places are counted up to then. */
void chains_finish(struct chains *x);
/* Forgets groups, worst and troubles; open chains stay open. */
void chains_clear(struct chains *x);
/* 0, or -ENOMEM: something could not be counted. */
int chains_error(const struct chains *x);
/* Item number `index`, NULL past the last. Borrowed. */
const struct chain_group *chains_group(const struct chains *x, size_t index);
/* The chains of the highest latency, worst first; at most CHAIN_WORST_MAX. Borrowed. */
const struct chain *chains_worst(const struct chains *x, size_t index);
/* The newest CHAIN_TROUBLES_MAX in order of their finding; NULL past the last. Borrowed until the
 * next event. */
const struct chain_trouble *chains_trouble(const struct chains *x, size_t index);
/* The trouble of this kind that overlaps from..to of a vCPU longest (LATE: of timers only if
 * `timers`), NULL: none. */
const struct chain_trouble *chains_trouble_in(const struct chains *x, uint32_t vm, uint32_t vcpu,
					      enum chain_trouble_kind kind, bool timers,
					      struct host_ns from, struct host_ns to);
/* The one of a vCPU whose handler ran at `t`; NULL: none did, or its accept was not seen, or it is
 * too long ago. Borrowed until the next event. */
const struct chain_tick *chains_tick_at(const struct chains *x, uint32_t vm, uint32_t vcpu,
					struct host_ns t);
/* Have a VM's timers been joined to their handlers, so that one that is missing means something? */
bool chains_see_timers(const struct chains *x, uint32_t vm);
/* Handlers whose interrupt was not seen on the host: of devices that KVM does not carry, or before
 * the recording, or lost. */
uint64_t chains_handlers_alone(const struct chains *x);

#endif
