/* SPDX-License-Identifier: GPL-2.0-only */
/* The guest side of the stall detector: events of the guest begin and end run intervals, and add
 * facts to them. */
#include "host-collector/analyze/stall/stall_internal.h"

/* A CPU has shown its tick after STALL_TICKS_WANTED regular intervals below this. */
#define TICK_LIMIT_NS 100000000ll

static void guest_facts_begin(const struct stall_track *k, struct stall_facts *f, struct host_ns t)
{
	facts_begin_again(f, k->vm, k->cpu, t);
	f->begin_err_ns = k->err_ns;
}

static void period_begin(struct stall_track *k, struct host_ns t, int32_t pid)
{
	guest_facts_begin(k, &k->period, t);
	k->period.kind = pid == 0 ? GUEST_CPU_IDLE : GUEST_CPU_TASK;
	k->period.pid = pid;
	k->task_known = true;
	k->proven_valid = false;
	k->doubt = false;
	k->unseen_valid = false;
	k->before_valid = false; /* it was part of the previous run interval */
}

/* Keeps the run interval as it was when an interrupt began at `t`, if it is long enough to be
 * reported without that interrupt. */
static bool period_copy(const struct stall_detector *d, const struct stall_track *k,
			struct host_ns t, struct stall_facts *copy)
{
	if (!k->task_known || t.ns - k->period.begin.ns < d->options.than_ns)
		return false;
	*copy = k->period;
	facts_end(copy, t);
	return true;
}

/* Keeps a copy of a run interval that is already long, up to this event. */
static void period_prove(const struct stall_detector *d, struct stall_track *k, struct host_ns t)
{
	if (!k->task_known || t.ns - k->period.begin.ns < d->options.than_ns ||
	    (k->proven_valid && t.ns - k->proven.end.ns < STALL_PROVE_EVERY_NS))
		return;
	k->proven = k->period;
	facts_end(&k->proven, t);
	k->proven_valid = true;
}

static void guest_switch(struct stall_detector *d, struct stall_vm *v, struct stall_track *k,
			 const struct guest_instant *i)
{
	if (k->task_known)
		stall_period_end(d, v, k, &k->period, i->t);
	k->balance = (struct loss_balance){0};
	waiters_remove(&v->waiters, i->event.pid2);
	if (i->event.pid != 0 && ev_sched_switch_state(&i->event) == VS_TASK_RUNNING)
		waiters_add(&v->waiters, i->event.pid, i->cpu, i->t);
	else
		waiters_remove(&v->waiters, i->event.pid);
	period_begin(k, i->t, i->event.pid2);
}

static void guest_wakeup(struct stall_detector *d, struct stall_vm *v, struct stall_track *k,
			 const struct guest_instant *i)
{
	(void)d;
	/* The wake-up of a task that still runs ends no wait. */
	if (!k->task_known || k->period.pid != i->event.pid)
		waiters_add(&v->waiters, i->event.pid, i->cpu, i->t);
}

static void guest_migrate(struct stall_detector *d, struct stall_vm *v, struct stall_track *k,
			  const struct guest_instant *i)
{
	(void)d;
	(void)k;
	waiters_move(&v->waiters, i->event.pid, i->cpu);
}

static void guest_exit(struct stall_detector *d, struct stall_vm *v, struct stall_track *k,
		       const struct guest_instant *i)
{
	(void)d;
	(void)k;
	waiters_remove(&v->waiters, i->event.pid);
}

/* Returns true if a healthy CPU has intervals of this length. A guest that does not get its CPU
 * time has longer ones, which must not count as normal. */
static bool tick_is_normal(const struct stall_detector *d, const struct stall_track *k,
			   int64_t interval)
{
	int64_t configured = model_tick_interval_ns(d->model, k->vm);

	if (interval >= TICK_LIMIT_NS)
		return false;
	if (configured)
		return interval < 2 * configured;
	return k->ticks_seen < STALL_TICKS_WANTED || interval < 2 * k->tick_interval_ns;
}

