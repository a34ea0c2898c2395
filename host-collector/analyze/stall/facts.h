/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The facts of one interval of a guest CPU: how its vCPU spent the time, what was denied to which
 * task, what the guest's interrupts did. The stall detector (stall.h) collects them, the verdict
 * rules (verdict.h) read them. Facts have a fixed size and need no memory of their own, whatever
 * the length of the interval.
 *
 * An interval is a run interval of the guest (docs/glossary.md), a time in which the host kept the
 * vCPU from the guest, a storm of short waits, the time of a lost interrupt, or the time between
 * two readings of the guest's clock.
 */
#ifndef STALL_FACTS_H
#define STALL_FACTS_H

#include "host-collector/model/model.h"
#include "proto/user_event.h"

enum {
	FACTS_SPANS = 8,
	FACTS_HOLDERS = 64,
	FACTS_INTERRUPTS = 8,
	FACTS_HALTS = 8,
	FACTS_EVENTS = 4,
	FACTS_HITS = 7,
	FACTS_SAMPLES = 32
};

/* Sums of the interrupts or softirqs of one kind and number. */
struct facts_interrupt {
	enum guest_cpu_state kind;
	uint32_t number;
	bool vector;
	int64_t ns;
	uint32_t count;
};

/* A host task that held the vCPU's pCPU, and for how long. */
struct facts_holder {
	int32_t pid;
	int64_t ns;
};

/* X(NAME, role of the culprit): what a host task did that kept a vCPU from the guest. */
#define KEEPERS(X)                                                                                 \
	X(HELD_PCPU, HELD_PEER_PCPU)                                                               \
	X(STOPPED, STOPPED_PEER)                                                                   \
	X(TRACED, TRACED_PEER)                                                                     \
	X(ASKED, WROTE_TO_MONITOR)                                                                 \
	X(BIG_LOCK, HELD_BIG_LOCK)                                                                 \
	X(PAGE, PROVIDED_PAGE)

enum keeper {
#define X(NAME, ...) KEEPER_##NAME,
	KEEPERS(X)
#undef X
		KEEPER_COUNT
};

/* Another vCPU of the VM that the host kept from the guest. */
struct facts_peer {
	bool known;
	uint32_t vcpu;
	enum vcpu_state state; /* of the longest span in which it was kept from the guest */
	int32_t pid;           /* the host task responsible; 0: none or unknown */
	enum keeper keeper;    /* what `pid` did */
};

/* What the guest waited for while its vCPU ran or halted (hints.h). A time of 0: not observed. */
struct facts_waits {
	/* lock_ns: it spun or halted for a lock while the host kept lock_owner from the guest.
	 * lock_halted_ns: the part in which it halted. */
	int64_t lock_ns, lock_halted_ns;
	/* It waited for call_target's answer to an IPI while the host kept call_target from the
	 * guest. */
	int64_t call_ns;
	struct facts_peer lock_owner, call_target;
	/* The interval is an interrupt, and the IPI was sent before it: by the interrupted task. */
	bool called_before;
	int64_t longest_ns; /* the longest uninterrupted part of lock_ns or call_ns */
	bool coincidence;   /* lock_ns or call_ns is inferred only from the time at which the wait
			       ended */
	bool lossy;         /* host events in or just before the interval were lost */
	int64_t poll_ns;    /* it polled one device register */
	uint64_t polled;    /* the address or port of that register */
	bool polled_port;
	uint32_t polls;              /* number of reads of it */
	int64_t nested_ns;           /* it ran a nested guest */
	int64_t peer_kept_ns;        /* the longest that the host may have kept another vCPU */
	struct facts_peer peer_kept; /* the vCPU that the host certainly kept longest */
	int64_t peer_surely_kept_ns; /* the length of that time */
	bool spins_unseen; /* no PAUSE exit was observed; the host may not intercept PAUSE */
	bool sampled;      /* lock_ns or call_ns is inferred from stack samples */
	/* The guest CPU that left an IPI unanswered longest, whether or not the host kept its vCPU,
	 * and the length of that time. */
	uint16_t called_cpu;
	int64_t called_ns;
};

/* A stack sample of the running task, taken by the guest's timer (spins.h). */
struct facts_sample {
	struct host_ns t;
	uint32_t kernel; /* id of the kernel stack; 0: not in the kernel */
	bool user;
	uint8_t kind; /* enum spin_kind */
};

