/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests stalls in which one of two guest CPUs waits for the other: which CPU waits, and which
 * one the host kept from the guest, without PAUSE exits. The stalls are on CPU 0. */
#include "host-collector/view/finding_text.h"
#include "tests/unit/model_tale.h"

#include "host-collector/analyze/stall/spins.h"
#include "host-collector/analyze/stall/verdict.h"
#include "tests/unit/balance.h"

enum { OWNER = 70, VICTIM = 50, HOG = 500, OTHER_HOG = 501, TRACER = 901 };
enum { STACK_LOCK = 1, STACK_CALL, STACK_WORK, STACK_UNNAMED };

static struct tale tale;

/* The guest task 70 on CPU 1, whose vCPU runs on pCPU 1, from `from_us` to `to_us`. */
static void owner_runs(struct tale *t, int64_t from_us, int64_t to_us)
{
	ADD(t, SWITCH(HOST, 1, 1, 0, TID1, 0));
	ADD(t, NAME(VM, 2, OWNER, OWNER, script_comm("owner")));
	ADD(t, SWITCH(VM, 3, 1, 0, 71, 0));
	for (int64_t at = 2000; at < 180000; at += TICK_US) {
		ADD(t, IRQ(at, 1, VECTOR_ENTRY, 71, VS_VECTOR_LOCAL_TIMER));
		ADD(t, IRQ(at + 5, 1, VECTOR_EXIT, 71, VS_VECTOR_LOCAL_TIMER));
	}
	ADD(t, SWITCH(VM, from_us, 1, 71, OWNER, 0));
	ADD(t, SWITCH(VM, to_us, 1, OWNER, 71, 0));
}

static void owner_ticks(struct tale *t, int64_t from_us, int64_t to_us)
{
	for (int64_t at = from_us; at < to_us; at += TICK_US) {
		ADD(t, IRQ(at, 1, VECTOR_ENTRY, OWNER, VS_VECTOR_LOCAL_TIMER));
		ADD(t, IRQ(at + 5, 1, VECTOR_EXIT, OWNER, VS_VECTOR_LOCAL_TIMER));
	}
}

/* KVM's events are there, but no PAUSE exit. */
static void exits(struct tale *t, int64_t to_us)
{
	for (int64_t at = 100; at < to_us; at += 4000) {
		ADD(t, KVM(at, 0, EXIT, TID0, 1 | 1ull << 32));
		ADD(t, KVM(at + 2, 0, ENTRY, TID0, 0));
	}
}

/* Task 50 keeps CPU 0 from 200 ms to 700 ms, its ticks go on, and from 305 ms on 60 waits for it.
 */
static void victim_waits(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 700000, VICTIM);
	exits(t, 700000);
	ADD(t, WAKEUP(VM, 305000, 0, 60, VICTIM, 0));
	ADD(t, SWITCH(VM, 700000, 0, VICTIM, 60, 0));
}

/* Its guest's timer finds 50 in this stack. */
static void samples(struct tale *t, int64_t from_us, int64_t to_us, uint64_t kernel, uint64_t user)
{
	for (int64_t at = from_us; at < to_us; at += 10000)
		ADD(t, EVENT(VM, at, 0, TASK_STACK, VICTIM, VICTIM, kernel | user << 32,
			     VS_STACK_SAMPLE | 10000000ull << 8));
}

/* The owner of the lock computes with it, preemption off: 72 waits for its CPU, too. */
static void lock_in_the_guest(struct tale *t)
{
	victim_waits(t);
	owner_runs(t, 190000, 699000);
	owner_ticks(t, 194000, 698000);
	ADD(t, WAKEUP(VM, 195000, 1, 72, OWNER, 1));
}

static void lock_in_the_guest_sampled(struct tale *t)
{
	lock_in_the_guest(t);
	samples(t, 310000, 699000, STACK_LOCK, 9);
}

/* It needs 19 ms to leave its CPU: its host is slow. */
static void lock_in_the_guest_left_late(struct tale *t)
{
	victim_waits(t);
	owner_runs(t, 190000, 681000);
	owner_ticks(t, 194000, 680000);
	ADD(t, WAKEUP(VM, 195000, 1, 72, OWNER, 1));
}