static void tick(const struct stall_detector *d, struct stall_vm *v, struct stall_track *k,
		 struct host_ns t)
{
	bool busy = k->task_known && k->period.pid != 0;
	int64_t interval = t.ns - k->last_tick.ns;

	/* Two successive ticks during which the same CPU ran a task. */
	if (busy && k->last_tick_busy && tick_is_normal(d, k, interval)) {
		if (k->ticks_seen < STALL_TICKS_WANTED)
			k->ticks_seen++;
		k->tick_interval_ns +=
			k->ticks_seen == 1 ? interval : (interval - k->tick_interval_ns) / 16;
		if (k->ticks_seen == STALL_TICKS_WANTED)
			v->tick_interval_ns = k->tick_interval_ns;
	}
	k->last_tick = t;
	k->last_tick_busy = busy;
	facts_tick(&k->period, t, k->tick_interval_ns);
	if (k->unseen_valid)
		facts_tick(&k->unseen, t, k->tick_interval_ns);
	if (k->in_interrupt)
		facts_tick(&k->interrupt, t, k->tick_interval_ns);
}

static void interrupt_begin(const struct stall_detector *d, struct stall_track *k, struct host_ns t,
			    int32_t pid)
{
	guest_facts_begin(k, &k->interrupt, t);
	k->interrupt.pid = pid;
	k->in_interrupt = true;
	k->before_valid = period_copy(d, k, t, &k->before);
}

static void guest_enter(struct stall_detector *d, struct stall_vm *v, struct stall_track *k,
			const struct guest_instant *i)
{
	if (i->type == VS_EVENT_VECTOR_ENTRY &&
	    ev_vector_entry_number(&i->event) == VS_VECTOR_LOCAL_TIMER)
		tick(d, v, k, i->t);
	k->entered = i->t;
	if (!k->in_interrupt)
		interrupt_begin(d, k, i->t, i->event.pid);
}

static void track_forget(struct stall_vm *v, struct stall_track *k, struct host_ns t)
{
	k->doubt = false;
	k->unseen_valid = false;
	k->proven_valid = false;
	k->task_known = false;
	k->balance = (struct loss_balance){0};
	k->last_tick_busy = false;
	waiters_forget(&v->waiters, k->cpu, t);
}

/* A missing event was a switch, or several events are missing: the run interval counts up to the
 * gap. */
static void doubt_fails(struct stall_detector *d, struct stall_vm *v, struct stall_track *k,
			struct host_ns t)
{
	if (k->doubt_proven) {
		k->doubted.ongoing = false;
		k->doubted.cut = true;
		stall_period_end(d, v, k, &k->doubted, k->doubted.end);
	} else if (k->proven_valid) {
		k->proven.cut = true;
		stall_period_end(d, v, k, &k->proven, k->proven.end);
	}
	track_forget(v, k, t);
}

/* Takes the first event after a single missing one. If the same task is current, it was all the
 * time. */
static void doubt_end(struct stall_detector *d, struct stall_vm *v, struct stall_track *k,
		      const struct guest_instant *i)
{
	int32_t pid;

	if (!guest_event_was_current(&i->event, &pid) || pid != k->period.pid) {
		doubt_fails(d, v, k, i->t);
		return;
	}
	k->doubt = false;
	k->unseen_valid = true;
	guest_facts_begin(k, &k->unseen, i->t);
	k->before_unseen_valid = period_copy(d, k, i->t, &k->before_unseen);
}

/*
 * The current task is not the task of the run interval, and there was no switch event: the CPU was
 * offline, or its kernel left the switch out. The run interval counts up to its last event.
 */
