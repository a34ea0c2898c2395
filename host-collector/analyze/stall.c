/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One track per guest CPU. Its guest side collects facts of the current stretch (since the last
 * switch) and of the current outermost interrupt; its host side collects facts of the current
 * chain of vCPU states that keep it from the guest. A stretch that has ended waits until the
 * vCPU's spans have been told up to its end, because the model tells them late.
 */
#include "host-collector/analyze/stall.h"

#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/hints.h"
#include "host-collector/analyze/overdue.h"
#include "host-collector/analyze/waiters.h"
#include "host-collector/model/guest_cpu.h"

enum { PENDING_MAX = 64, RECENT_MAX = 8 };

/* Spans that the model holds back arrive within MODEL_HOLD_NS of the end of the wait; a stretch
 * whose end falls into a wait that goes on is told with what is known then. */
#define PENDING_LIMIT_NS (5 * MODEL_HOLD_NS)
/* A CPU has shown its tick after this many regular intervals below the limit. */
#define TICKS_WANTED   16
#define TICK_LIMIT_NS  100000000ll
#define PROVE_EVERY_NS 1000000ll

struct recent { /* a stretch long enough to claim a chain of the host's */
	struct host_ns begin, end;
	bool idle;
};

struct track {
	uint32_t vm;
	uint16_t cpu;
	bool task_known, in_interrupt;
	uint32_t ticks_seen;
	int64_t tick_interval_ns;
	struct host_ns last_tick;
	bool last_tick_busy;
	uint64_t err_ns;
	struct stall_facts stretch, interrupt, chain;
	struct stall_facts proven; /* a long stretch as of its newest event, if a loss cuts it */
	struct stall_facts
		doubted; /* the stretch as of a gap of one event, if the next event is no */
	struct stall_facts before; /* a long stretch as of the interrupt's begin, if that is long */
	struct stall_facts unseen; /* since such a gap: what is missing may be a softirq's entry */
	struct stall_facts reading; /* since the guest's clock was read last */
	bool reading_valid, chain_open, proven_valid, doubt, doubt_proven, before_valid,
		unseen_valid;
	struct recent recent[RECENT_MAX];
	unsigned n_recent;
	struct host_ns peers_asked;  /* whether the other vCPUs are settled */
	struct stall_facts *pending; /* PENDING_MAX of them once one is needed */
	unsigned n_pending;
};

struct stall_vm {
	uint32_t vm;
	struct host_ns guest_last; /* the newest event of the guest */
	int64_t tick_interval_ns;  /* of the CPU that showed it last, for those that have not; 0 */
	struct waiters waiters;
	struct hints *hints;
	struct track *tracks[VS_CPUS_MAX];
};

struct stall_detector {
	struct model *model;
	struct stall_options options;
	stall_found found;
	void *context;
	struct overdue *overdue;
	uint64_t dropped;
	size_t n_vms;
	struct stall_vm *vms[MODEL_VMS_MAX];
};

static struct stall_vm *vm_get(struct stall_detector *d, uint32_t vm)
{
	struct stall_vm *v;

	for (size_t i = 0; i < d->n_vms; i++) {
		if (d->vms[i]->vm == vm)
			return d->vms[i];
	}
	v = d->n_vms < MODEL_VMS_MAX ? calloc(1, sizeof(*v)) : NULL;
	if (!v)
		return NULL;
	v->vm = vm;
	v->hints = hints_new();
	if (!v->hints || waiters_init(&v->waiters)) {
		hints_free(v->hints);
		free(v);
		return NULL;
	}
	d->vms[d->n_vms++] = v;
	return v;
}

static struct track *track_get(struct stall_vm *v, uint16_t cpu)
{
	struct track *k = v->tracks[cpu];

	if (k)
		return k;
	k = v->tracks[cpu] = calloc(1, sizeof(*k));
	if (k) {
		k->vm = v->vm;
		k->cpu = cpu;
	}
	return k;
}

/* ---- from a stretch that has ended to the facts that are handed out ---- */