/* The host has taken its pCPU by then: it lets go late, in two ways of knowing. */
static void lock_in_the_guest_let_go_late(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 655000, VICTIM);
	tale_ticks(t, 694100, 700000, VICTIM);
	exits(t, 655000);
	ADD(t, WAKEUP(VM, 305000, 0, 60, VICTIM, 0));
	ADD(t, SWITCH(VM, 700000, 0, VICTIM, 60, 0));
	tale_away(t, 656100, 694000, VS_TASK_RUNNING, HOG);
	owner_runs(t, 190000, 658000);
	owner_ticks(t, 194000, 657000);
	ADD(t, WAKEUP(VM, 195000, 1, 72, OWNER, 1));
}

static void lock_in_the_guest_let_go_late_sampled(struct tale *t)
{
	victim_waits(t);
	owner_runs(t, 190000, 670000);
	owner_ticks(t, 194000, 669000);
	ADD(t, WAKEUP(VM, 195000, 1, 72, OWNER, 1));
	samples(t, 310000, 699000, STACK_LOCK, 9);
}

/* The other CPU does not come to its interrupts. */
static void irqs_off_in_the_guest(struct tale *t)
{
	victim_waits(t);
	owner_runs(t, 190000, 699000);
	owner_ticks(t, 194000, 300000);
	owner_ticks(t, 698500, 698900);
}

static void call_to_irqs_off(struct tale *t)
{
	irqs_off_in_the_guest(t);
	ADD(t, EVENT(HOST, 301000, 0, KVM_ACCEPT_IRQ, TID0, 0, 0xfb | 1ull << 32, 0));
	ADD(t, EVENT(VM, 698200, 1, VECTOR_ENTRY, OWNER, 0, VS_VECTOR_CALL_FUNCTION_SINGLE, 0xfb));
	ADD(t, EVENT(VM, 698210, 1, VECTOR_EXIT, OWNER, 0, VS_VECTOR_CALL_FUNCTION_SINGLE, 0xfb));
}

/* The same seen from the other side: 50 has its interrupts off, and 70 waits for it. */
static void others_wait_for_it(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, VICTIM);
	tale_ticks(t, 700100, 700200, VICTIM);
	exits(t, 300000);
	ADD(t, SWITCH(VM, 701000, 0, VICTIM, 42, 1));
	owner_runs(t, 190000, 701500);
	owner_ticks(t, 194000, 701000);
	ADD(t, WAKEUP(VM, 310000, 1, 72, OWNER, 1));
}

/* Two that have nothing to do with each other: the other lets go long before, or long after. */
static void other_cpu_ends_before(struct tale *t)
{
	victim_waits(t);
	owner_runs(t, 190000, 640000);
	owner_ticks(t, 194000, 640000);
	ADD(t, WAKEUP(VM, 195000, 1, 72, OWNER, 1));
}

static void other_cpu_goes_on(struct tale *t)
{
	victim_waits(t);
	owner_runs(t, 190000, 1100000);
	owner_ticks(t, 194000, 1100000);
}

/* The other's task came later than the wait began. */
static void other_cpu_came_later(struct tale *t)
{
	victim_waits(t);
	owner_runs(t, 450000, 699000);
	owner_ticks(t, 454000, 699000);
	ADD(t, WAKEUP(VM, 455000, 1, 72, OWNER, 1));
}

/* It ends together with another, but its samples show that it computes. */
static void computes_beside_another(struct tale *t)
{
	lock_in_the_guest(t);
	samples(t, 310000, 699000, 0, 9);
}

static void works_in_the_kernel_beside_another(struct tale *t)
{
	lock_in_the_guest(t);
	samples(t, 310000, 699000, STACK_WORK, 9);
}

static void unnamed_beside_another(struct tale *t)
{
	lock_in_the_guest(t);
	samples(t, 310000, 699000, STACK_UNNAMED, 9);
}

/* The other's vCPU loses its pCPU. */
static void owner_preempted(struct tale *t, int64_t from_us, int64_t to_us)
{
	owner_runs(t, 190000, 698000);
	ADD(t, SWITCH(HOST, from_us, 1, TID1, HOG, VS_TASK_RUNNING));
	ADD(t, SWITCH(HOST, to_us, 1, HOG, TID1, 1));
}