/* Summary of the samples from the time in which something was denied. */
struct facts_sampled {
	unsigned n, spins, calls; /* number: all, in a spin for a lock, in a wait for other CPUs */
	bool spinning, computing; /* neither: too few samples, or some of both */
	char function[48];        /* the function with most samples; "": user code */
	unsigned in_function;     /* number of samples in `function` */
};

/* The guest CPU that this interval most likely waited for, if it waited for another CPU of its
 * guest: one whose run interval covers most of the wait. */
struct facts_guest_peer {
	bool known;
	bool unsure; /* the other CPU may have waited for this one instead */
	bool ended;  /* its run interval ended at the same time */
	bool called; /* it did not answer an IPI of this CPU */
	bool ticks_stopped;
	uint16_t cpu;
	enum guest_cpu_state kind;
	uint32_t number; /* of the interrupt */
	bool vector;
	int32_t pid;
	int64_t ns;        /* the part of the wait that its run interval covers */
	int64_t halted_ns; /* this interval's vCPU halted although it had a task to run */
};

/* The host events of one type in the vCPU's thread (shown_events.h). */
struct facts_events {
	uint32_t count;
	struct host_ns t;      /* of the first one */
	struct vs_event first; /* the first one */
};

/* The hits of one event that the user chose, in the vCPU's thread or of its guest CPU
 * (shown_events.h). */
struct facts_hits {
	uint32_t count;
	/* The first one. Borrowed for the call of stall_found, or until the model takes its next
	 * event. */
	const struct user_hit *first;
};

/* Halts count as one if less than 1 ms lies between them. Time in which the vCPU was runnable, and
 * unknown time that may belong to a halt, is not counted as time between them. */
struct facts_halt {
	struct host_ns begin, end;
	struct host_ns until; /* end of the unknown time that follows it, or `end` */
	int64_t runnable_ns;  /* how long the vCPU was runnable in the interval before `until` */
};

/* A lost interrupt: KVM accepted it, and its handler did not run for the threshold (overdue.h). */
struct facts_lost {
	int64_t ns; /* time of the interval in which it was pending; 0: no lost interrupt */
	bool alone; /* the interval is the time of this interrupt */
	bool open;  /* its handler has not run so far */
	uint8_t vector;
	const char *source; /* "msi" and so on (chain_source_name); static */
	int32_t irq;        /* the guest's irq number; -1: unknown */
	int32_t raiser;     /* host thread that ran when it was accepted */
	struct host_ns begin;
};

/* An interrupt whose handler began late: the guest CPU idled, and its vCPU ran (overdue.h). */
struct facts_late {
	int64_t ns; /* time in the guest between the accept and the handler; 0: none */
	uint8_t vector;
	const char *source; /* as facts_lost.source */
};

/* CPU time that the guest's kernel charged to a task although the host kept the vCPU from the guest
 * while the task was current. */
struct facts_debt {
	int32_t pid;
	int64_t ns; /* 0: none */
	struct host_ns begin, end;
};

struct stall_facts {
	/* What facts_begin_again() always clears, in the order in which it does. */
	uint32_t vm, vcpu;
	uint16_t cpu;
	bool vcpu_known;
	bool any_span, sealed; /* they tell what facts_begin_again() must clear besides these */
	bool ongoing;          /* has not ended */
	bool cut;              /* events at its end are missing: it may have lasted longer */
	bool vector;
	enum guest_cpu_state kind; /* TASK, IDLE, HARDIRQ, SOFTIRQ; UNKNOWN without guest data */
	int32_t pid;               /* the guest's current task */
	uint32_t number;           /* of the interrupt */
	unsigned ticks;            /* number of ticks; a burst after a gap counts as one */
	struct host_ns begin, end; /* end INT64_MAX while it lasts */
	struct host_ns last_tick;
	uint64_t begin_err_ns; /* bound on the error of its begin */
	int64_t tick_gap_ns;   /* longest time between two ticks */
	struct host_ns tick_gap_end;
	int64_t irq_ns;          /* in interrupts and softirqs */
	uint64_t n_seen, n_lost; /* events of this guest CPU */
	unsigned n_irqs;         /* number of interrupts and softirqs */
	/* Only every sample_stride-th sample is kept. samples_skipped: number of samples since the
	 * last kept one. */
	unsigned n_samples, sample_stride, samples_skipped;
	/* Number of valid elements of the details below, as further n_... below. */
	unsigned n_spans, n_holders, n_interrupts, n_halts;

