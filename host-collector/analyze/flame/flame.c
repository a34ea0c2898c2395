// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tracks the state of each guest task as its kernel reports it: running, waiting for a CPU, or
 * asleep. This file charges time asleep when the sleep ends. It passes running and waiting to the
 * lane of the CPU (flame_lane.c), which knows what the vCPU did at that time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/flame/flame_internal.h"
#include "host-collector/model/guest_cpu.h"

/* How a sleep ended. */
struct waking {
	bool known;
	int32_t pid;
	struct guest_span context; /* the context of the waker's CPU */
};

struct flame_vm *flame_vm_get(struct flame *f, uint32_t vm)
{
	struct flame_vm *v;

	for (size_t i = 0; i < f->n_vms; i++) {
		if (f->vms[i]->vm == vm)
			return f->vms[i];
	}
	v = f->n_vms < MODEL_VMS_MAX ? calloc(1, sizeof(*v)) : NULL;
	if (!v) {
		f->error = -ENOMEM;
		return NULL;
	}
	v->vm = vm;
	for (size_t i = 0; i < VS_CPUS_MAX; i++)
		v->current[i] = -1;
	f->vms[f->n_vms++] = v;
	return v;
}

/* ---- what is wanted ---- */

bool flame_wants_vm(const struct flame *f, uint32_t vm)
{
	char number[16];

	if (!f->options.vm)
		return true;
	snprintf(number, sizeof(number), "%u", vm);
	return !strcmp(f->options.vm, number) ||
	       !strcmp(f->options.vm, model_vm_name(f->model, vm));
}

bool flame_wants_task(const struct flame *f, uint32_t source, int32_t pid)
{
	char number[16];

	if (f->options.pid && f->options.pid != pid)
		return false;
	if (!f->options.task)
		return true;
	if (!f->naming && source != VS_SOURCE_HOST && f->options.subject == FLAME_OF_TASKS &&
	    (f->options.threads || !*model_task_name(f->model, source, pid)))
		return true; /* its name decides when it is known; see flame_frames_name */
	snprintf(number, sizeof(number), "%d", pid);
	return !strcmp(f->options.task, number) ||
	       !strcmp(f->options.task, model_task_name(f->model, source, pid));
}

bool flame_wants_state(const struct flame *f, unsigned state)
{
	return !f->options.states || f->options.states & 1u << state;
}

/* ---- tasks ---- */

static void coverage_add(struct flame *f, const struct flame_task *t)
{
	struct flame_coverage *c = &f->coverage;
	int64_t off = t->wall_ns - t->counted_ns;
	double percent = t->wall_ns ? 100.0 * (double)t->counted_ns / (double)t->wall_ns : 100;

	c->threads++;
	c->wall_ns += t->wall_ns;
	c->counted_ns += t->counted_ns;
	c->unknown_ns += t->unknown_ns;
	off = off < 0 ? -off : off;
	if (off <= 1000000 || off * 200 <= t->wall_ns)
		return;
	if (!c->off ||
	    (percent < 100 ? 100 - percent : percent - 100) >
		    (c->worst_percent < 100 ? 100 - c->worst_percent : c->worst_percent - 100)) {
		snprintf(c->worst, sizeof(c->worst), "%s-%d",
			 model_task_name(f->model, t->vm, t->pid), t->pid);
		c->worst_percent = percent;
	}
	c->off++;
}

static uint64_t task_key(uint32_t vm, int32_t pid)
{
	return (uint64_t)vm << 32 | (uint32_t)pid;
}

struct flame_task *flame_task_find(struct flame *f, uint32_t vm, int32_t pid)
{
	uint32_t slot = lru_find(&f->index, task_key(vm, pid));

	return slot == LRU_NONE ? NULL : &f->tasks[slot];
}

/* A task that is seen for the first time has existed since the guest's first event, unless an event
 * shows that it is new. */
static struct flame_task *task_get(struct flame *f, const struct flame_vm *vm, int32_t pid)
{
	bool fresh;
	uint32_t slot = lru_put(&f->index, task_key(vm->vm, pid), &fresh);
	struct flame_task *t = &f->tasks[slot];