/* It computes on for 80 ms before it lets go: nothing but samples joins the two. */
static void sampled_lock_of_a_preempted_owner(struct tale *t)
{
	victim_waits(t);
	samples(t, 310000, 699000, STACK_LOCK, 9);
	owner_preempted(t, 310000, 610000);
}

static void sampled_call_of_a_preempted_cpu(struct tale *t)
{
	victim_waits(t);
	samples(t, 310000, 699000, STACK_CALL, 9);
	owner_preempted(t, 310000, 690000);
}

static void computes_beside_a_preempted_cpu(struct tale *t)
{
	victim_waits(t);
	samples(t, 310000, 699000, 0, 9);
	owner_preempted(t, 310000, 695000);
}

static void owner_traced(struct tale *t)
{
	victim_waits(t);
	owner_runs(t, 190000, 698000);
	ADD(t, NAME(HOST, 1, TRACER, TRACER, script_comm("gdb")));
	ADD(t, SWITCH(HOST, 310000, 1, TID1, 0, VS_TASK_TRACED));
	ADD(t, WAKEUP(HOST, 695000, 1, TID1, TRACER, 1));
	ADD(t, SWITCH(HOST, 695010, 1, 0, TID1, 0));
}

/* Its vCPU halts with it from one time to the other; KVM sees HLT. */
static void halts(struct tale *t, int64_t from_us, int64_t to_us)
{
	ADD(t, KVM(from_us, 0, EXIT, TID0, 12 | 1ull << 32));
	ADD(t, SWITCH(HOST, from_us + 5, 0, TID0, 0, 1));
	ADD(t, WAKEUP(HOST, to_us - 20, 1, TID0, TID1, 0));
	ADD(t, SWITCH(HOST, to_us - 10, 0, 0, TID0, 0));
	ADD(t, KVM(to_us, 0, ENTRY, TID0, 0));
}

/* A paravirtual lock, interrupts off, that halts until its owner lets go. */
static void halts_for_a_lock_in_the_guest(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, VICTIM);
	exits(t, 299000);
	halts(t, 301000, 699000);
	tale_ticks(t, 699100, 699200, VICTIM);
	ADD(t, SWITCH(VM, 699500, 0, VICTIM, 42, 1));
	owner_runs(t, 190000, 699600);
	owner_ticks(t, 194000, 250000);
	owner_ticks(t, 698500, 698900);
}

/* A paravirtual lock in a softirq of the idle task, while a task waits for the CPU. */
static void softirq_halts_for_a_preempted_owner(struct tale *t)
{
	tale_begin(t);
	ADD(t, SWITCH(VM, 202000, 0, VICTIM, 0, 1));
	ADD(t, IRQ(300000, 0, SOFTIRQ_ENTRY, 0, 7));
	ADD(t, WAKEUP(VM, 300100, 0, 60, 0, 0));
	exits(t, 300500);
	halts(t, 301000, 699000);
	ADD(t, IRQ(699500, 0, SOFTIRQ_EXIT, 0, 7));
	ADD(t, SWITCH(VM, 699600, 0, 0, 60, 0));
	owner_preempted(t, 290000, 698000);
}

/* A paravirtual lock, interrupts off. Its vCPU is woken for each tick, waits longer than 1 ms for
 * its pCPU, and halts again. */
static void halts_on_a_busy_pcpu(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, VICTIM);
	exits(t, 299000);
	for (int64_t at = 301000; at < 690000; at += 6000) {
		ADD(t, KVM(at, 0, EXIT, TID0, 12 | 1ull << 32));
		ADD(t, SWITCH(HOST, at + 5, 0, TID0, OTHER_HOG, 1));
		ADD(t, WAKEUP(HOST, at + 4400, 0, TID0, OTHER_HOG, 0));
		ADD(t, SWITCH(HOST, at + 5980, 0, OTHER_HOG, TID0, VS_TASK_RUNNING));
		ADD(t, KVM(at + 5990, 0, ENTRY, TID0, 0));
	}
	tale_ticks(t, 699100, 699200, VICTIM);
	ADD(t, SWITCH(VM, 699500, 0, VICTIM, 42, 1));
	owner_preempted(t, 290000, 698000);
}