/* Who else wanted this CPU; of a wait that the stretch ends, only what lies inside it counts. */
static void waiters_count(const struct stall_vm *v, struct stall_facts *f)
{
	struct host_ns end = f->end;
	struct waiters_summary w;

	w = waiters_summarise(&v->waiters, f->cpu, f->begin, end, f->than_ns);
	f->waiter_pid = w.pid;
	f->waiter_ns = w.ns;
	f->n_waiters = w.count;
}

static void facts_complete(const struct stall_detector *d, const struct stall_vm *v,
			   struct stall_facts *f)
{
	facts_close(f);
	facts_host_log(f, d->model);
	f->data = model_data_of(d->model, f->vm);
	hints_fill(v->hints, d->model, f);
	overdue_fill(d->overdue, f);
	f->denied = facts_deny(f);
}

static void tell(struct stall_detector *d, const struct stall_vm *v, struct stall_facts *f)
{
	facts_complete(d, v, f);
	if (f->denied || d->options.all)
		d->found(d->context, f);
}

/* Adds the open span of the vCPU if it follows what has been told. */
static void add_open_span(const struct stall_detector *d, struct stall_facts *f, uint32_t vcpu)
{
	struct vcpu_span open;
	struct host_ns told;

	if (model_vcpu_delivered(d->model, f->vm, vcpu, &told) ||
	    model_vcpu_current(d->model, f->vm, vcpu, &open) || told.ns != open.begin.ns)
		return;
	facts_vcpu_span(f, &open);
}

/* Is everything known about the vCPU up to the end of this stretch? */
static bool complete(const struct stall_detector *d, const struct stall_facts *f, uint32_t vcpu)
{
	struct vcpu_span open;
	struct host_ns told;

	if (model_vcpu_delivered(d->model, f->vm, vcpu, &told) || told.ns >= f->end.ns)
		return true;
	/* Spans that the model holds back come before long, however far its time has jumped. */
	if (model_vcpu_current(d->model, f->vm, vcpu, &open) || told.ns != open.begin.ns)
		return false;
	if (model_now(d->model).ns - f->end.ns > PENDING_LIMIT_NS)
		return true;
	return open.state == VCPU_GUEST || open.state == VCPU_KVM || open.state == VCPU_VMM ||
	       (open.state == VCPU_UNKNOWN && !model_data_of(d->model, f->vm).host_events);
}

/* The other vCPUs' times come late as well, but nothing waits for them for long. */
static bool peers_settled(const struct stall_detector *d, const struct stall_vm *v, struct track *k,
			  struct host_ns t)
{
	struct host_ns now = model_now(d->model);

	if (now.ns - t.ns > PENDING_LIMIT_NS)
		return true;
	if (now.ns - k->peers_asked.ns < PROVE_EVERY_NS)
		return false;
	k->peers_asked = now;
	return hints_settled(v->hints, d->model, k->vm, t);
}

/* By the clocks, what caused the guest's last event may be still to come from the host. */
static bool clocks_settled(const struct stall_detector *d, const struct stall_facts *f)
{
	int64_t err_ns =
		f->err_ns < PENDING_LIMIT_NS / 2 ? 2 * (int64_t)f->err_ns : PENDING_LIMIT_NS;

	return model_now(d->model).ns - f->end.ns >= err_ns;
}

static void pending_check(struct stall_detector *d, const struct stall_vm *v, struct track *k,
			  bool all)
{
	uint32_t vcpu = 0;
	bool known = !model_vcpu_of_guest_cpu(d->model, k->vm, k->cpu, &vcpu);

	while (k->n_pending) {
		struct stall_facts *f = k->pending;

		if (known && !all &&
		    (!clocks_settled(d, f) || !complete(d, f, vcpu) ||
		     !peers_settled(d, v, k, f->end)))
			return;
		if (known)
			add_open_span(d, f, vcpu);
		tell(d, v, f);
		k->n_pending--;
		memmove(f, f + 1, k->n_pending * sizeof(*f));
	}
}