	/* What is known at its end: facts_begin_again() clears it only if `sealed` is set. */
	uint64_t err_ns; /* bound on the error of the guest's stamps: the larger one of begin and
			    end */
	bool denied;     /* facts_deny() is true */
	int64_t than_ns; /* the threshold */
	struct host_ns queued; /* when it was queued to be judged (stall_pending_add) */

	unsigned n_pieces; /* number of short waits, if the interval is a storm; else 0 */
	bool clock_step_proven;
	int64_t clock_step_ns; /* step of the guest's clock, if that is reported; else 0 */

	/* The guest. */
	int32_t waiter_pid;       /* the task that waited longest for this CPU */
	int64_t waiter_ns;        /* its wait within the interval; 0: no task waited */
	unsigned n_waiters;       /* number of tasks that waited for the threshold */
	struct facts_debt debt;   /* of waiter_pid, from a stall shortly before */
	int64_t tick_interval_ns; /* the usual tick interval of this CPU; 0: unknown */

	struct model_data data;

	unsigned n_events, n_hits;
	uint32_t other_hits; /* number of hits of further events, which have no element */
	bool hits_cut;       /* hits at its begin are no longer kept */

	/* The vCPU. Most run intervals end before a span of the vCPU comes, so facts_begin_again()
	 * clears these only if `any_span` is set. */
	int64_t state_ns[VCPU_STATE_COUNT];    /* sums to end - begin after facts_close */
	int64_t class_ns[WAIT_CLASS_COUNT];    /* blocked time by class */
	int64_t inferred_ns[WAIT_CLASS_COUNT]; /* of that, in short waits classed by a sample */
	uint32_t n_sampled[WAIT_CLASS_COUNT];  /* number of short waits that are samples */
	int64_t fault_ns;      /* blocked without a class, in an exit for a missing page */
	int64_t lockup_ns;     /* the host's log reports a lockup of the vCPU's pCPU */
	int64_t split_lock_ns; /* slept because of a split lock, by the host's log or the stack */
	int64_t migration_ns;  /* stopped to complete a migration */
	int64_t device_ns;     /* in QEMU for accesses to a device, each of 10 ms or more */
	int64_t presumed_ns[VCPU_STATE_COUNT]; /* unknown, with this state before and after */
	int64_t presumed_lockup_ns;            /* of that, as lockup_ns */
	int64_t quota_ns;                      /* waited for a pCPU because of a quota */
	int64_t pcpu_busy_ns; /* waited for a pCPU that other tasks held, without a quota */
	int64_t pcpu_idle_ns; /* waited for a pCPU that idled, without a quota */
	/* Denied by the host without a break: the newest such time and its end; the longest. */
	int64_t chain_ns, longest_chain_ns;
	struct host_ns chain_end;

	/* Details. */
	struct vcpu_span spans[FACTS_SPANS]; /* longest denied or unknown ones, clipped */
	/* Tasks that ran on its pCPU while it was runnable or throttled. */
	struct facts_holder holders[FACTS_HOLDERS];
	struct facts_interrupt interrupts[FACTS_INTERRUPTS];
	struct facts_halt halts[FACTS_HALTS];       /* longest */
	struct facts_events events[FACTS_EVENTS];   /* filled by hints_fill */
	struct facts_hits hits[FACTS_HITS];         /* filled by hints_fill */
	struct facts_sample samples[FACTS_SAMPLES]; /* evenly spread over the interval */
	struct facts_sampled sampled;               /* filled by spins_fill */
	struct facts_waits waits;                   /* filled by hints_fill */
	bool block_device_known; /* filled by hints_fill: the thread sent a request to a */
	uint32_t block_device;   /* block device with this number (major << 20 | minor) */
	struct facts_guest_peer guest_peer; /* filled by stall_peer_fill */
	struct facts_lost lost;             /* filled by overdue_fill, as are the next two */
	bool tick_unexplained; /* no timer interrupt was observed pending or late in the tick gap */
	int64_t tick_late_ns;  /* part of the tick gap in which the host delivered no timer */
	struct facts_late late; /* if its ns is not 0, the interval is the time of this interrupt */
};

/* Returns true if the vCPU is kept from the guest in this state against the guest's will. */
bool vcpu_state_denies(enum vcpu_state s);
/* Returns true if the vCPU is kept from the guest in this span against the guest's will. Uses the
 * presumed state if there is one. */