/* A tenth of its wait halts, the rest spins. */
static void halts_now_and_then(struct tale *t)
{
	victim_waits(t);
	for (int64_t at = 320200; at < 680000; at += 36000)
		halts(t, at, at + 3000);
	owner_preempted(t, 310000, 695000);
}

/* Its own vCPU is away when the owner is back, so it lets go late. */
static void itself_away_at_the_end(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 662000, VICTIM);
	tale_ticks(t, 694100, 700000, VICTIM);
	exits(t, 661000);
	ADD(t, WAKEUP(VM, 305000, 0, 60, VICTIM, 0));
	ADD(t, SWITCH(VM, 700000, 0, VICTIM, 60, 0));
	tale_away(t, 662100, 694000, VS_TASK_RUNNING, HOG);
	owner_preempted(t, 310000, 662000);
}

/* When the owner is back, it is called for another reason. */
static void called_after_its_return(struct tale *t)
{
	victim_waits(t);
	owner_preempted(t, 310000, 698000);
	ADD(t, EVENT(HOST, 698400, 0, KVM_ACCEPT_IRQ, TID0, 0, 0xfb | 1ull << 32, 0));
	ADD(t, EVENT(VM, 698500, 1, VECTOR_ENTRY, OWNER, 0, VS_VECTOR_CALL_FUNCTION_SINGLE, 0xfb));
	ADD(t, EVENT(VM, 698510, 1, VECTOR_EXIT, OWNER, 0, VS_VECTOR_CALL_FUNCTION_SINGLE, 0xfb));
}

/* It calls the preempted CPU. While it waits for the answer, one of its interrupts wants a lock
 * that the other CPU has: its run interval ends there, but is judged when the interrupt has ended.
 */
static void calls_and_is_interrupted(struct tale *t, int64_t call_us)
{
	tale_begin(t);
	tale_ticks(t, 204000, 460000, VICTIM);
	exits(t, 460000);
	ADD(t, EVENT(HOST, call_us, 0, KVM_ACCEPT_IRQ, TID0, 0, 0xfb | 1ull << 32, 0));
	ADD(t, WAKEUP(VM, call_us + 1000, 0, 60, VICTIM, 0));
	ADD(t, IRQ(460000, 0, IRQ_ENTRY, VICTIM, 25));
	ADD(t, IRQ(1351000, 0, IRQ_EXIT, VICTIM, 25));
	tale_ticks(t, 1352000, 1998000, VICTIM);
	exits(t, 1998000);
	ADD(t, SWITCH(VM, 1999000, 0, VICTIM, 60, 0));
	owner_runs(t, 190000, 1999000);
	ADD(t, SWITCH(HOST, 310000, 1, TID1, HOG, VS_TASK_RUNNING));
	ADD(t, SWITCH(HOST, 1350000, 1, HOG, TID1, 1));
	ADD(t, EVENT(VM, 1350200, 1, VECTOR_ENTRY, OWNER, 0, VS_VECTOR_CALL_FUNCTION_SINGLE, 0xfb));
	ADD(t, EVENT(VM, 1350210, 1, VECTOR_EXIT, OWNER, 0, VS_VECTOR_CALL_FUNCTION_SINGLE, 0xfb));
}

static void call_then_an_interrupt_that_waits(struct tale *t)
{
	calls_and_is_interrupted(t, 311000);
}

/* Only the interrupt is long enough to be judged. */
static void interrupt_that_waits_after_a_call(struct tale *t)
{
	calls_and_is_interrupted(t, 400000);
}