static void pending_add(struct stall_detector *d, const struct stall_vm *v, struct track *k,
			const struct stall_facts *f)
{
	if (!k->pending)
		k->pending = calloc(PENDING_MAX, sizeof(*k->pending));
	if (!k->pending) {
		d->dropped++;
		return;
	}
	if (k->n_pending == PENDING_MAX)
		pending_check(d, v, k, true);
	k->pending[k->n_pending++] = *f;
	pending_check(d, v, k, false);
}

static void recent_add(struct track *k, const struct stall_facts *f)
{
	k->recent[k->n_recent++ % RECENT_MAX] = (struct recent){
		.begin = f->begin, .end = f->end, .idle = f->kind == GUEST_CPU_IDLE};
	if (k->n_recent == 2 * RECENT_MAX)
		k->n_recent = RECENT_MAX;
}

/* What the track knows of a long stretch that ends at `t`. */
static void stretch_seal(const struct stall_detector *d, const struct stall_vm *v,
			 const struct track *k, struct stall_facts *f, struct host_ns t)
{
	facts_end(f, t);
	f->than_ns = d->options.than_ns;
	f->err_ns = k->err_ns;
	f->tick_interval_ns =
		k->ticks_seen >= TICKS_WANTED ? k->tick_interval_ns : v->tick_interval_ns;
	waiters_count(v, f);
}

static void stretch_tell(struct stall_detector *d, const struct stall_vm *v, struct track *k,
			 const struct stall_facts *f)
{
	recent_add(k, f);
	if (f->kind != GUEST_CPU_IDLE) /* what the host did to an idle CPU comes as a chain */
		pending_add(d, v, k, f);
}

static void stretch_end(struct stall_detector *d, const struct stall_vm *v, struct track *k,
			struct stall_facts *f, struct host_ns t)
{
	if (t.ns - f->begin.ns < d->options.than_ns)
		return;
	stretch_seal(d, v, k, f, t);
	stretch_tell(d, v, k, f);
}

/* ---- the guest's side ---- */

static void stretch_begin(struct track *k, struct host_ns t, int32_t pid)
{
	facts_begin(&k->stretch, k->vm, k->cpu, t);
	k->stretch.kind = pid == 0 ? GUEST_CPU_IDLE : GUEST_CPU_TASK;
	k->stretch.pid = pid;
	k->task_known = true;
	k->proven_valid = false;
	k->doubt = false;
	k->unseen_valid = false;
}

/* Remembers a stretch that is long already, as of this event. */
static void stretch_prove(const struct stall_detector *d, struct track *k, struct host_ns t)
{
	if (!k->task_known || t.ns - k->stretch.begin.ns < d->options.than_ns ||
	    (k->proven_valid && t.ns - k->proven.end.ns < PROVE_EVERY_NS))
		return;
	k->proven = k->stretch;
	facts_end(&k->proven, t);
	k->proven_valid = true;
}

static void guest_switch(struct stall_detector *d, struct stall_vm *v, struct track *k,
			 const struct guest_instant *i)
{
	if (k->task_known)
		stretch_end(d, v, k, &k->stretch, i->t);
	waiters_remove(&v->waiters, i->event.pid2);
	if (i->event.pid != 0 && i->event.arg0 == VS_TASK_RUNNING)
		waiters_add(&v->waiters, i->event.pid, i->cpu, i->t);
	else
		waiters_remove(&v->waiters, i->event.pid);
	stretch_begin(k, i->t, i->event.pid2);
}

static void guest_wakeup(struct stall_detector *d, struct stall_vm *v, struct track *k,
			 const struct guest_instant *i)
{
	(void)d;
	/* A task that still runs is woken out of a sleep it never began. */
	if (!k->task_known || k->stretch.pid != i->event.pid)
		waiters_add(&v->waiters, i->event.pid, i->cpu, i->t);
}

