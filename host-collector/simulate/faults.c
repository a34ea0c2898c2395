// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/faults.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "host-collector/simulate/life.h"
#include "host-collector/simulate/waits.h"

static const int64_t retry_ns = 50000;
enum { CROWD_SLICE_NS = 3500000, CROWD_MAX = 200, UNTIL_WOKEN = -1 };

struct fault;

struct fault_row {
	/* false: not now, try again */
	bool (*begin)(struct fault *f);
	void (*end)(struct fault *f);
	bool (*wait)(struct sim_vm *vm, int64_t ns); /* instead of begin, see waits.h */
	struct sim_step step; /* of those that put the vCPU thread to sleep */
	enum sim_step_kind inside;
	bool whole_vm, needs_kvm, needs_interrupts, needs_second;
};

static const struct fault_row rows[FAULT_KIND_COUNT];

struct fault {
	struct sim_vm *vm;
	const struct fault_row *row;
	int64_t ns;
};

static struct sim_vcpu *target(const struct fault *f)
{
	return &f->vm->vcpus[f->vm->target];
}

static void fault_ends(void *object, uint64_t argument)
{
	struct fault *f = object;

	(void)argument;
	if (f->row->end)
		f->row->end(f);
	free(f);
}

static void fault_begins(void *object, uint64_t argument)
{
	struct fault *f = object;
	struct engine *e = f->vm->engine;

	(void)argument;
	if (f->row->wait ? f->row->wait(f->vm, f->ns) : f->row->begin(f))
		engine_at(e, e->now + f->ns, fault_ends, f, 0);
	else
		engine_at(e, e->now + retry_ns, fault_begins, f, 0);
}

void fault_plan(struct sim_vm *vm, enum fault_kind kind, int64_t t, int64_t ns)
{
	struct fault *f = calloc(1, sizeof(*f));

	if (!f) {
		vm->engine->error = -ENOMEM;
		return;
	}
	*f = (struct fault){.vm = vm, .row = &rows[kind], .ns = ns};
	engine_at(vm->engine, t, fault_begins, f, 0);
}

bool fault_needs_kvm(enum fault_kind kind)
{
	return rows[kind].needs_kvm || rows[kind].needs_interrupts;
}

bool fault_needs_interrupts(enum fault_kind kind)
{
	return rows[kind].needs_interrupts;
}

bool fault_needs_second(enum fault_kind kind)
{
	return rows[kind].needs_second;
}

static bool busy(const struct sim_vcpu *v)
{
	return vcpu_sim_in_guest(v) && v->guest->current && !v->guest->n_frames;
}

/* ---- stops ---- */

static void each_victim(struct fault *f, void (*visit)(struct fault *f, struct sim_vcpu *v))
{
	for (uint32_t i = 0; i < f->vm->n_vcpus; i++) {
		if (f->row->whole_vm || i == f->vm->target)
			visit(f, &f->vm->vcpus[i]);
	}
}

static void victim_stop(struct fault *f, struct sim_vcpu *v)
{
	struct sim_step step = f->row->step;

	step.waker = f->vm->world->killer;
	vcpu_sim_stop(v, &step, f->vm->world->killer);
}

static void victim_continue(struct fault *f, struct sim_vcpu *v)
{
	vcpu_sim_continue(v, f->vm->world->killer);
}

static bool stop_begin(struct fault *f)
{
	if (f->row->whole_vm)
		f->vm->channel_blocked_until = f->vm->engine->now + f->ns;
	each_victim(f, victim_stop);
	return true;
}

static void stop_end(struct fault *f)
{
	each_victim(f, victim_continue);
}

static bool sigstop_begin(struct fault *f)
{
	host_wake(f->vm->world->killer, NULL);
	host_signal(f->vm->qemu, f->vm->world->killer, SIGSTOP);
	return stop_begin(f);
}

static void sigstop_end(struct fault *f)
{
	host_wake(f->vm->world->killer, NULL);
	host_signal(f->vm->qemu, f->vm->world->killer, SIGCONT);
	stop_end(f);
}