/* CPU 0 idles. Its timer is accepted, but the handler begins when the other CPU is back. */
static void idle_without_interrupts(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, VICTIM);
	exits(t, 300000);
	ADD(t, SWITCH(VM, 300200, 0, VICTIM, 0, 1));
	halts(t, 300300, 312000);
	ADD(t, KVM(311970, 0, ACCEPT_IRQ, TID0, 0xec));
	ADD(t, KVM(311998, 0, INJECT, TID0, 0xec));
	for (int64_t at = 313000; at < 698000; at += 4000) {
		ADD(t, KVM(at, 0, EXIT, TID0, 1 | 1ull << 32));
		ADD(t, KVM(at + 2, 0, ENTRY, TID0, 0));
	}
	ADD(t, EVENT(VM, 698500, 0, VECTOR_ENTRY, 0, 0, VS_VECTOR_LOCAL_TIMER, 0xec));
	ADD(t, EVENT(VM, 698510, 0, VECTOR_EXIT, 0, 0, VS_VECTOR_LOCAL_TIMER, 0xec));
	ADD(t, SWITCH(VM, 698600, 0, 0, VICTIM, 0));
	ADD(t, SWITCH(VM, 699600, 0, VICTIM, 42, 1));
	owner_preempted(t, 310000, 698000);
}

static void itself_traced(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, VICTIM);
	exits(t, 299000);
	ADD(t, NAME(HOST, 1, TRACER, TRACER, script_comm("gdb")));
	ADD(t, SWITCH(HOST, 300000, 0, TID0, 0, VS_TASK_TRACED));
	ADD(t, WAKEUP(HOST, 695000, 1, TID0, TRACER, 0));
	ADD(t, SWITCH(HOST, 695010, 0, 0, TID0, 0));
	tale_ticks(t, 695100, 700000, VICTIM);
	ADD(t, SWITCH(VM, 700000, 0, VICTIM, 42, 1));
}

static void owner_stopped(struct tale *t)
{
	victim_waits(t);
	owner_runs(t, 190000, 698000);
	ADD(t, NAME(HOST, 1, TRACER, TRACER, script_comm("backup")));
	ADD(t, SIGNAL(309990, QEMU, TRACER, 19));
	ADD(t, SWITCH(HOST, 310000, 1, TID1, 0, VS_TASK_STOPPED));
	ADD(t, WAKEUP(HOST, 695000, 1, TID1, TRACER, 1));
	ADD(t, SWITCH(HOST, 695010, 1, 0, TID1, 0));
}