static void guest_migrate(struct stall_detector *d, struct stall_vm *v, struct track *k,
			  const struct guest_instant *i)
{
	(void)d;
	(void)k;
	waiters_move(&v->waiters, i->event.pid, i->cpu);
}

static void guest_exit(struct stall_detector *d, struct stall_vm *v, struct track *k,
		       const struct guest_instant *i)
{
	(void)d;
	(void)k;
	waiters_remove(&v->waiters, i->event.pid);
}

static void tick(struct stall_vm *v, struct track *k, struct host_ns t)
{
	bool busy = k->task_known && k->stretch.pid != 0;
	int64_t interval = t.ns - k->last_tick.ns;

	/* A tick that followed a tick, with a task running at both. */
	if (busy && k->last_tick_busy && interval < TICK_LIMIT_NS) {
		if (k->ticks_seen < TICKS_WANTED)
			k->ticks_seen++;
		k->tick_interval_ns +=
			k->ticks_seen == 1 ? interval : (interval - k->tick_interval_ns) / 16;
		if (k->ticks_seen == TICKS_WANTED)
			v->tick_interval_ns = k->tick_interval_ns;
	}
	k->last_tick = t;
	k->last_tick_busy = busy;
	facts_tick(&k->stretch, t, k->tick_interval_ns);
	if (k->unseen_valid)
		facts_tick(&k->unseen, t, k->tick_interval_ns);
	if (k->in_interrupt)
		facts_tick(&k->interrupt, t, k->tick_interval_ns);
}

static void guest_enter(struct stall_detector *d, struct stall_vm *v, struct track *k,
			const struct guest_instant *i)
{
	if (i->type == VS_EVENT_VECTOR_ENTRY && i->event.arg0 == VS_VECTOR_LOCAL_TIMER)
		tick(v, k, i->t);
	if (k->in_interrupt)
		return;
	facts_begin(&k->interrupt, k->vm, k->cpu, i->t);
	k->interrupt.pid = i->event.pid;
	k->in_interrupt = true;
	k->before_valid = k->task_known && i->t.ns - k->stretch.begin.ns >= d->options.than_ns;
	if (k->before_valid) {
		k->before = k->stretch;
		facts_end(&k->before, i->t);
	}
}

static void track_forget(struct stall_vm *v, struct track *k, struct host_ns t)
{
	k->doubt = false;
	k->unseen_valid = false;
	k->proven_valid = false;
	k->task_known = false;
	k->last_tick_busy = false;
	waiters_forget(&v->waiters, k->cpu, t);
}

/* The missing event was a switch, or more are missing: the stretch counts up to the gap. */
static void doubt_fails(struct stall_detector *d, struct stall_vm *v, struct track *k,
			struct host_ns t)
{
	if (k->doubt_proven) {
		k->doubted.ongoing = false;
		stretch_end(d, v, k, &k->doubted, k->doubted.end);
	} else if (k->proven_valid) {
		stretch_end(d, v, k, &k->proven, k->proven.end);
	}
	track_forget(v, k, t);
}

/* The first event after a gap of one: if the same task is current, it was all along. */
static void doubt_end(struct stall_detector *d, struct stall_vm *v, struct track *k,
		      const struct guest_instant *i)
{
	int32_t pid;

	if (!guest_event_was_current(&i->event, &pid) || pid != k->stretch.pid) {
		doubt_fails(d, v, k, i->t);
		return;
	}
	k->doubt = false;
	k->unseen_valid = true;
	facts_begin(&k->unseen, k->vm, k->cpu, i->t);
}