static bool qmp_begin(struct fault *f)
{
	host_wake(f->vm->qemu, NULL);
	each_victim(f, victim_stop);
	sim_vm_note(f->vm, NOTE_VM_PAUSED, "QMP STOP");
	return true;
}

static void qmp_end(struct fault *f)
{
	host_wake(f->vm->qemu, NULL);
	sim_vm_note(f->vm, NOTE_VM_RESUMED, "QMP RESUME");
	for (uint32_t i = 0; i < f->vm->n_vcpus; i++)
		vcpu_sim_continue(&f->vm->vcpus[i], f->vm->qemu);
}

/* Its pages have gone before; now the rest. A migration to a file is over before the VM goes on. */
static bool migration_begin(struct fault *f)
{
	sim_vm_note(f->vm, NOTE_MIGRATION, "QMP MIGRATION: active");
	return qmp_begin(f);
}

static void migration_end(struct fault *f)
{
	sim_vm_note(f->vm, NOTE_MIGRATION_OVER, "QMP MIGRATION: completed");
	qmp_end(f);
}

/* ---- the pCPU is taken ---- */

/* Elsewhere there is no place for it either, as with pinning. */
static void confine(struct host_thread *t)
{
	t->pinned = true;
}

static bool hog_begin(struct fault *f)
{
	struct host_thread *hog = f->vm->world->hog, *t = target(f)->thread;

	confine(t);
	hog->cpu = t->cpu;
	hog->pinned = true;
	hog->urgency = HOST_REALTIME;
	host_thread_works(hog, f->ns, f->ns, 0, 0);
	host_wake(hog, NULL);
	return true;
}

/* The host's watchdog finds out when half of it is over, at the earliest. */
static void watchdog_barks(void *object, uint64_t cpu)
{
	const struct sim_vm *vm = object;
	char text[96];

	snprintf(text, sizeof(text),
		 "watchdog: BUG: soft lockup - CPU#%u stuck for 22s! [hog:5300]", (unsigned)cpu);
	world_log(vm->world, text);
}

static bool lockup_begin(struct fault *f)
{
	struct engine *e = f->vm->engine;
	struct pcpu *p;

	hog_begin(f);
	p = &f->vm->world->host.pcpus[f->vm->world->hog->cpu];
	p->locked_up = true;
	vcpu_sim_emit(target(f));
	engine_at(e, e->now + engine_between(e, f->ns / 2, f->ns * 9 / 10), watchdog_barks, f->vm,
		  p->cpu);
	return true;
}

static void lockup_end(struct fault *f)
{
	f->vm->world->host.pcpus[f->vm->world->hog->cpu].locked_up = false;
	vcpu_sim_emit(target(f));
}

static bool lockup_elsewhere_begin(struct fault *f)
{
	struct engine *e = f->vm->engine;

	hog_begin(f);
	engine_at(e, e->now + engine_between(e, f->ns / 2, f->ns * 9 / 10), watchdog_barks, f->vm,
		  (f->vm->world->hog->cpu + 1u) % f->vm->world->host.n_cpus);
	return true;
}

static bool crowd_begin(struct fault *f)
{
	struct host_thread *t = target(f)->thread;
	int64_t n = f->ns / CROWD_SLICE_NS;

	confine(t);
	for (int64_t i = 0; i < n && i < CROWD_MAX; i++) {
		struct host_thread *x = host_thread_new(t->host, 6000 + (int32_t)i,
							6000 + (int32_t)i, "make", t->cpu);

		if (!x)
			break;
		x->pinned = true;
		host_thread_works(x, CROWD_SLICE_NS - 700000, CROWD_SLICE_NS - 500000, 0, 0);
		host_wake(x, NULL);
	}
	return true;
}

static bool share_begin(struct fault *f)
{
	struct host_thread *hog = f->vm->world->hog, *t = target(f)->thread;

	confine(t);
	hog->cpu = t->cpu;
	hog->pinned = true;
	host_thread_works(hog, 1500000, 3500000, 18000000, 40000000);
	return true;
}