static void period_unled(struct stall_detector *d, struct stall_vm *v, struct stall_track *k,
			 const struct guest_instant *i)
{
	int32_t pid;

	if (!k->task_known || k->doubt || !guest_event_was_current(&i->event, &pid) ||
	    pid == k->period.pid)
		return;
	if (k->proven_valid)
		stall_period_end(d, v, k, &k->proven, k->proven.end);
	track_forget(v, k, i->t);
}

static void guest_lost(struct stall_detector *d, struct stall_vm *v, struct stall_track *k,
		       const struct guest_instant *i)
{
	const struct host_ns never = {INT64_MIN};
	bool bearable =
		loss_bearable(&k->balance, &i->event) || (loss_is_single(&i->event) && !k->doubt);

	if (model_guest_cpu_offline(d->model, k->vm, k->cpu)) {
		track_forget(v, k, i->t);
		return;
	}
	k->period.n_lost += ev_lost_count(&i->event);
	k->interrupt.n_lost += ev_lost_count(&i->event);
	if (k->doubt && bearable)
		return;
	if (k->doubt) {
		doubt_fails(d, v, k, i->t);
		return;
	}
	if (k->task_known && bearable) {
		k->doubted = k->period;
		facts_end(&k->doubted, i->t);
		k->doubt = true;
		k->doubt_proven = loss_since(&i->event, i->t, never).ns == i->t.ns &&
				  i->err_ns < (uint64_t)d->options.than_ns / 2;
		return;
	}
	/* It is unknown whether the run interval went on. It counts up to the begin of the gap
	 * if that is known well enough, else up to its last event. */
	if (k->task_known && loss_since(&i->event, i->t, never).ns == i->t.ns &&
	    i->err_ns < (uint64_t)d->options.than_ns / 2) {
		k->period.ongoing = ev_lost_count(&i->event) == 0;
		k->period.cut = ev_lost_count(&i->event) != 0;
		stall_period_end(d, v, k, &k->period, i->t);
	} else if (k->proven_valid) {
		k->proven.cut = true;
		stall_period_end(d, v, k, &k->proven, k->proven.end);
	}
	track_forget(v, k, i->t);
}

/* Handles a sample that the guest's timer took on the CPU. */
static void guest_stack(struct stall_detector *d, struct stall_vm *v, struct stall_track *k,
			const struct guest_instant *i)
{
	const uint32_t kernel = ev_task_stack_kernel(&i->event);
	const bool user = ev_task_stack_user(&i->event);

	(void)d;
	(void)v;
	if (ev_task_stack_role(&i->event) != VS_STACK_SAMPLE || !k->task_known)
		return;
	if (k->period.pid == i->event.pid)
		facts_task_sample(&k->period, i->t, kernel, user);
	if (k->in_interrupt)
		facts_task_sample(&k->interrupt, i->t, kernel, user);
}

typedef void (*guest_handler)(struct stall_detector *d, struct stall_vm *v, struct stall_track *k,
			      const struct guest_instant *i);

static const guest_handler guest_handlers[VS_EVENT_TYPE_LIMIT] = {
	[VS_EVENT_LOST] = guest_lost,
	[VS_EVENT_SCHED_WAKEUP_NEW] = guest_wakeup,
	[VS_EVENT_SCHED_MIGRATE] = guest_migrate,
	[VS_EVENT_TASK_EXIT] = guest_exit,
	[VS_EVENT_IRQ_ENTRY] = guest_enter,
	[VS_EVENT_SOFTIRQ_ENTRY] = guest_enter,
	[VS_EVENT_VECTOR_ENTRY] = guest_enter,
	[VS_EVENT_TASK_STACK] = guest_stack,
};