static void guest_lost(struct stall_detector *d, struct stall_vm *v, struct track *k,
		       const struct guest_instant *i)
{
	const struct host_ns never = {INT64_MIN};

	if (k->doubt) {
		doubt_fails(d, v, k, i->t);
		return;
	}
	if (k->task_known && loss_is_single(&i->event)) {
		k->doubted = k->stretch;
		facts_end(&k->doubted, i->t);
		k->doubt = true;
		k->doubt_proven = loss_since(&i->event, i->t, never).ns == i->t.ns &&
				  i->err_ns < (uint64_t)d->options.than_ns / 2;
		return;
	}
	/* Nobody knows whether the stretch went on: it counts up to where the gap began, if that is
	 * known well enough, else up to its last event. */
	if (k->task_known && loss_since(&i->event, i->t, never).ns == i->t.ns &&
	    i->err_ns < (uint64_t)d->options.than_ns / 2) {
		k->stretch.ongoing = i->event.arg0 == 0;
		stretch_end(d, v, k, &k->stretch, i->t);
	} else if (k->proven_valid) {
		stretch_end(d, v, k, &k->proven, k->proven.end);
	}
	track_forget(v, k, i->t);
}

typedef void (*guest_handler)(struct stall_detector *d, struct stall_vm *v, struct track *k,
			      const struct guest_instant *i);

static const guest_handler guest_handlers[VS_EVENT_TYPE_LIMIT] = {
	[VS_EVENT_LOST] = guest_lost,
	[VS_EVENT_SCHED_SWITCH] = guest_switch,
	[VS_EVENT_SCHED_WAKEUP] = guest_wakeup,
	[VS_EVENT_SCHED_WAKEUP_NEW] = guest_wakeup,
	[VS_EVENT_SCHED_MIGRATE] = guest_migrate,
	[VS_EVENT_TASK_EXIT] = guest_exit,
	[VS_EVENT_IRQ_ENTRY] = guest_enter,
	[VS_EVENT_SOFTIRQ_ENTRY] = guest_enter,
	[VS_EVENT_VECTOR_ENTRY] = guest_enter,
};

static void on_guest_instant(void *context, const struct guest_instant *i)
{
	struct stall_detector *d = context;
	struct stall_vm *v = vm_get(d, i->vm);
	struct track *k = v ? track_get(v, i->cpu) : NULL;
	struct track *here = v ? track_get(v, i->event.cpu) : NULL;
	uint32_t vcpu;
	int32_t pid;

	if (!k || !here)
		return;
	if (i->type != VS_EVENT_LOST)
		here->err_ns = i->err_ns;
	if (i->type != VS_EVENT_LOST && here->doubt)
		doubt_end(d, v, here, i);
	if (i->type < VS_EVENT_TYPE_LIMIT && guest_handlers[i->type])
		guest_handlers[i->type](d, v, k, i);
	if (i->type == VS_EVENT_LOST)
		return;
	if (!model_vcpu_of_guest_cpu(d->model, i->vm, i->event.cpu, &vcpu))
		hints_guest(v->hints, vcpu, i);
	v->guest_last = i->t;
	if (!here->task_known && guest_event_current(&i->event, &pid))
		stretch_begin(here, i->t, pid);
	stretch_prove(d, here, i->t);
	if (here->n_pending)
		pending_check(d, v, here, false);
}

static void on_guest_span(void *context, const struct guest_span *span)
{
	struct stall_vm *v = vm_get(context, span->vm);
	struct track *k = v ? track_get(v, span->cpu) : NULL;

	if (!k)
		return;
	facts_guest_span(&k->stretch, span);
	if (k->unseen_valid)
		facts_guest_span(&k->unseen, span);
	if (k->in_interrupt)
		facts_guest_span(&k->interrupt, span);
}

static void on_guest_interrupt(void *context, const struct guest_interrupt *i)
{
	struct stall_detector *d = context;
	struct stall_vm *v = vm_get(d, i->vm);
	struct track *k = v ? track_get(v, i->cpu) : NULL;
	struct stall_facts *f;

	if (!k)
		return;
	if (k->in_interrupt && k->interrupt.begin.ns == i->begin.ns) {
		k->in_interrupt = false;
		f = &k->interrupt;
	} else if (k->unseen_valid && k->unseen.begin.ns == i->begin.ns) {
		k->unseen_valid = false;
		f = &k->unseen;
	} else {
		return;
	}
	if (!i->whole && i->end.ns < model_now(d->model).ns)
		return; /* cut by a loss, and what the host did since is in its facts */
	f->kind = i->kind;
	f->pid = i->pid;
	f->number = i->number;
	f->vector = i->vector;
	f->ongoing = !i->whole;
	if (i->end.ns - i->begin.ns < d->options.than_ns)
		return;
	/* The stretch around it ends where the interrupt began, and starts anew where it ended. */
	if (k->task_known && k->before_valid)
		stretch_end(d, v, k, &k->before, i->begin);
	stretch_end(d, v, k, f, i->end);
	if (k->task_known)
		stretch_begin(k, i->end, k->stretch.pid);
}