static bool quota_begin(struct fault *f)
{
	if (!f->vm->quota.set)
		f->vm->quota.read = f->vm->engine->now;
	f->vm->quota.set = true;
	f->vm->quota.used_up = f->vm->engine->now;
	for (uint32_t i = 0; i < f->vm->n_vcpus; i++) {
		host_throttle(f->vm->vcpus[i].thread, true);
		vcpu_sim_emit(&f->vm->vcpus[i]);
	}
	return true;
}

/* The kernel counts when it lets them run again, and each pCPU's queue that had something to run.
 */
static void quota_end(struct fault *f)
{
	for (uint32_t i = 0; i < f->vm->n_vcpus; i++) {
		const struct host_thread *t = f->vm->vcpus[i].thread;

		if (t->throttled && t->state == HOST_READY)
			f->vm->quota.throttled_ns += f->vm->engine->now - f->vm->quota.used_up;
		host_throttle(f->vm->vcpus[i].thread, false);
		vcpu_sim_emit(&f->vm->vcpus[i]);
	}
}

/* ---- the vCPU thread sleeps inside an exit ---- */

static bool sleep_begin(struct fault *f)
{
	struct sim_vcpu *v = target(f);
	const struct sim_step before = {.kind = f->row->inside,
					.ns = engine_between(v->engine, 2000, 9000)};
	struct sim_step steps[3] = {before, f->row->step, before};

	steps[1].ns = f->ns;
	if (busy(v)) {
		vcpu_sim_exit(v, EXIT_MMIO, steps, 3);
		return true;
	}
	if (v->n_steps + 3 > VCPU_STEPS_MAX || vcpu_sim_in_guest(v) ||
	    (v->n_steps && v->steps[0].halts) || !v->guest->current)
		return false;
	for (size_t i = 0; i < 3; i++)
		v->steps[v->n_steps++] = steps[i];
	return true;
}

/* Reclaim sleeps again and again, with work in between. */
static bool reclaim_begin(struct fault *f)
{
	struct sim_vcpu *v = target(f);
	struct sim_step steps[12];
	size_t n = 0;

	if (!busy(v))
		return false;
	for (; n < 12; n += 2) {
		steps[n] = (struct sim_step){.kind = STEP_KVM,
					     .ns = engine_between(v->engine, 200000, 1500000)};
		steps[n + 1] = f->row->step;
		steps[n + 1].ns = f->ns / 6;
	}
	vcpu_sim_exit(v, EXIT_MMIO, steps, n);
	return true;
}

static bool lock_begin(struct fault *f)
{
	struct fault_row row = *f->row;
	struct fault with = *f;

	row.step.waker = f->vm->qemu;
	with.row = &row;
	if (!sleep_begin(&with))
		return false;
	f->vm->channel_blocked_until = f->vm->engine->now + f->ns;
	return true;
}

static bool userfault_begin(struct fault *f)
{
	struct fault_row row = *f->row;
	struct fault with = *f;

	row.step.waker = f->vm->world->killer; /* whoever provides the page */
	with.row = &row;
	return sleep_begin(&with);
}

/* ---- the guest does it to itself ---- */

static bool section_push(struct fault *f, struct guest_frame frame)
{
	struct sim_vcpu *v = target(f);

	if (!busy(v))
		return false;
	frame.left = f->ns;
	frame.cause = SIM_CAUSE_SPIN;
	guest_sim_push(v->guest, &frame);
	return true;
}

static bool irqs_off_begin(struct fault *f)
{
	return section_push(f, (struct guest_frame){.kind = FRAME_OF_SECTION,
						    .irqs_off = true,
						    .preempt_off = true});
}

static bool preempt_off_begin(struct fault *f)
{
	/* It denies something only while somebody waits. */
	if (!target(f)->guest->n_ready)
		return false;
	return section_push(f, (struct guest_frame){.kind = FRAME_OF_SECTION, .preempt_off = true});
}