	if (!fresh)
		return t;
	if (t->pid) {
		coverage_add(f, t);
		f->coverage.forgotten++;
	}
	*t = (struct flame_task){
		.vm = vm->vm, .pid = pid, .state = FLAME_TASK_UNKNOWN, .since = vm->guest_begin};
	return t;
}

void flame_task_counted(struct flame *f, uint32_t vm, int32_t pid, int64_t ns, bool known)
{
	struct flame_task *t = flame_task_find(f, vm, pid);

	if (!t)
		return;
	t->counted_ns += ns;
	if (!known)
		t->unknown_ns += ns;
}

static void waker_add(struct frames *s, struct flame *f, uint32_t vm, const struct waking *w,
		      bool waker)
{
	char name[32];

	if (w->context.state == GUEST_CPU_HARDIRQ || w->context.state == GUEST_CPU_SOFTIRQ) {
		interrupt_name(w->context.state, w->context.vector, w->context.number, name,
			       sizeof(name));
		frames_add(s, FOLDED_ANNOTATION, waker, "[%s %s]",
			   w->context.state == GUEST_CPU_SOFTIRQ ? "softirq" : "interrupt", name);
	} else if (w->pid == 0) {
		frames_text(s, FOLDED_ANNOTATION, waker, "[interrupt]");
	} else {
		frames_task(s, f, vm, w->pid, !waker);
	}
}

static void sleep_frames(struct frames *s, struct flame *f, const struct flame_task *t)
{
	static const char *const names[] = {[FLAME_TASK_SLEEPING] = "[task sleeping]",
					    [FLAME_TASK_BLOCKED] = "[task blocked]",
					    [FLAME_TASK_STOPPED] = "[task stopped]",
					    [FLAME_TASK_UNKNOWN] = "[unknown: events lost]"};
	const char *name = t->seen ? names[t->state] : "[unknown: not seen yet]";
	const bool always = f->options.kind == FLAME_WALL;

	frames_task(s, f, t->vm, t->pid, true);
	/* A stack shows where the task slept. The kind of sleep is shown if there is no stack,
	 * and if all states are shown. */
	if (t->state != FLAME_TASK_UNKNOWN)
		frames_guest_stack(s, f, t->vm, &t->wait, always ? "" : name);
	if (always || t->state == FLAME_TASK_UNKNOWN)
		frames_text(s, FOLDED_ANNOTATION, false, name);
}

/* Charges a sleep that shows no stack and no waker. */
static void plain_sleep_charge(struct flame *f, struct frames *s, const struct flame_task *t,
			       int64_t ns)
{
	struct charge_key key;

	charge_key_init(&key, f, CHARGE_SLEEPS, t->vm, t->pid);
	key.state = t->state;
	key.observed = t->seen;
	if (flame_charge_again(f, &key, ns))
		return;
	sleep_frames(s, f, t);
	frames_charge(f, s, ns);
	flame_charge_keep(f, &key);
}

/* Charges a time in which the task neither ran nor waited for a CPU. */
static void sleep_charge(struct flame *f, const struct flame_task *t, struct host_ns from,
			 struct host_ns until, const struct waking *w)
{
	const int64_t ns = narrow_ns(f->options.time, from, until);
	enum flame_kind kind = f->options.kind;
	struct frames *s = frames_begin(f);

	if (!ns)
		return;
	flame_task_counted(f, t->vm, t->pid, ns, t->state != FLAME_TASK_UNKNOWN);
	if (!flame_wants_vm(f, t->vm) || !flame_wants_task(f, t->vm, t->pid) ||
	    !flame_wants_state(f, t->state) || f->options.subject != FLAME_OF_TASKS)
		return;
	if (f->options.vcpu >= 0) {
		uint32_t vcpu;

		if (!t->seen || model_vcpu_of_guest_cpu(f->model, t->vm, t->cpu, &vcpu) ||
		    vcpu != (uint32_t)f->options.vcpu)
			return;
	}
	if (kind == FLAME_ONCPU || kind == FLAME_EXITS ||
	    (kind != FLAME_WALL && t->state == FLAME_TASK_UNKNOWN) ||
	    (kind == FLAME_WAKEUP && !w->known))
		return;
	if ((kind == FLAME_WALL || kind == FLAME_OFFCPU) && !t->wait.kernel && !t->wait.user &&
	    !model_data_of(f->model, t->vm).guest_stacks) {
		plain_sleep_charge(f, s, t, ns);
		return;
	}
	if (kind == FLAME_WAKEUP) {
		waker_add(s, f, t->vm, w, false);
		frames_task(s, f, t->vm, t->pid, false);
	} else {
		sleep_frames(s, f, t);
	}
	if (kind == FLAME_OFFWAKE && w->known) {
		frames_text(s, FOLDED_SEPARATOR, false, "--");
		waker_add(s, f, t->vm, w, true);
	}
	frames_charge(f, s, ns);
}