/* ---- the host's side ---- */

static int64_t overlap(struct host_ns a, struct host_ns b, struct host_ns x, struct host_ns y)
{
	int64_t begin = a.ns > x.ns ? a.ns : x.ns, end = b.ns < y.ns ? b.ns : y.ns;

	return end > begin ? end - begin : 0;
}

/* Which stretch of the guest a chain of the host's lies in. False: one that is told by itself. */
static bool chain_stands_alone(const struct stall_detector *d, const struct track *k,
			       struct stall_facts *chain)
{
	unsigned n = k->n_recent < RECENT_MAX ? k->n_recent : RECENT_MAX;
	int64_t best = 0;

	chain->kind = GUEST_CPU_UNKNOWN;
	chain->pid = 0;
	if (k->task_known) {
		best = overlap(chain->begin, chain->end, k->stretch.begin, model_now(d->model));
		if (k->stretch.kind == GUEST_CPU_TASK && best >= d->options.than_ns)
			return false;
		if (best > 0)
			chain->kind = k->stretch.kind;
		chain->pid = k->stretch.pid;
	}
	for (unsigned i = 0; i < n; i++) {
		int64_t ns =
			overlap(chain->begin, chain->end, k->recent[i].begin, k->recent[i].end);

		if (!k->recent[i].idle && ns >= d->options.than_ns)
			return false;
		if (ns > best) {
			best = ns;
			chain->kind = GUEST_CPU_IDLE;
			chain->pid = 0;
		}
	}
	return true;
}

static void chain_end(struct stall_detector *d, const struct stall_vm *v, struct track *k)
{
	struct stall_facts *f = &k->chain;

	k->chain_open = false;
	if (facts_duration(f) < d->options.than_ns || !chain_stands_alone(d, k, f))
		return;
	f->than_ns = d->options.than_ns;
	f->err_ns = k->err_ns;
	tell(d, v, f);
}

static void on_vcpu_span(void *context, const struct vcpu_span *span)
{
	struct stall_detector *d = context;
	struct stall_vm *v = vm_get(d, span->vm);
	struct track *k;
	uint16_t cpu;

	if (!v || model_guest_cpu_of_vcpu(d->model, span->vm, span->vcpu, &cpu))
		return;
	k = track_get(v, cpu);
	if (!k)
		return;
	hints_vcpu(v->hints, span);
	if (k->reading_valid)
		facts_vcpu_span(&k->reading, span);
	for (unsigned i = 0; i < k->n_pending; i++)
		facts_vcpu_span(&k->pending[i], span);
	facts_vcpu_span(&k->stretch, span);
	if (k->doubt)
		facts_vcpu_span(&k->doubted, span);
	if (k->proven_valid)
		facts_vcpu_span(&k->proven, span);
	if (k->unseen_valid)
		facts_vcpu_span(&k->unseen, span);
	if (k->in_interrupt)
		facts_vcpu_span(&k->interrupt, span);
	if (k->in_interrupt && k->before_valid)
		facts_vcpu_span(&k->before, span);
	pending_check(d, v, k, false);

	if (!vcpu_state_denies(span->state)) {
		if (k->chain_open)
			chain_end(d, v, k);
		return;
	}
	if (!k->chain_open) {
		facts_begin(&k->chain, span->vm, cpu, span->begin);
		k->chain_open = true;
	}
	k->chain.end.ns = INT64_MAX;
	facts_vcpu_span(&k->chain, span);
	k->chain.end = span->end;
}