static bool softirq_begin(struct fault *f)
{
	return section_push(f, (struct guest_frame){.kind = FRAME_OF_SOFTIRQ, .number = 3});
}

static bool hardirq_begin(struct fault *f)
{
	return section_push(
		f, (struct guest_frame){.kind = FRAME_OF_IRQ, .number = 11, .irqs_off = true});
}

static bool storm_begin(struct fault *f)
{
	const struct guest_storm storm = {.until = f->vm->engine->now + f->ns,
					  .handler_ns = {60000, 160000},
					  .gap_ns = {200, 1500}};

	if (!busy(target(f)) || !target(f)->guest->n_ready)
		return false;
	guest_sim_storm(target(f)->guest, &storm);
	return true;
}

/* Its hypervisor sets the guest's TSC ahead, as after a snapshot: by `ns` of the guest's time. */
static bool clock_jump_begin(struct fault *f)
{
	struct sim_vm *vm = f->vm;

	sim_clock_step(&vm->guest_clock, f->ns * 10);
	sim_clock_step(&vm->guest_capture.o.clock, f->ns * 10);
	truth_clock_step(&vm->truth);
	return true;
}

/* No other exit waits for a device. */
static bool device_begin(struct fault *f)
{
	return busy(target(f)) && sleep_begin(f);
}

static bool light_begin(struct fault *f)
{
	const struct guest_storm light = {.until = f->vm->engine->now + f->ns,
					  .handler_ns = {8000, 25000},
					  .gap_ns = {60000, 200000}};

	guest_sim_storm(target(f)->guest, &light);
	return true;
}

/* ---- interrupts ---- */

static bool lost_begin(struct fault *f)
{
	struct guest_cpu_sim *g = target(f)->guest;

	if (g->pending & GUEST_DEVICE)
		return false;
	apic_lose(&target(f)->apic, true);
	return true;
}

static void lost_end(struct fault *f)
{
	apic_lose(&target(f)->apic, false);
}

/* It denies something only to a task that waits for the end of a slice. */
static bool timer_begin(struct fault *f)
{
	const struct guest_cpu_sim *g = target(f)->guest;

	if (!busy(target(f)) || g->current->run_ns[1] || !g->n_ready || g->pending & GUEST_TIMER)
		return false;
	apic_timer_hold(&target(f)->apic, true);
	return true;
}

static void timer_end(struct fault *f)
{
	apic_timer_hold(&target(f)->apic, false);
}

/* ---- the guest's and its agent's life ---- */

static bool quiet_begin(struct fault *f)
{
	(void)f;
	return true;
}

static bool attach_begin(struct fault *f)
{
	life_agent_start(f->vm);
	return true;
}

static void attach_end(struct fault *f)
{
	life_agent_start(f->vm);
}

static bool torn_begin(struct fault *f)
{
	life_agent_start_torn(f->vm, f->vm->engine->now + f->ns);
	return true;
}

static bool gone_begin(struct fault *f)
{
	life_agent_stop(f->vm);
	return true;
}

static bool reboot_begin(struct fault *f)
{
	life_reboot(f->vm);
	return true;
}

static bool offline_begin(struct fault *f)
{
	return life_cpu_offline(f->vm);
}

static void offline_end(struct fault *f)
{
	life_cpu_online(f->vm);
}

/* By 2 ms to 1 s, ahead or back. */
static int64_t lie_draw(struct engine *e)
{
	int64_t ns = engine_between(e, 2000000, 20000000);

	if (engine_chance(e, 0.5))
		ns *= 50;
	return engine_chance(e, 0.5) ? ns : -ns;
}

static bool echo_lie_begin(struct fault *f)
{
	life_echo_lie(f->vm, lie_draw(f->vm->engine));
	return true;
}

static void echo_lie_end(struct fault *f)
{
	life_echo_lie(f->vm, 0);
}