static const struct {
	const char *name;
	void (*emit)(struct tale *t);
	enum verdict verdict;
	enum confidence confidence;
	int32_t culprit; /* the first; above 0 of the guest, below of the host, 0: not looked at */
	const char *because, *evidence; /* parts of them, NULL: not looked at */
} stories[] = {
	{"a lock that another CPU of the guest holds", lock_in_the_guest, VERDICT_GUEST_SPIN,
	 CONFIDENCE_LIKELY, OWNER, "most likely waited for owner (70), which kept CPU 1", NULL},
	{"the same, sampled", lock_in_the_guest_sampled, VERDICT_GUEST_SPIN, CONFIDENCE_LIKELY,
	 OWNER, "it spun in queued_write_lock_slowpath", "spins in queued_write_lock_slowpath"},
	{"the same, its own vCPU away when the owner lets go", lock_in_the_guest_let_go_late,
	 VERDICT_GUEST_SPIN, CONFIDENCE_LIKELY, OWNER, "most likely waited for owner (70)", NULL},
	{"the same, sampled, 30 ms later", lock_in_the_guest_let_go_late_sampled,
	 VERDICT_GUEST_SPIN, CONFIDENCE_LIKELY, OWNER, "most likely waited for owner (70)",
	 "spins in queued_write_lock_slowpath"},
	{"the same, it leaves its CPU 19 ms later", lock_in_the_guest_left_late, VERDICT_GUEST_SPIN,
	 CONFIDENCE_LIKELY, VICTIM, "it may have waited for owner (70), which kept CPU 1", NULL},
	{"another CPU has its interrupts off", irqs_off_in_the_guest, VERDICT_GUEST_SPIN,
	 CONFIDENCE_LIKELY, OWNER, "owner (70), which kept CPU 1, interrupts off", NULL},
	{"the same, and it was called", call_to_irqs_off, VERDICT_GUEST_SPIN, CONFIDENCE_LIKELY,
	 OWNER, "it had sent a request to owner (70)", NULL},
	{"has its interrupts off, another CPU waits", others_wait_for_it, VERDICT_GUEST_SPIN,
	 CONFIDENCE_DECIDED, VICTIM, NULL, NULL},
	{"another CPU lets go long before", other_cpu_ends_before, VERDICT_GUEST_SPIN,
	 CONFIDENCE_DECIDED, VICTIM, NULL, NULL},
	{"another CPU computes on", other_cpu_goes_on, VERDICT_GUEST_SPIN, CONFIDENCE_DECIDED,
	 VICTIM, NULL, NULL},
	{"another CPU was not busy when it began", other_cpu_came_later, VERDICT_GUEST_SPIN,
	 CONFIDENCE_DECIDED, VICTIM, NULL, NULL},
	{"samples of its program: it computes", computes_beside_another, VERDICT_GUEST_SPIN,
	 CONFIDENCE_DECIDED, VICTIM, NULL, "computes: "},
	{"samples in its kernel: it computes", works_in_the_kernel_beside_another,
	 VERDICT_GUEST_SPIN, CONFIDENCE_DECIDED, VICTIM, NULL, "most of them in copy_page"},
	{"samples without names say nothing", unnamed_beside_another, VERDICT_GUEST_SPIN,
	 CONFIDENCE_LIKELY, OWNER, NULL, NULL},
	{"samples in a lock, its owner preempted", sampled_lock_of_a_preempted_owner,
	 VERDICT_LOCK_HOLDER_PREEMPTED, CONFIDENCE_LIKELY, -HOG,
	 "(runnable: hog (500) held its pCPU)", "spins in queued_write_lock_slowpath"},
	{"samples in a call, its target preempted", sampled_call_of_a_preempted_cpu,
	 VERDICT_IPI_TARGET_PREEMPTED, CONFIDENCE_LIKELY, -HOG, "CPU 1, whose vCPU did not run",
	 "waiting for other CPUs' answers"},
	{"samples of its program beside a preempted CPU", computes_beside_a_preempted_cpu,
	 VERDICT_GUEST_SPIN, CONFIDENCE_DECIDED, VICTIM, NULL, "computes: "},
	{"the owner's vCPU thread is traced", owner_traced, VERDICT_LOCK_HOLDER_PREEMPTED,
	 CONFIDENCE_LIKELY, -TRACER, "(stopped: gdb (901) traced it)", NULL},
	{"halts for a lock that another CPU of the guest holds", halts_for_a_lock_in_the_guest,
	 VERDICT_GUEST_SPIN, CONFIDENCE_LIKELY, OWNER, "halted, as a paravirtual lock does", NULL},
	{"halts in a softirq for a preempted owner", softirq_halts_for_a_preempted_owner,
	 VERDICT_LOCK_HOLDER_PREEMPTED, CONFIDENCE_DECIDED, -HOG, "halted", NULL},
	{"halts for a preempted owner on a busy pCPU", halts_on_a_busy_pcpu,
	 VERDICT_LOCK_HOLDER_PREEMPTED, CONFIDENCE_LIKELY, -HOG, "halted", NULL},
	{"halts now and then for a preempted owner", halts_now_and_then,
	 VERDICT_LOCK_HOLDER_PREEMPTED, CONFIDENCE_LIKELY, -HOG, "owner (70) on CPU 1", NULL},
	{"is itself away when the owner is back", itself_away_at_the_end,
	 VERDICT_LOCK_HOLDER_PREEMPTED, CONFIDENCE_LIKELY, -HOG, "owner (70) on CPU 1", NULL},
	{"the owner is called after its return", called_after_its_return,
	 VERDICT_LOCK_HOLDER_PREEMPTED, CONFIDENCE_LIKELY, -HOG, "owner (70) on CPU 1", NULL},
	{"waits in an interrupt, and the task waits for an answer",
	 interrupt_that_waits_after_a_call, VERDICT_IPI_TARGET_PREEMPTED, CONFIDENCE_LIKELY, -HOG,
	 "the answer to an interrupt that it sent to owner (70) on CPU 1", NULL},
	{"idles, and takes its timer when the other CPU is back", idle_without_interrupts,
	 VERDICT_LOCK_HOLDER_PREEMPTED, CONFIDENCE_LIKELY, -HOG,
	 "(runnable: hog (500) held its pCPU)", "interrupt 0xec (timer) was pending"},
	{"waits for a preempted CPU's answer, then so does its interrupt",
	 call_then_an_interrupt_that_waits, VERDICT_IPI_TARGET_PREEMPTED, CONFIDENCE_DECIDED, -HOG,
	 "the answer to an interrupt that it sent to owner (70) on CPU 1", NULL},
	{"its own vCPU thread is traced", itself_traced, VERDICT_VM_PAUSED, CONFIDENCE_DECIDED,
	 -TRACER, "stopped for 395 ms by its tracer gdb (901)", NULL},
	{"the owner's vCPU thread is stopped", owner_stopped, VERDICT_LOCK_HOLDER_PREEMPTED,
	 CONFIDENCE_LIKELY, -TRACER, "(stopped: backup (901) stopped it)", NULL},
};