static void lane_emit(struct flame *f, struct flame_vm *vm, uint16_t cpu, struct mark m)
{
	struct lane *l = lane_of_cpu(f, vm, cpu);

	if (l)
		lane_mark(f, l, &m);
}

/* Charges the task's time in its state up to `now`. The caller sets the new state. */
static void task_settle(struct flame *f, struct flame_vm *vm, struct flame_task *t,
			struct host_ns now, const struct waking *w)
{
	static const struct waking nobody = {0};
	struct host_ns from = t->since;

	if (now.ns < t->since.ns)
		now = t->since;
	if (t->gone)
		from = now;
	t->wall_ns += narrow_ns(f->options.time, from, now);
	if (t->state == FLAME_TASK_RUNNABLE || t->state == FLAME_TASK_PREEMPTED) {
		lane_emit(f, vm, t->cpu, (struct mark){now, t->pid, MARK_WAIT_OVER, false, {0}});
	} else if (t->state != FLAME_TASK_RUNNING && from.ns < now.ns) {
		/* The wake-up was not seen. It may have been among lost events, so what follows the
		 * loss counts as unknown. */
		if (!w && t->state != FLAME_TASK_UNKNOWN && vm->lost.ns > t->since.ns) {
			sleep_charge(f, t, from, vm->lost, &nobody);
			from = vm->lost;
			t->state = FLAME_TASK_UNKNOWN;
		}
		sleep_charge(f, t, from, now, w ? w : &nobody);
	}
	t->since = now;
	t->gone = false;
}

static void task_run(struct flame *f, struct flame_vm *vm, uint16_t cpu, int32_t pid,
		     struct host_ns now)
{
	struct flame_task *t = pid > 0 ? task_get(f, vm, pid) : NULL;

	if (t) {
		/* The event by which it left its previous CPU is missing. */
		if (t->state == FLAME_TASK_RUNNING && t->cpu != cpu && vm->current[t->cpu] == pid) {
			vm->current[t->cpu] = -1;
			lane_emit(f, vm, t->cpu, (struct mark){now, -1, MARK_RUN, false, {0}});
		}
		task_settle(f, vm, t, now, NULL);
		t->state = FLAME_TASK_RUNNING;
		t->seen = true;
		t->cpu = cpu;
		t->wait = (struct flame_guest_stack){0};
	}
	vm->current[cpu] = pid;
	lane_emit(f, vm, cpu, (struct mark){now, pid, MARK_RUN, false, {0}});
}

/* The task that was assumed to run on `cpu` does not, and no event shows when it left. */
static void task_vanish(struct flame *f, struct flame_vm *vm, uint16_t cpu, struct host_ns now)
{
	int32_t pid = vm->current[cpu];
	struct flame_task *t = pid > 0 ? flame_task_find(f, vm->vm, pid) : NULL;

	vm->current[cpu] = -1;
	if (!t || t->state != FLAME_TASK_RUNNING || t->cpu != cpu)
		return;
	task_settle(f, vm, t, now, NULL);
	t->state = FLAME_TASK_UNKNOWN;
}

static enum flame_task_state state_of(uint64_t bits)
{
	if (!bits)
		return FLAME_TASK_PREEMPTED;
	if (bits & (VS_TASK_STOPPED | VS_TASK_TRACED | VS_TASK_FROZEN))
		return FLAME_TASK_STOPPED;
	if (bits & VS_TASK_UNINTERRUPTIBLE && !(bits & VS_TASK_IDLE))
		return FLAME_TASK_BLOCKED;
	return FLAME_TASK_SLEEPING;
}

