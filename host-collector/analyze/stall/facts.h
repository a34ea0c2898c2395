/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is known of one stretch of a guest CPU: how its vCPU spent the time, what was denied to
 * whom, what the guest's interrupts did meanwhile. The stall detector collects it, the verdict
 * rules read it. Plain numbers of fixed size: a stretch costs the same however long it lasts.
 */
#ifndef STALL_FACTS_H
#define STALL_FACTS_H

#include "host-collector/model/model.h"

enum {
	FACTS_SPANS = 8,
	FACTS_HOLDERS = 64,
	FACTS_INTERRUPTS = 8,
	FACTS_HALTS = 8,
	FACTS_SAMPLES = 32
};

struct facts_interrupt {
	enum guest_cpu_state kind;
	uint32_t number;
	bool vector;
	int64_t ns;
	uint32_t count;
};

struct facts_holder {
	int32_t pid;
	int64_t ns;
};

/* X(NAME, "as a culprit's role", "in a sentence about the vCPU") */
#define KEEPERS(X)                                                                                 \
	X(HELD_PCPU, "held the other vCPU's pCPU", "held its pCPU")                                \
	X(STOPPED, "stopped the other vCPU", "stopped it")                                         \
	X(TRACED, "traced the other vCPU", "traced it")                                            \
	X(ASKED, "wrote to QEMU's monitor", "wrote to QEMU's monitor")                             \
	X(BIG_LOCK, "held QEMU's big lock", "held QEMU's big lock")                                \
	X(PAGE, "provided the page", "provided the page")

enum keeper {
#define X(NAME, ...) KEEPER_##NAME,
	KEEPERS(X)
#undef X
		KEEPER_COUNT
};

/* Another vCPU of the VM, which the host kept from the guest: how, and who had its pCPU (0: nobody,
 * or not known). */
struct facts_peer {
	bool known;
	uint32_t vcpu;
	enum vcpu_state state;
	int32_t pid;
	enum keeper keeper; /* what `pid` did to it */
};

/* What the guest waited for while its vCPU ran or halted (hints.h); 0: nothing of the kind seen. */
struct facts_waits {
	int64_t lock_ns, lock_halted_ns; /* it spun, or halted, while lock_owner did not run */
	int64_t call_ns;                 /* call_target owed it an answer, and did not run */
	struct facts_peer lock_owner, call_target;
	int64_t longest_ns; /* the longest piece of either */
	bool coincidence;   /* these two only by when the wait ended */
	bool lossy;         /* events of the host's are missing: a sign may be, too */
	int64_t poll_ns;    /* it read one device register again and again... */
	uint64_t polled;    /* which: an address or a port... */
	bool polled_port;
	uint32_t polls;       /* and how often */
	int64_t nested_ns;    /* it ran a guest of its own */
	int64_t peer_kept_ns; /* the other vCPU that the host kept, or may have kept, longest */
	struct facts_peer peer_kept; /* the one that it surely kept longest, and how long */
	int64_t peer_surely_kept_ns;
	bool spins_unseen; /* no PAUSE exit was ever seen: this machine may have none */
	bool sampled;      /* lock_ns or call_ns are by where stack samples found the task */
	/* The CPU that owed it an answer to an interrupt longest, whether or not the host kept it;
	 * and how long. */
	uint16_t called_cpu;
	int64_t called_ns;
};

/* One look of the guest's timer at what ran, and what that was (spins.h). */
struct facts_sample {
	struct host_ns t;
	uint32_t kernel; /* id of the stack in the kernel, 0: it was not there */
	bool user;
	uint8_t kind; /* enum spin_kind */
};

/* What the samples of the time in which something was denied show. */
struct facts_sampled {
	unsigned n, spins, calls; /* of n, in a lock's spin, in a wait for other CPUs' answers */
	bool spinning, computing; /* they say so; else there are too few, or they are of both */
	char function[48];        /* where most were; "": in user code */
	unsigned in_function;     /* so many */
};

/* Another guest CPU, whose task or interrupt went on as long as this stretch waited: if this one
 * waited for something that a CPU of the guest had, then for that one. */