static void on_host_instant(void *context, const struct host_instant *i)
{
	struct stall_detector *d = context;
	struct stall_vm *v = i->of_vcpu ? vm_get(d, i->vm) : NULL;

	/* The collector's own stream brings only stacks. */
	for (size_t k = 0; i->event.type == VS_EVENT_LOST && k < d->n_vms; k++) {
		if (i->event.cpu != VS_CPU_COLLECTOR)
			hints_lost(d->vms[k]->hints, i->t);
	}
	if (v)
		hints_host(v->hints, d->model, i);
}

/* A lost interrupt that no stretch shows. */
static void on_lost_interrupt(void *context, struct stall_facts *f)
{
	struct stall_detector *d = context;

	f->data = model_data_of(d->model, f->vm);
	f->denied = true;
	d->found(d->context, f);
}

/* The clock is the whole guest's: what it does is told of the guest's first CPU. */
static void on_guest_clock(void *context, const struct guest_clock_reading *r)
{
	struct stall_detector *d = context;
	struct stall_vm *v = vm_get(d, r->vm);
	struct track *k = v ? track_get(v, 0) : NULL;
	struct stall_facts *f;

	if (!k)
		return;
	f = &k->reading;
	if (k->reading_valid && r->step_ns && r->t.ns > f->begin.ns) {
		facts_end(f, r->t);
		f->than_ns = d->options.than_ns;
		f->err_ns = k->err_ns;
		f->clock_step_ns = r->step_ns;
		f->kind = k->task_known ? k->stretch.kind : GUEST_CPU_UNKNOWN;
		f->pid = k->task_known ? k->stretch.pid : 0;
		pending_add(d, v, k, f);
	}
	facts_begin(f, k->vm, k->cpu, r->t);
	k->reading_valid = true;
}

static void each_track(struct stall_detector *d,
		       void (*visit)(struct stall_detector *d, struct stall_vm *v, struct track *k))
{
	for (size_t i = 0; i < d->n_vms; i++) {
		for (size_t c = 0; c < VS_CPUS_MAX; c++) {
			if (d->vms[i]->tracks[c])
				visit(d, d->vms[i], d->vms[i]->tracks[c]);
		}
	}
}

static void advance_track(struct stall_detector *d, struct stall_vm *v, struct track *k)
{
	pending_check(d, v, k, false);
}

static void on_advance(void *context, struct host_ns now)
{
	(void)now;
	each_track(context, advance_track);
}

/* ---- */

struct stall_detector *stall_new(struct model *m, const struct stall_options *options,
				 stall_found found, void *context)
{
	struct stall_detector *d = calloc(1, sizeof(*d));
	struct model_observer observer = {
		.vcpu_span = on_vcpu_span,
		.guest_span = on_guest_span,
		.guest_instant = on_guest_instant,
		.guest_interrupt = on_guest_interrupt,
		.host_instant = on_host_instant,
		.guest_clock = on_guest_clock,
		.advance = on_advance,
		.context = d,
	};

	if (!d)
		return NULL;
	d->model = m;
	d->options = *options;
	d->found = found;
	d->context = context;
	d->overdue = overdue_new(m, options->than_ns, on_lost_interrupt, d);
	if (!d->overdue || model_observe(m, &observer)) {
		overdue_free(d->overdue);
		free(d);
		return NULL;
	}
	return d;
}

struct chains *stall_chains(const struct stall_detector *d)
{
	return overdue_chains(d->overdue);
}

void stall_free(struct stall_detector *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_vms; i++) {
		for (size_t c = 0; c < VS_CPUS_MAX; c++) {
			if (d->vms[i]->tracks[c])
				free(d->vms[i]->tracks[c]->pending);
			free(d->vms[i]->tracks[c]);
		}
		hints_free(d->vms[i]->hints);
		waiters_fini(&d->vms[i]->waiters);
		free(d->vms[i]);
	}
	overdue_free(d->overdue);
	free(d);
}