static void task_leave(struct flame *f, struct flame_vm *vm, uint16_t cpu, int32_t pid,
		       uint64_t state, struct host_ns now)
{
	struct flame_task *t = task_get(f, vm, pid);

	task_settle(f, vm, t, now, NULL);
	t->seen = true;
	t->cpu = cpu;
	t->gone = state & (VS_TASK_DEAD | VS_TASK_EXIT);
	t->state = t->gone ? FLAME_TASK_UNKNOWN : state_of(state);
	if (t->state == FLAME_TASK_PREEMPTED)
		lane_emit(f, vm, cpu, (struct mark){now, pid, MARK_WAIT, true, {0}});
}

/* ---- events ---- */

/* `pid` runs on this CPU. Emits a mark if something else was assumed. */
static void current_is(struct flame *f, struct flame_vm *vm, uint16_t cpu, int32_t pid,
		       struct host_ns now)
{
	if (vm->current[cpu] == pid)
		return;
	task_vanish(f, vm, cpu, now);
	task_run(f, vm, cpu, pid, now);
}

static void on_switch(struct flame *f, struct flame_vm *vm, const struct guest_instant *i)
{
	const struct vs_event *e = &i->event;

	current_is(f, vm, e->cpu, e->pid, i->t);
	if (e->pid > 0)
		task_leave(f, vm, e->cpu, e->pid, ev_sched_switch_state(e), i->t);
	task_run(f, vm, e->cpu, e->pid2, i->t);
}

static void on_wakeup(struct flame *f, struct flame_vm *vm, const struct guest_instant *i)
{
	const struct vs_event *e = &i->event;
	struct waking w = {.known = true, .pid = e->pid2};
	struct flame_task *t;

	if (e->pid <= 0)
		return;
	t = task_get(f, vm, e->pid);
	if (i->type == VS_EVENT_SCHED_WAKEUP_NEW && (!t->seen || t->gone)) {
		t->since = i->t;
	} else if (!t->seen) {
		t->state = FLAME_TASK_SLEEPING;
		t->seen = true;
	} else if (t->state == FLAME_TASK_RUNNING || t->state == FLAME_TASK_RUNNABLE ||
		   t->state == FLAME_TASK_PREEMPTED) {
		return;
	}
	w.context.state = GUEST_CPU_UNKNOWN;
	if (f->options.kind == FLAME_WAKEUP || f->options.kind == FLAME_OFFWAKE)
		model_guest_current(f->model, vm->vm, e->cpu, &w.context);
	task_settle(f, vm, t, i->t, &w);
	t->seen = true;
	t->cpu = i->cpu;
	t->state = FLAME_TASK_RUNNABLE;
	lane_emit(f, vm, i->cpu, (struct mark){i->t, e->pid, MARK_WAIT, false, {0}});
}

static void on_migrate(struct flame *f, struct flame_vm *vm, const struct guest_instant *i)
{
	struct flame_task *t = flame_task_find(f, vm->vm, i->event.pid);

	if (!t || (t->state != FLAME_TASK_RUNNABLE && t->state != FLAME_TASK_PREEMPTED))
		return;
	lane_emit(f, vm, t->cpu, (struct mark){i->t, t->pid, MARK_WAIT_OVER, false, {0}});
	t->cpu = i->cpu;
	lane_emit(f, vm, t->cpu,
		  (struct mark){i->t, t->pid, MARK_WAIT, t->state == FLAME_TASK_PREEMPTED, {0}});
}

static void on_stack(struct flame *f, struct flame_vm *vm, const struct guest_instant *i)
{
	const struct vs_event *e = &i->event;
	struct mark m = {i->t,
			 e->pid,
			 MARK_SAMPLE,
			 false,
			 {e->pid2, ev_task_stack_kernel(e), ev_task_stack_user(e)}};
	struct flame_task *t;

	if (ev_task_stack_role(e) == VS_STACK_SAMPLE) {
		lane_emit(f, vm, e->cpu, m);
	} else if (ev_task_stack_role(e) == VS_STACK_WAITER && e->pid > 0) {
		t = task_get(f, vm, e->pid);
		t->wait = m.stack;
	}
}