struct facts_guest_peer {
	bool known;
	bool unsure; /* it may as well be the other way round */
	bool ended;  /* its stretch was over at the same time */
	bool called; /* it owed this one the answer to an interrupt */
	bool ticks_stopped;
	uint16_t cpu;
	enum guest_cpu_state kind;
	uint32_t number; /* of the interrupt */
	bool vector;
	int32_t pid;
	int64_t ns;        /* of what was denied here, it lasted meanwhile */
	int64_t halted_ns; /* of the stretch, its vCPU halted with its task to run */
};

struct facts_halt {
	struct host_ns begin, end;
	struct host_ns until; /* it, and what is unknown behind it */
};

/* An interrupt that KVM accepted and whose handler did not run for the threshold (overdue.h). */
struct facts_lost {
	int64_t ns; /* of the stretch, it was pending; 0: none was */
	bool alone; /* the stretch is its time, and nothing else */
	bool open;  /* its handler has not run since, either */
	uint8_t vector;
	const char *source; /* "msi", ... */
	int32_t irq;        /* -1: not known */
	int32_t raiser;     /* host thread */
	struct host_ns begin;
};

/* What a task owes its CPU: it was current while the host kept the vCPU, and its kernel charged the
 * time to it. */
struct facts_debt {
	int32_t pid;
	int64_t ns; /* 0: none */
	struct host_ns begin, end;
};

struct stall_facts {
	uint32_t vm, vcpu;
	uint16_t cpu;
	bool vcpu_known;
	enum guest_cpu_state kind; /* TASK, IDLE, HARDIRQ, SOFTIRQ; UNKNOWN without guest data */
	int32_t pid;               /* the guest's current task */
	uint32_t number;           /* of the interrupt */
	bool vector;
	struct host_ns begin, end; /* end INT64_MAX while it lasts */
	uint64_t err_ns;
	bool ongoing, denied;
	int64_t than_ns;

	unsigned n_pieces; /* these are the facts of so many short waits (stall_storm.c); 0: not */
	bool clock_step_proven;
	int64_t clock_step_ns; /* these are the facts of a step of the guest's clock, not of a stall
				*/

	/* The vCPU. */
	int64_t state_ns[VCPU_STATE_COUNT];    /* complete once closed: sums to end - begin */
	int64_t class_ns[WAIT_CLASS_COUNT];    /* of what was blocked */
	int64_t inferred_ns[WAIT_CLASS_COUNT]; /* of that, short waits whose class a sample gave...
						*/
	uint32_t n_sampled[WAIT_CLASS_COUNT];  /* ... and the short waits that were samples */
	int64_t fault_ns;  /* of what was blocked without a class: inside an exit for a missing page
			    */
	int64_t lockup_ns; /* of its pCPU, as the host's kernel log has it */
	int64_t split_lock_ns; /* slept, for that, as the log or the stack has it */
	int64_t migration_ns;  /* of what was stopped */
	int64_t device_ns;     /* in QEMU for one access to a device; each of these 10 ms or more */
	int64_t presumed_ns[VCPU_STATE_COUNT]; /* of what is unknown: it was so before and after */
	int64_t presumed_lockup_ns;            /* of that, as lockup_ns */
	int64_t quota_ns; /* of what was runnable or throttled: its quota is known to have cost it
			   */
	int64_t pcpu_busy_ns;               /* of the rest: others were seen on its pCPU */
	int64_t pcpu_idle_ns;               /* of the rest: its pCPU idled */
	int64_t chain_ns, longest_chain_ns; /* out of guest mode without a break */
	struct host_ns chain_end;

	/* The guest. */
	int32_t waiter_pid;       /* who waited longest for this CPU */
	int64_t waiter_ns;        /* and for how long within the stretch; 0 nobody */
	unsigned n_waiters;       /* how many waited for the threshold */
	struct facts_debt debt;   /* of who waited longest, from a stall shortly before */
	int64_t tick_interval_ns; /* what is normal here; 0 unknown */
	unsigned ticks;           /* spaced like ticks; bursts after a gap count once */
	struct host_ns last_tick;
	int64_t tick_gap_ns;
	struct host_ns tick_gap_end;
	int64_t irq_ns; /* in interrupts and softirqs */
	unsigned n_irqs;
	uint64_t n_seen, n_lost; /* events of this guest CPU */
	unsigned n_samples, sample_stride, samples_skipped;
	bool cut; /* events are missing at its end: nobody knows whether it went on */

	struct model_data data;