static void finish_track(struct stall_detector *d, struct stall_vm *v, struct track *k)
{
	if (k->chain_open) {
		k->chain.ongoing = true;
		chain_end(d, v, k);
	}
	if (k->task_known) {
		k->stretch.ongoing = true;
		stretch_end(d, v, k, &k->stretch, model_now(d->model));
		k->task_known = false;
	}
	pending_check(d, v, k, true);
}

void stall_finish(struct stall_detector *d)
{
	overdue_finish(d->overdue);
	each_track(d, finish_track);
}

/* What the guest's side of an open stretch shows, as of the newest event of that guest: its later
 * silence may only mean that its events have not arrived. */
static bool stretch_ongoing(const struct stall_detector *d, const struct stall_vm *v,
			    const struct track *k, struct stall_facts *f)
{
	if (!k->task_known || k->stretch.kind != GUEST_CPU_TASK ||
	    v->guest_last.ns - k->stretch.begin.ns < d->options.than_ns)
		return false;
	*f = k->stretch;
	stretch_seal(d, v, k, f, v->guest_last);
	f->end = model_now(d->model);
	return true;
}

static bool chain_ongoing(const struct stall_detector *d, const struct track *k, uint32_t vcpu,
			  struct stall_facts *f)
{
	struct vcpu_span open;

	if (model_vcpu_current(d->model, k->vm, vcpu, &open) || !vcpu_state_denies(open.state))
		return false;
	if (k->chain_open && k->chain.end.ns == open.begin.ns) {
		*f = k->chain;
		f->end.ns = INT64_MAX;
	} else {
		facts_begin(f, k->vm, k->cpu, open.begin);
	}
	facts_vcpu_span(f, &open);
	f->end = open.end;
	f->than_ns = d->options.than_ns;
	f->err_ns = k->err_ns;
	f->kind = k->task_known ? k->stretch.kind : GUEST_CPU_UNKNOWN;
	f->pid = k->task_known ? k->stretch.pid : 0;
	return facts_duration(f) >= d->options.than_ns;
}

/* A vCPU that was never off its pCPU before has told nothing yet, but its stall counts too. */
static void tracks_complete(struct stall_detector *d)
{
	uint32_t vms[MODEL_VMS_MAX];
	size_t n_vms = model_vms(d->model, vms, MODEL_VMS_MAX);

	for (size_t i = 0; i < n_vms; i++) {
		struct stall_vm *v = vm_get(d, vms[i]);
		uint32_t vcpus[VS_CPUS_MAX];
		size_t n = v ? model_vcpus(d->model, vms[i], vcpus, VS_CPUS_MAX) : 0;

		for (size_t k = 0; k < n; k++) {
			uint16_t cpu;

			if (!model_guest_cpu_of_vcpu(d->model, vms[i], vcpus[k], &cpu))
				track_get(v, cpu);
		}
	}
}

size_t stall_ongoing(struct stall_detector *d, struct stall_facts *out, size_t max)
{
	size_t n = 0;

	tracks_complete(d);
	for (size_t i = 0; i < d->n_vms; i++) {
		for (size_t c = 0; c < VS_CPUS_MAX && n < max; c++) {
			const struct track *k = d->vms[i]->tracks[c];
			struct stall_facts *f = &out[n];
			uint32_t vcpu;
			bool joined;

			if (!k)
				continue;
			joined = !model_vcpu_of_guest_cpu(d->model, k->vm, k->cpu, &vcpu);
			if (!(joined && chain_ongoing(d, k, vcpu, f))) {
				if (!stretch_ongoing(d, d->vms[i], k, f))
					continue;
				if (joined)
					add_open_span(d, f, vcpu);
			}
			f->ongoing = true;
			facts_complete(d, d->vms[i], f);
			n += f->denied;
		}
	}
	return n;
}

uint64_t stall_dropped(const struct stall_detector *d)
{
	return d->dropped;
}