static bool stamp_lie_begin(struct fault *f)
{
	life_stamp_lie(f->vm, lie_draw(f->vm->engine));
	return true;
}

static void stamp_lie_end(struct fault *f)
{
	life_stamp_lie(f->vm, 0);
}

/* ---- */

#define STOPS(CAUSE, TASK_STATE, STACK)                                                            \
	{                                                                                          \
		.kind = STEP_SLEEP, .ns = UNTIL_WOKEN, .state = SIM_STATE_STOPPED,                 \
		.cause = SIM_CAUSE_##CAUSE, .task_state = TASK_STATE, .stack = &(STACK),           \
		.waking_stack = &sim_stack_cont, .stops = true                                     \
	}
#define SLEEPS(CAUSE, TASK_STATE, STACK, WAKING)                                                   \
	{                                                                                          \
		.kind = STEP_SLEEP, .state = SIM_STATE_BLOCKED, .cause = SIM_CAUSE_##CAUSE,        \
		.task_state = TASK_STATE, .stack = &(STACK), .waking_stack = &(WAKING)             \
	}

static const struct fault_row rows[FAULT_KIND_COUNT] = {
	[FAULT_SIGSTOP] = {.begin = sigstop_begin,
			   .end = sigstop_end,
			   .step = STOPS(PAUSED, VS_TASK_STOPPED, sim_stack_signal_stop),
			   .whole_vm = true},
	[FAULT_PTRACE] = {.begin = stop_begin,
			  .end = stop_end,
			  .step = STOPS(PAUSED, VS_TASK_TRACED, sim_stack_ptrace_stop)},
	[FAULT_FREEZER] = {.begin = stop_begin,
			   .end = stop_end,
			   .step = STOPS(PAUSED, VS_TASK_INTERRUPTIBLE, sim_stack_freezer),
			   .whole_vm = true},
	[FAULT_QMP_STOP] = {.begin = qmp_begin,
			    .end = qmp_end,
			    .step = STOPS(PAUSED, VS_TASK_INTERRUPTIBLE, sim_stack_qemu_idle),
			    .whole_vm = true},
	[FAULT_MIGRATION] = {.begin = migration_begin,
			     .end = migration_end,
			     .step = STOPS(MIGRATION, VS_TASK_INTERRUPTIBLE, sim_stack_qemu_idle),
			     .whole_vm = true},
	[FAULT_REALTIME_HOG] = {.begin = hog_begin},
	[FAULT_CROWD] = {.begin = crowd_begin},
	[FAULT_SHARE_PCPU] = {.begin = share_begin},
	[FAULT_QUOTA] = {.begin = quota_begin, .end = quota_end},
	[FAULT_BIG_LOCK] = {.begin = lock_begin,
			    .inside = STEP_VMM,
			    .step = SLEEPS(VMM_LOCK, VS_TASK_INTERRUPTIBLE, sim_stack_big_lock,
					   sim_stack_unlock)},
	[FAULT_PFLASH] = {.begin = sleep_begin,
			  .inside = STEP_VMM,
			  .step = SLEEPS(STORAGE, VS_TASK_UNINTERRUPTIBLE, sim_stack_pflash_write,
					 sim_stack_interrupt)},
	[FAULT_BLOCK_SYNC] = {.begin = sleep_begin,
			      .inside = STEP_VMM,
			      .step = SLEEPS(STORAGE, VS_TASK_INTERRUPTIBLE, sim_stack_block_sync,
					     sim_stack_interrupt)},
	[FAULT_SWAP_IN] = {.begin = sleep_begin,
			   .step = SLEEPS(PAGING, VS_TASK_UNINTERRUPTIBLE, sim_stack_swap_in,
					  sim_stack_interrupt)},
	[FAULT_USERFAULT] = {.begin = userfault_begin,
			     .step = SLEEPS(PAGING, VS_TASK_INTERRUPTIBLE, sim_stack_userfault,
					    sim_stack_uffd_copy)},
	[FAULT_MMAP_LOCK] = {.begin = sleep_begin,
			     .step = SLEEPS(MMU, VS_TASK_UNINTERRUPTIBLE, sim_stack_mmap_lock,
					    sim_stack_unlock)},
	/* The guest's other vCPUs do it, too, and the kernel lets one of them go on at a time. */
	[FAULT_SPLIT_LOCK] = {.begin = sleep_begin,
			      .step = SLEEPS(SPLIT_LOCK, VS_TASK_INTERRUPTIBLE,
					     sim_stack_split_lock, sim_stack_unlock)},
	[FAULT_RECLAIM] = {.begin = reclaim_begin,
			   .step = SLEEPS(MEMORY, VS_TASK_UNINTERRUPTIBLE, sim_stack_reclaim,
					  sim_stack_interrupt)},
	[FAULT_MEMCG] = {.begin = reclaim_begin,
			 .step = SLEEPS(MEMORY, VS_TASK_UNINTERRUPTIBLE, sim_stack_memcg,
					sim_stack_interrupt)},
	[FAULT_IRQS_OFF] = {.begin = irqs_off_begin},
	[FAULT_PREEMPT_OFF] = {.begin = preempt_off_begin},
	[FAULT_LONG_SOFTIRQ] = {.begin = softirq_begin},
	[FAULT_LONG_HARDIRQ] = {.begin = hardirq_begin},
	[FAULT_IRQ_STORM] = {.begin = storm_begin},
	[FAULT_LIGHT_IRQS] = {.begin = light_begin},
	[FAULT_LOCKUP] = {.begin = lockup_begin, .end = lockup_end},
	[FAULT_LOCKUP_ELSEWHERE] = {.begin = lockup_elsewhere_begin},
	[FAULT_LOCK_OWNER] = {.wait = wait_for_owner, .needs_kvm = true, .needs_second = true},
	[FAULT_LOCK_PARAVIRTUAL] = {.wait = wait_paravirtual,
				    .needs_kvm = true,
				    .needs_second = true},
	[FAULT_LOCK_CONTENDED] = {.wait = wait_contended, .needs_kvm = true, .needs_second = true},
	[FAULT_CALL] = {.wait = wait_for_call, .needs_kvm = true, .needs_second = true},
	[FAULT_POLLING] = {.wait = wait_polling, .needs_kvm = true},
	[FAULT_DEVICE_EXIT] = {.begin = device_begin,
			       .inside = STEP_VMM,
			       .step = {.kind = STEP_VMM, .cause = SIM_CAUSE_DEVICE},
			       .needs_kvm = true},
	[FAULT_CLOCK_JUMP] = {.begin = clock_jump_begin},
	[FAULT_QUIET] = {.begin = quiet_begin},
	[FAULT_AGENT_ATTACHES] = {.begin = attach_begin},
	[FAULT_AGENT_TORN] = {.begin = torn_begin},
	[FAULT_AGENT_AWAY] = {.begin = gone_begin, .end = attach_end},
	[FAULT_AGENT_GONE] = {.begin = gone_begin},
	[FAULT_REBOOT] = {.begin = reboot_begin, .end = attach_end},
	[FAULT_CPU_OFFLINE] = {.begin = offline_begin, .end = offline_end, .needs_second = true},
	[FAULT_ECHO_LIE] = {.begin = echo_lie_begin, .end = echo_lie_end},
	[FAULT_STAMP_LIE] = {.begin = stamp_lie_begin, .end = stamp_lie_end},
	[FAULT_NESTED] = {.wait = wait_nested, .needs_kvm = true},
	[FAULT_NESTED_LIFE] = {.wait = nested_life, .needs_kvm = true},
	[FAULT_SPIN_BESIDE_STEAL] = {.wait = wait_beside_steal, .needs_second = true},
	[FAULT_LOST_INTERRUPT] = {.begin = lost_begin, .end = lost_end, .needs_interrupts = true},
	[FAULT_LATE_TIMER] = {.begin = timer_begin, .end = timer_end, .needs_interrupts = true},
};