static const struct incident *incident_of_cpu0(const struct report *r)
{
	for (size_t i = 0; i < r->n_incidents; i++) {
		if (!r->incidents[i].guest_cpu)
			return &r->incidents[i];
	}
	return NULL;
}

static void stack(struct model *m, uint32_t id, const char *leaf)
{
	static struct message_stack s;

	memset(&s, 0, sizeof(s));
	s.id = id;
	s.n_frames = 2;
	snprintf(s.frames[0].symbol, sizeof(s.frames[0].symbol), "%s", leaf);
	snprintf(s.frames[1].symbol, sizeof(s.frames[1].symbol), "do_syscall_64");
	s.frames[0].kernel = s.frames[1].kernel = true;
	assert_int_equal(model_guest_stack(m, VM, &s), 0);
}

static bool evident(const struct incident *i, const char *part)
{
	for (size_t k = 0; k < i->n_evidence; k++) {
		if (strstr(finding_text(&i->evidence[k].seen, 1).text, part))
			return true;
	}
	return false;
}

static void who_waits_for_whom(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(stories); k++) {
		struct report_options options = {.than_ns = 100000000};
		struct model *m = model_new();
		struct report_builder *b = report_builder_new(m, &options);
		const struct incident *i;
		struct report *r;

		script_vm(m, 2, "kvm");
		stack(m, STACK_LOCK, "queued_write_lock_slowpath");
		stack(m, STACK_CALL, "smp_call_function_single");
		stack(m, STACK_WORK, "copy_page");
		stack(m, STACK_UNNAMED, "");
		stories[k].emit(&tale);
		tale_play(&tale, m);
		model_finish(m);
		r = report_builder_finish(b);
		i = incident_of_cpu0(r);
		assert_non_null(i);
		print_message("  %s: %s, %s: %s\n", stories[k].name, verdict_name(i->verdict),
			      confidence_name(i->confidence), because_text(i).text);
		assert_int_equal(i->verdict, stories[k].verdict);
		assert_int_equal(i->confidence, stories[k].confidence);
		assert_true(i->n_culprits > 0);
		assert_int_equal(i->culprits[0].host ? -i->culprits[0].pid : i->culprits[0].pid,
				 stories[k].culprit);
		if (stories[k].because)
			assert_non_null(strstr(because_text(i).text, stories[k].because));
		if (stories[k].evidence)
			assert_true(evident(i, stories[k].evidence));
		else
			assert_false(evident(i, "stack samples"));
		assert_balances(r);
		report_free(r);
		report_builder_free(b);
		model_free(m);
	}
}