	/* The details, as many as counted. */
	unsigned n_spans, n_holders, n_interrupts, n_halts;
	struct vcpu_span spans[FACTS_SPANS]; /* the longest that kept it from the guest, clipped */
	struct facts_holder holders[FACTS_HOLDERS]; /* of its pCPU while it was runnable */
	struct facts_interrupt interrupts[FACTS_INTERRUPTS];
	struct facts_halt halts[FACTS_HALTS]; /* the longest; what is less than 1 ms apart is one */
	struct facts_sample samples[FACTS_SAMPLES]; /* evenly spread over the stretch */
	struct facts_sampled sampled;               /* by spins_fill */
	struct facts_waits waits;                   /* by hints_fill, last of all */
	struct facts_guest_peer guest_peer;         /* by stall_peer_fill */
	struct facts_lost lost;                     /* by overdue_fill, as the next */
	bool tick_unexplained; /* of the tick gap: a timer interrupt was neither seen pending nor
				  late */
	int64_t tick_late_ns;  /* of the tick gap: no timer interrupt was pending, until one came */
};

/* Is the vCPU kept from the guest in this state, against the guest's will? */
bool vcpu_state_denies(enum vcpu_state s);
/* Is it, or presumably, in this span? */
bool vcpu_span_denies(const struct vcpu_span *span);

/* A new stretch of guest CPU `cpu` begins at `t`: all facts are forgotten. */
void facts_begin(struct stall_facts *f, uint32_t vm, uint16_t cpu, struct host_ns t);
/* Adds the part of the vCPU's span that lies within the stretch. Spans in order. */
void facts_vcpu_span(struct stall_facts *f, const struct vcpu_span *span);
void facts_guest_span(struct stall_facts *f, const struct guest_span *span);
void facts_tick(struct stall_facts *f, struct host_ns t, int64_t interval_ns);
/* A TASK_STACK event with VS_STACK_SAMPLE of this stretch. */
void facts_task_sample(struct stall_facts *f, struct host_ns t, uint32_t kernel, bool user);
/* The stretch is over at `t` for the guest's side; vCPU spans may still be added. */
void facts_end(struct stall_facts *f, struct host_ns t);
/* What the host's kernel log says of its pCPU and thread. Once no more vCPU spans follow. */
void facts_host_log(struct stall_facts *f, const struct model *m);
/* Nobody knows what the vCPU did in a stretch whose edges the guest alone stamped, without a bound:
 * what was added of it is taken back. A stretch of the host's own (kind UNKNOWN) stays as it is. */
void facts_unjoin(struct stall_facts *f);
/* No more vCPU spans: what they left uncovered is unknown. */
void facts_close(struct stall_facts *f);

/* The facts as they are if what is presumed is true: for verdicts that are likely at most. False if
 * nothing is presumed. */
bool facts_presume(const struct stall_facts *f, struct stall_facts *presumed);

static inline int64_t facts_duration(const struct stall_facts *f)
{
	return f->end.ns - f->begin.ns;
}

/* Time out of guest mode against the guest's will, as far as known. */
int64_t facts_denied_by_host(const struct stall_facts *f);
/* The same, less what short turns on its pCPU with other tasks took: of that, as much as the vCPU
 * ran itself is a fair share. For what came in pieces; see docs/verdicts.md. */
int64_t facts_denied_in_pieces(const struct stall_facts *f);
/* Time in which the guest certainly or, by its own ticks, evidently ran. */
int64_t facts_ran(const struct stall_facts *f);
/* Whose quota made the longest of the throttled waits, as struct vcpu_span has it; 0 unknown. */
uint32_t facts_quota(const struct stall_facts *f);
/* Many short interrupts, 2,000 a second or more, took at least `percent` of a task's stretch. */
bool facts_storm(const struct stall_facts *f, int percent);
/* Timer ticks were due for the threshold and did not come. */
bool facts_ticks_stopped(const struct stall_facts *f);
/* Was something denied for the threshold? See docs/verdicts.md. */
bool facts_deny(const struct stall_facts *f);
/* Of what was denied, how much while the guest itself ran: its own doing. */
int64_t facts_denied_by_guest(const struct stall_facts *f);
/* How long the longest wait, tick gap or interrupt lasted, whoever is to blame; and when it was
 * over. Known before the vCPU's time is. */
int64_t facts_denial_ns(const struct stall_facts *f);
struct host_ns facts_denial_end(const struct stall_facts *f);

#endif