bool vcpu_span_denies(const struct vcpu_span *span);

/* Clears the facts and begins a new interval of guest CPU `cpu` at `t`. */
void facts_begin(struct stall_facts *f, uint32_t vm, uint16_t cpu, struct host_ns t);
/* Does the same but clears less. The facts must be all zero, or must have been begun before; since
 * then only facts_vcpu_span() may have added facts about the vCPU, and only facts_seal() those of
 * its end. */
void facts_begin_again(struct stall_facts *f, uint32_t vm, uint16_t cpu, struct host_ns t);
/* Add the part of a span that lies in the interval; a tick of the guest. Call them in order of
 * time. interval_ns: the usual tick interval; 0: unknown. */
void facts_vcpu_span(struct stall_facts *f, const struct vcpu_span *span);
void facts_guest_span(struct stall_facts *f, const struct guest_span *span);
void facts_tick(struct stall_facts *f, struct host_ns t, int64_t interval_ns);
/* Adds a stack sample (TASK_STACK event with VS_STACK_SAMPLE). kernel: id of its kernel stack, or
 * 0. */
void facts_task_sample(struct stall_facts *f, struct host_ns t, uint32_t kernel, bool user);
/* Ends the interval at `t`. Spans of the vCPU may still be added. */
void facts_end(struct stall_facts *f, struct host_ns t);
/* Does the same and allows to add what is known at the end of the interval. */
void facts_seal(struct stall_facts *f, struct host_ns t);
/* Adds what the host's kernel log reports about its pCPU and thread. Call it after the last span.
 */
void facts_host_log(struct stall_facts *f, const struct model *m);
/* Removes all facts about the vCPU. Call it if the error of the guest's stamps has no bound: then
 * the interval cannot be placed on the host's timeline. Does nothing if kind is UNKNOWN, because
 * such an interval has the host's stamps. */
void facts_unjoin(struct stall_facts *f);
/* Completes state_ns after the last span: the rest of the interval counts as unknown. */
void facts_close(struct stall_facts *f);

/* Fills `presumed` with the facts under the assumption that presumed states are true. A verdict
 * from them is at most likely. Returns false if nothing is presumed. */
bool facts_presume(const struct stall_facts *f, struct stall_facts *presumed);

/* Returns the length of the interval in ns. */
static inline int64_t facts_duration(const struct stall_facts *f)
{
	return f->end.ns - f->begin.ns;
}

/* Returns the known time in which the host kept the vCPU from the guest against its will. */
int64_t facts_denied_by_host(const struct stall_facts *f);
/* Returns the same time, less the fair share of other tasks on its pCPU. This share is the time of
 * those tasks, at most the time that the vCPU itself was on a pCPU (docs/verdicts.md). */
int64_t facts_denied_in_pieces(const struct stall_facts *f);
/* Returns the time in which the guest ran: known time, and unknown time in which its ticks
 * continued. */
int64_t facts_ran(const struct stall_facts *f);
/* Returns the number of the cgroup whose quota caused the longest throttled wait (vcpu_span.quota);
 * 0: unknown. */
uint32_t facts_quota(const struct stall_facts *f);
/* Returns true if at least 2,000 interrupts per second took at least `percent` of a task's run
 * interval. */
bool facts_storm(const struct stall_facts *f, int percent);
/* Returns true if ticks stopped for the threshold and for at least 8 usual tick intervals. */
bool facts_ticks_stopped(const struct stall_facts *f);
/* Returns true if the interval is a hardirq or a softirq. */
bool facts_is_interrupt(const struct stall_facts *f);
/* Returns true if a halt of the vCPU in this interval is a wait, for example for a paravirtual
 * lock: the guest CPU had a task to run, or ran a handler whose exit was captured. */
bool facts_halts_wait(const struct stall_facts *f);
/* Returns true if something was denied for the threshold (docs/verdicts.md). */
bool facts_deny(const struct stall_facts *f);
/* Returns the time that the guest denied itself: denied time in which the vCPU ran, a lower bound.
 */
int64_t facts_denied_by_guest(const struct stall_facts *f);
/* Return the length and the end of the longest wait, tick gap or interrupt, whatever its cause.
 * They do not depend on the vCPU's spans. */
int64_t facts_denial_ns(const struct stall_facts *f);
struct host_ns facts_denial_end(const struct stall_facts *f);

#endif