void stall_guest_instant(void *context, const struct guest_instant *i)
{
	struct stall_detector *d = context;
	struct stall_vm *v = stall_vm_get(d, i->vm);
	struct stall_track *k = v ? stall_track_get(v, i->cpu) : NULL;
	struct stall_track *here = k;
	int32_t pid;

	if (v && i->event.cpu != i->cpu)
		here = stall_track_get(v, i->event.cpu);
	if (!k || !here)
		return;
	if (i->type != VS_EVENT_LOST) {
		here->err_ns = i->err_ns;
		here->balance.seen++;
		here->period.n_seen++;
	}
	if (i->type != VS_EVENT_LOST && here->doubt)
		doubt_end(d, v, here, i);
	else if (i->type != VS_EVENT_LOST)
		period_unled(d, v, here, i);
	if (i->type == VS_EVENT_SCHED_SWITCH) /* most events are these two: they are inlined */
		guest_switch(d, v, k, i);
	else if (i->type == VS_EVENT_SCHED_WAKEUP)
		guest_wakeup(d, v, k, i);
	else if (i->type < VS_EVENT_TYPE_LIMIT && guest_handlers[i->type])
		guest_handlers[i->type](d, v, k, i);
	if (i->has_vcpu)
		hints_guest(v->hints, d->model, i);
	if (i->type == VS_EVENT_LOST)
		return;
	v->guest_last = i->t;
	if (!here->task_known && guest_event_current(&i->event, &pid))
		period_begin(here, i->t, pid);
	period_prove(d, here, i->t);
	if (here->n_pending)
		stall_pending_check(d, v, here, false);
}

void stall_guest_span(void *context, const struct guest_span *span)
{
	struct stall_vm *v;
	struct stall_track *k;

	/* Of the guest's spans, only interrupts and softirqs are facts (facts_guest_span). */
	if (span->state != GUEST_CPU_HARDIRQ && span->state != GUEST_CPU_SOFTIRQ)
		return;
	v = stall_vm_get(context, span->vm);
	k = v ? stall_track_get(v, span->cpu) : NULL;
	if (!k)
		return;
	facts_guest_span(&k->period, span);
	if (k->unseen_valid)
		facts_guest_span(&k->unseen, span);
	if (k->in_interrupt)
		facts_guest_span(&k->interrupt, span);
}

void stall_guest_interrupt(void *context, const struct guest_interrupt *i)
{
	struct stall_detector *d = context;
	struct stall_vm *v = stall_vm_get(d, i->vm);
	struct stall_track *k = v ? stall_track_get(v, i->cpu) : NULL;
	struct stall_facts *f, *before = NULL;

	if (!k)
		return;
	if (k->in_interrupt && k->interrupt.begin.ns == i->begin.ns) {
		k->in_interrupt = false;
		f = &k->interrupt;
		if (k->before_valid)
			before = &k->before;
	} else if (k->unseen_valid && k->unseen.begin.ns == i->begin.ns) {
		k->unseen_valid = false;
		f = &k->unseen;
		if (k->before_unseen_valid)
			before = &k->before_unseen;
	} else {
		return;
	}
	if (!i->whole && !i->goes_on) {
		/* Its length is unknown. The entry of another handler showed that it had ended. */
		if (f == &k->interrupt && k->entered.ns == model_now(d->model).ns &&
		    k->entered.ns > i->begin.ns)
			interrupt_begin(d, k, k->entered, i->pid);
		return;
	}
	/* If an idle CPU's vCPU halts, the CPU is not in a handler: the event of the exit is
	 * missing. */
	if (!i->whole && i->pid == 0 && f->state_ns[VCPU_HALTED] * 2 >= i->end.ns - i->begin.ns)
		return;
	f->kind = i->kind;
	f->pid = i->pid;
	f->number = i->number;
	f->vector = i->vector;
	f->ongoing = !i->whole;
	if (i->end.ns - i->begin.ns < d->options.than_ns)
		return;
	/* The run interval around an interrupt ends where the interrupt begins. A new one starts
	 * where it ends. */
	if (k->task_known && before)
		stall_period_end(d, v, k, before, i->begin);
	stall_period_end(d, v, k, f, i->end);
	if (k->task_known)
		period_begin(k, i->end, k->period.pid);
}