/* If a single event is lost, the task counts as running until the next event shows another. */
static void on_lost(struct flame *f, struct flame_vm *vm, const struct guest_instant *i)
{
	uint16_t cpu = i->event.cpu;
	struct host_ns from = vm->last[cpu].ns ? vm->last[cpu] : vm->guest_begin;

	vm->lost = from;
	if (loss_is_single(&i->event))
		return;
	task_vanish(f, vm, cpu, from);
	lane_emit(f, vm, cpu, (struct mark){from, -1, MARK_RUN, false, {0}});
	for (uint32_t slot = 0; slot < FLAME_TASKS_MAX; slot++) {
		struct flame_task *t = &f->tasks[slot];

		if (!lru_used(&f->index, slot) || t->vm != vm->vm || t->cpu != cpu ||
		    (t->state != FLAME_TASK_RUNNABLE && t->state != FLAME_TASK_PREEMPTED))
			continue;
		task_settle(f, vm, t, from, NULL);
		t->state = FLAME_TASK_UNKNOWN;
	}
}

typedef void (*handler)(struct flame *f, struct flame_vm *vm, const struct guest_instant *i);

static const handler handlers[VS_EVENT_TYPE_LIMIT] = {
	[VS_EVENT_LOST] = on_lost,
	[VS_EVENT_SCHED_SWITCH] = on_switch,
	[VS_EVENT_SCHED_WAKEUP] = on_wakeup,
	[VS_EVENT_SCHED_WAKEUP_NEW] = on_wakeup,
	[VS_EVENT_SCHED_MIGRATE] = on_migrate,
	[VS_EVENT_TASK_STACK] = on_stack,
};

static void guest_look_take(void *context, const struct guest_instant *i)
{
	flame_guest_look(context, i);
}

static void guest_instant_take(void *context, const struct guest_instant *i)
{
	struct flame *f = context;
	struct flame_vm *vm = flame_vm_get(f, i->vm);
	const struct vs_event *e = &i->event;
	int32_t pid;

	if (!vm)
		return;
	if (!vm->has_guest) {
		vm->has_guest = true;
		vm->guest_begin = i->t;
	}
	if (i->type != VS_EVENT_SCHED_SWITCH && guest_event_current(e, &pid))
		current_is(f, vm, e->cpu, pid, i->t);
	if (i->type < VS_EVENT_TYPE_LIMIT && handlers[i->type])
		handlers[i->type](f, vm, i);
	vm->last[e->cpu] = i->t;
}

static void guest_span_take(void *context, const struct guest_span *span)
{
	struct flame *f = context;
	struct flame_vm *vm = flame_vm_get(f, span->vm);
	struct lane *l = vm ? lane_of_cpu(f, vm, span->cpu) : NULL;

	if (l)
		lane_context(f, l, span);
}

static void vcpu_span_take(void *context, const struct vcpu_span *span)
{
	struct flame *f = context;
	struct flame_vm *vm = flame_vm_get(f, span->vm);
	struct lane *l;

	if (!vm || span->vcpu >= VS_CPUS_MAX)
		return;
	vm->tids[span->vcpu] = span->tid;
	if (f->options.subject == FLAME_OF_VCPUS && f->options.kind != FLAME_WALL) {
		flame_vcpu_span(f, span);
		return;
	}
	l = lane_of_vcpu(f, vm, span->vcpu);
	if (l)
		lane_span(f, l, span);
}

static void host_instant_take(void *context, const struct host_instant *instant)
{
	flame_host_sample(context, instant);
}

/* ---- life ---- */

/* Takes the exit counts that are older than the time window. */
static void exits_opened(void *opener)
{
	struct flame *f = opener;

	exits_analysis.clear(f->exits);
}

static int exits_within(struct flame *f, struct model *m)
{
	const struct narrow *time = f->options.time;

	return time && time->cut ? model_observe_within(m, time->from, time->until, exits_opened, f)
				 : 0;
}

struct flame *flame_new(struct model *m, const struct flame_options *options)
{
	struct flame *f = calloc(1, sizeof(*f));
	const struct figures_options per_vcpu = {.per_vcpu = true};
	struct model_observer observer = {.context = f};