/* While both still go on, the same is told of them. */
static void a_wait_that_lasts_names_the_other(void **state)
{
	static struct incident open[4];
	struct report_options options = {.than_ns = 100000000};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);
	size_t n, kept = 0, reported = 0;

	(void)state;
	script_vm(m, 2, "kvm");
	lock_in_the_guest(&tale);
	for (size_t i = 0; i < tale.n; i++) {
		if (tale.events[i].t.ns <= 600000000)
			tale.events[kept++] = tale.events[i];
	}
	tale.n = kept;
	tale_play(&tale, m);
	n = report_builder_ongoing(b, open, COUNT(open));
	for (size_t i = 0; i < n; i++) {
		print_message("  CPU %u: %s, %s: %s\n", open[i].guest_cpu,
			      verdict_name(open[i].verdict), confidence_name(open[i].confidence),
			      because_text(&open[i]).text);
		assert_int_equal(open[i].verdict, VERDICT_GUEST_SPIN);
		assert_int_equal(open[i].culprits[0].pid, OWNER);
		if (open[i].guest_cpu)
			continue;
		reported++;
		assert_int_equal(open[i].confidence, CONFIDENCE_LIKELY);
	}
	assert_int_equal(n, 2);
	assert_int_equal(reported, 1);
	report_builder_free(b);
	model_free(m);
}

/* ---- the table of functions ---- */

static const struct {
	const char *frames[3];
	enum spin_kind kind;
	const char *function;
} stacks[] = {
	{{"native_queued_spin_lock_slowpath", "_raw_spin_lock", "futex_wake"},
	 SPIN_LOCK,
	 "native_queued_spin_lock_slowpath"},
	{{"queued_read_lock_slowpath.part.0", "f"}, SPIN_LOCK, "queued_read_lock_slowpath.part.0"},
	{{"_raw_spin_lock_irqsave", "f"}, SPIN_LOCK, "_raw_spin_lock_irqsave"},
	{{"_raw_spin_unlock_irqrestore", "f"}, SPIN_NONE, "_raw_spin_unlock_irqrestore"},
	{{"pv_native_safe_halt", "kvm_wait", "__pv_queued_spin_lock_slowpath"},
	 SPIN_LOCK,
	 "kvm_wait"},
	{{"pv_native_safe_halt", "default_idle"}, SPIN_NONE, "pv_native_safe_halt"},
	{{"smp_call_function_many_cond", "on_each_cpu_cond_mask"},
	 SPIN_CALL,
	 "smp_call_function_many_cond"},
	/* What it runs itself is no wait. */
	{{"flush_tlb_func", "smp_call_function_many_cond"}, SPIN_NONE, "flush_tlb_func"},
	{{"mutex_spin_on_owner", "__mutex_lock"}, SPIN_LOCK, "mutex_spin_on_owner"},
	{{"osq_lock", "rwsem_down_write_slowpath"}, SPIN_LOCK, "osq_lock"},
	{{"", "_raw_spin_lock"}, SPIN_UNKNOWN, ""},
};

static void the_innermost_function_decides(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(stacks); k++) {
		struct stack *s = calloc(1, sizeof(*s) + 3 * sizeof(s->frames[0]));
		const char *function;

		for (size_t i = 0; i < 3 && stacks[k].frames[i]; i++)
			s->frames[s->n_frames++].symbol = stacks[k].frames[i];
		print_message("  %s\n", stacks[k].frames[0]);
		assert_int_equal(spin_of_stack(s, &function), stacks[k].kind);
		if (stacks[k].kind != SPIN_UNKNOWN)
			assert_string_equal(function, stacks[k].function);
		free(s);
	}
}

/* However many come, those that are kept are spread over the whole stretch. */
static void samples_are_spread(void **state)
{
	static struct stall_facts f;

	(void)state;
	facts_begin(&f, VM, 0, (struct host_ns){0});
	for (int64_t at = 1; at <= 5000; at++)
		facts_task_sample(&f, (struct host_ns){at * 1000}, 1, false);
	assert_true(f.n_samples >= FACTS_SAMPLES / 2 && f.n_samples <= FACTS_SAMPLES);
	assert_true(f.samples[0].t.ns <= 5000 * 1000 / 8);
	assert_true(f.samples[f.n_samples - 1].t.ns >= 5000ll * 1000 * 7 / 8);
	for (unsigned i = 1; i < f.n_samples; i++)
		assert_int_equal(f.samples[i].t.ns - f.samples[i - 1].t.ns,
				 f.sample_stride * 1000ll);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_for_whom),
		cmocka_unit_test(a_wait_that_lasts_names_the_other),
		cmocka_unit_test(the_innermost_function_decides),
		cmocka_unit_test(samples_are_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