	if (!f)
		return NULL;
	f->model = m;
	f->options = *options;
	if (options->kind == FLAME_LOOKS && options->subject == FLAME_OF_TASKS)
		observer.guest_instant = guest_look_take;
	if (options->kind != FLAME_LOOKS)
		observer.vcpu_span = vcpu_span_take;
	if (options->kind != FLAME_LOOKS &&
	    (options->subject == FLAME_OF_TASKS || options->kind == FLAME_WALL)) {
		observer.guest_instant = guest_instant_take;
		observer.guest_span = guest_span_take;
	}
	if (options->subject == FLAME_OF_VCPUS &&
	    (options->kind == FLAME_ONCPU || options->kind == FLAME_LOOKS))
		observer.host_instant = host_instant_take;
	f->folded = folded_new();
	f->samples = folded_new();
	f->tasks = calloc(FLAME_TASKS_MAX, sizeof(*f->tasks));
	if (options->kind == FLAME_EXITS && !exits_within(f, m))
		f->exits = exits_analysis.new(m, &per_vcpu);
	model_observe_always(m);
	if (!f->folded || !f->samples || !f->tasks || (options->kind == FLAME_EXITS && !f->exits) ||
	    lru_init(&f->index, FLAME_TASKS_MAX) || model_observe(m, &observer)) {
		flame_free(f);
		return NULL;
	}
	return f;
}

void flame_free(struct flame *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n_vms; i++) {
		for (size_t k = 0; k < VS_CPUS_MAX; k++) {
			lane_free(f->vms[i]->by_vcpu[k]);
			lane_free(f->vms[i]->orphans[k]);
		}
		free(f->vms[i]);
	}
	lru_fini(&f->index);
	folded_free(f->folded);
	folded_free(f->samples);
	folded_free(f->named);
	exits_analysis.free(f->exits);
	free(f->tasks);
	free(f);
}

static void lane_end(struct flame *f, struct lane *l, struct host_ns end)
{
	struct flame_task as_thread;

	if (!l)
		return;
	lane_finish(f, l, end);
	if (f->options.subject != FLAME_OF_VCPUS || !l->wall_ns)
		return;
	as_thread = (struct flame_task){.vm = VS_SOURCE_HOST,
					.pid = l->tid,
					.wall_ns = l->wall_ns,
					.counted_ns = l->counted_ns,
					.unknown_ns = l->unknown_ns};
	coverage_add(f, &as_thread);
}

/* Fills f->named with the stacks so far, with names at their roots. Does nothing if no stack was
 * added since the last call. Returns 0 or -ENOMEM. */
static int roots_name(struct flame *f)
{
	struct folded *from = folded_count(f->samples) ? f->samples : f->folded, *named;
	int err;

	if (f->named && f->named_total_ns == folded_total_ns(from))
		return 0;
	named = folded_new();
	f->naming = true;
	err = named ? flame_frames_name(f, from, named) : -ENOMEM;
	f->naming = false;
	if (err) {
		folded_free(named);
		return err;
	}
	folded_free(f->named);
	f->named = named;
	f->named_total_ns = folded_total_ns(from);
	return 0;
}

int flame_finish(struct flame *f)
{
	struct host_ns end = model_now(f->model);

	for (uint32_t slot = 0; slot < FLAME_TASKS_MAX; slot++) {
		struct flame_task *t = &f->tasks[slot];
		struct flame_vm *vm;

		if (!lru_used(&f->index, slot))
			continue;
		vm = flame_vm_get(f, t->vm);
		if (vm)
			task_settle(f, vm, t, end, NULL);
	}
	for (size_t i = 0; i < f->n_vms; i++) {
		for (size_t k = 0; k < VS_CPUS_MAX; k++) {
			lane_end(f, f->vms[i]->by_vcpu[k], end);
			lane_end(f, f->vms[i]->orphans[k], end);
		}
	}
	for (uint32_t slot = 0; slot < FLAME_TASKS_MAX; slot++) {
		if (lru_used(&f->index, slot) && f->options.subject == FLAME_OF_TASKS)
			coverage_add(f, &f->tasks[slot]);
	}
	flame_exits_charge(f);
	return f->error ? f->error : roots_name(f);
}

struct folded *flame_stacks(struct flame *f)
{
	int err;

	flame_exits_charge(f);
	err = roots_name(f);
	if (err)
		f->error = err;
	return f->named ? f->named : f->folded;
}

void flame_coverage_get(const struct flame *f, struct flame_coverage *out)
{
	*out = f->coverage;
}
