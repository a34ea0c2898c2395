// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/guest.h"

#include <stdio.h>
#include <string.h>

#include "host-collector/simulate/vcpu.h"

enum {
	TICK_NS = 4000000,
	SLICE_NS = 3000000,
	TIMER_VECTOR = 236,
	RESCHEDULE_VECTOR = 253,
	CALL_VECTOR = 251,
	VIRTIO_IRQ = 26,
	STORM_IRQ = 11,
	PRIO = 120, /* of all tasks */
	IRQ_HANDLED = 1,
};

static void proceed(struct guest_cpu_sim *g);

static int32_t current_pid(const struct guest_cpu_sim *g)
{
	return g->current ? g->current->pid : 0;
}

static bool emit(struct guest_cpu_sim *g, struct vs_event e)
{
	return sim_capture_event(g->capture, g->cpu, e);
}

static void announce(struct guest_cpu_sim *g, struct guest_task *t)
{
	struct vs_event e = {.type = VS_EVENT_TASK_NAME};

	if (!t || t->announced)
		return;
	t->announced = true;
	e.pid = e.pid2 = t->pid;
	ev_set_task_comm(&e, t->comm);
	emit(g, e);
}

/* Entry and exit events by kind of frame. */
static const uint16_t frame_events[][2] = {
	[FRAME_OF_IRQ] = {VS_EVENT_IRQ_ENTRY, VS_EVENT_IRQ_EXIT},
	[FRAME_OF_SOFTIRQ] = {VS_EVENT_SOFTIRQ_ENTRY, VS_EVENT_SOFTIRQ_EXIT},
	[FRAME_OF_VECTOR] = {VS_EVENT_VECTOR_ENTRY, VS_EVENT_VECTOR_EXIT},
	[FRAME_OF_SECTION] = {VS_EVENT_NONE, VS_EVENT_NONE},
};

static const uint8_t vectors[] = {
	[VS_VECTOR_LOCAL_TIMER] = TIMER_VECTOR,
	[VS_VECTOR_RESCHEDULE] = RESCHEDULE_VECTOR,
	[VS_VECTOR_CALL_FUNCTION_SINGLE] = CALL_VECTOR,
};

/* False: it shows nothing, or that got lost. */
static bool frame_emit(struct guest_cpu_sim *g, const struct guest_frame *f, bool exit)
{
	struct vs_event e = {.type = frame_events[f->kind][exit], .pid = current_pid(g)};

	ev_set_handler_number(&e, f->number);
	if (f->kind == FRAME_OF_VECTOR && exit)
		ev_set_vector_exit_vector(&e, vectors[f->number]);
	else if (f->kind == FRAME_OF_VECTOR)
		ev_set_vector_entry_vector(&e, vectors[f->number]);
	if (f->kind == FRAME_OF_IRQ && exit)
		ev_set_irq_exit_result(&e, IRQ_HANDLED);
	return e.type && emit(g, e);
}

static bool frame_add(struct guest_cpu_sim *g, const struct guest_frame *f)
{
	if (g->n_frames == GUEST_FRAMES_MAX)
		return false;
	g->frames[g->n_frames] = *f;
	g->frames[g->n_frames++].begun = g->engine->now;
	return frame_emit(g, f, false);
}

enum sim_cause guest_sim_cause(const struct guest_cpu_sim *g, int32_t *culprit)
{
	*culprit = current_pid(g);
	for (size_t i = 0; i < g->n_frames; i++) {
		if (!g->frames[i].cause)
			continue;
		if (g->frames[i].cause != SIM_CAUSE_SPIN && g->frames[i].cause != SIM_CAUSE_STORM)
			*culprit = g->frames[i].culprit;
		return g->frames[i].cause;
	}
	*culprit = 0;
	if (g->current && g->vcpu->apic.timer_waits)
		return SIM_CAUSE_TIMER;
	return SIM_CAUSE_NONE;
}

/* ---- scheduling ---- */

static struct guest_task *ready_take(struct guest_cpu_sim *g)
{
	struct guest_task *t;
	size_t at = 0;

	if (!g->n_ready)
		return NULL;
	for (size_t i = 0; i < g->n_ready; i++) {
		if (g->ready[i]->eager && !g->ready[at]->eager)
			at = i;
	}
	t = g->ready[at];
	memmove(&g->ready[at], &g->ready[at + 1], (--g->n_ready - at) * sizeof(g->ready[0]));
	return t;
}

static void ready_add(struct guest_task *t)
{
	t->state = TASK_READY;
	t->cpu->ready[t->cpu->n_ready++] = t;
}

/* state: of the current task, VS_TASK_RUNNING if it could go on. */
static void schedule(struct guest_cpu_sim *g, uint32_t state)
{
	struct guest_task *prev = g->current, *next;
	struct vs_event e = {.type = VS_EVENT_SCHED_SWITCH};

	g->need_resched = false;
	if (prev && state == VS_TASK_RUNNING)
		ready_add(prev);
	else if (prev)
		prev->state = TASK_SLEEPING;
	next = ready_take(g);
	if (next == prev) {
		if (prev) {
			prev->state = TASK_CURRENT;
			prev->slice_used = 0;
		}
		return;
	}
	announce(g, prev);
	announce(g, next);
	e.pid = current_pid(g);
	e.pid2 = next ? next->pid : 0;
	ev_set_sched_switch_state(&e, state);
	ev_set_sched_switch_out_prio(&e, PRIO);
	ev_set_sched_switch_in_prio(&e, PRIO);
	emit(g, e);
	g->current = next;
	if (next) {
		next->state = TASK_CURRENT;
		next->slice_used = 0;
		if (next->left <= 0)
			next->left = next->run_ns[1] ? engine_between(g->engine, next->run_ns[0],
								      next->run_ns[1])
						     : INT64_MAX / 2;
	}
	truth_switch(g->truth, g->cpu, next ? next->pid : 0, next ? next->comm : "");
}

/* By whatever runs on `by`. */
static void wake(struct guest_task *t, struct guest_cpu_sim *by)
{
	struct guest_cpu_sim *g = t->cpu;
	struct vs_event e = {.type = VS_EVENT_SCHED_WAKEUP};

	t->due = false;
	if (t->state != TASK_SLEEPING || g->offline)
		return;
	announce(by, t);
	e.pid = t->pid;
	e.pid2 = current_pid(by);
	ev_set_sched_wakeup_cpu(&e, g->cpu);
	ev_set_sched_wakeup_prio(&e, PRIO);
	emit(by, e);
	ready_add(t);
	if (g->current && !(t->eager && !g->current->eager))
		return;
	g->need_resched = true;
	if (by != g && by->n_calls < SIM_CPUS_MAX)
		by->calls[by->n_calls++] = g;
}

static void task_timer(void *object, uint64_t generation)
{
	struct guest_task *t = object;

	if (t->generation == generation && t->state == TASK_SLEEPING)
		guest_task_due(t, GUEST_TIMER);
}

static void task_done(struct guest_cpu_sim *g)
{
	struct guest_task *t = g->current;
	const struct sim_step vmm = {
		.kind = STEP_VMM, .ns = pace_draw(g->pace, g->engine, PACE_EXIT_VMM, 3000, 25000)};

	t->left = 0;
	if (t->done)
		t->done(t->context);
	if (t->wakes)
		wake(t->wakes, g);
	t->generation++;
	if (t->sleep_ns[1])
		engine_at(g->engine,
			  g->engine->now +
				  engine_between(g->engine, t->sleep_ns[0], t->sleep_ns[1]),
			  task_timer, t, t->generation);
	schedule(g, VS_TASK_INTERRUPTIBLE);
	if (g->in_guest && engine_chance(g->engine, t->device_share))
		vcpu_sim_exit(g->vcpu, EXIT_MMIO, &vmm, 1);
}

/* ---- interrupts ---- */

static bool interrupts_off(const struct guest_cpu_sim *g)
{
	for (size_t i = 0; i < g->n_frames; i++) {
		if (g->frames[i].irqs_off)
			return true;
	}
	return false;
}

bool guest_sim_takes(const struct guest_cpu_sim *g)
{
	return !interrupts_off(g) && g->n_frames < GUEST_FRAMES_MAX - 1;
}

static bool preemption_off(const struct guest_cpu_sim *g)
{
	for (size_t i = 0; i < g->n_frames; i++) {
		if (g->frames[i].kind != FRAME_OF_SECTION || g->frames[i].preempt_off)
			return true;
	}
	return false;
}

/* An interrupt that comes during a softirq leaves those that it raises to the one under way. */
static bool in_softirq(const struct guest_cpu_sim *g)
{
	for (size_t i = 0; i < g->n_frames; i++) {
		if (g->frames[i].kind == FRAME_OF_SOFTIRQ)
			return true;
	}
	return false;
}

static void storm_again(void *object, uint64_t argument)
{
	struct guest_cpu_sim *g = object;

	(void)argument;
	if (g->engine->now < g->storm.until)
		guest_sim_interrupt(g, GUEST_STORM);
}

static bool interrupt_deliver(struct guest_cpu_sim *g)
{
	struct engine *e = g->engine;
	struct guest_frame f = {.irqs_off = true};
	unsigned now;

	if (!apic_visible(&g->vcpu->apic, g->pending) || !guest_sim_takes(g))
		return false;
	now = apic_deliverable(&g->vcpu->apic, g->pending);
	if (!now) { /* it waits for its injection since interrupts were off */
		vcpu_sim_exit(g->vcpu, EXIT_WINDOW, NULL, 0);
		return false;
	}
	if (now & GUEST_CALL) {
		f.kind = FRAME_OF_VECTOR;
		f.number = VS_VECTOR_CALL_FUNCTION_SINGLE;
		f.left = engine_between(e, 800, 4000);
		f.pending = GUEST_CALL;
		f.done = g->called;
		f.context = g->called_context;
	} else if (now & GUEST_TIMER) {
		f.kind = FRAME_OF_VECTOR;
		f.number = VS_VECTOR_LOCAL_TIMER;
		f.left = pace_draw(g->pace, e, PACE_HANDLER, 1500, 7000);
		f.pending = GUEST_TIMER;
	} else if (now & GUEST_RESCHEDULE) {
		f.kind = FRAME_OF_VECTOR;
		f.number = VS_VECTOR_RESCHEDULE;
		f.left = pace_draw(g->pace, e, PACE_HANDLER, 300, 900);
		f.pending = GUEST_RESCHEDULE;
	} else if (now & GUEST_DEVICE) {
		f.kind = FRAME_OF_IRQ;
		f.number = VIRTIO_IRQ;
		f.left = pace_draw(g->pace, e, PACE_HANDLER, 1000, 5000);
		f.pending = GUEST_DEVICE;
	} else {
		f.kind = FRAME_OF_IRQ;
		f.number = STORM_IRQ;
		f.left = engine_between(e, g->storm.handler_ns[0], g->storm.handler_ns[1]);
		f.pending = GUEST_STORM;
		f.cause = SIM_CAUSE_STORM;
	}
	g->pending &= ~(unsigned)f.pending;
	apic_taken(&g->vcpu->apic, f.pending, frame_add(g, &f));
	return true;
}

static void frame_done(struct guest_cpu_sim *g)
{
	struct guest_frame f = g->frames[--g->n_frames];
	struct engine *e = g->engine;

	if (f.pending) {
		apic_done(&g->vcpu->apic, f.pending);
		for (size_t i = 0; i < g->n_tasks; i++) {
			if (g->tasks[i].due)
				wake(&g->tasks[i], g);
		}
	}
	frame_emit(g, &f, true);
	if (f.kind == FRAME_OF_IRQ)
		truth_interrupt(g->truth, g->cpu, f.begun, "hardirq", f.number);
	if (f.kind == FRAME_OF_SOFTIRQ)
		truth_interrupt(g->truth, g->cpu, f.begun, "softirq", f.number);
	if (f.pending == GUEST_TIMER) {
		if (g->current && g->n_ready && g->current->slice_used >= SLICE_NS)
			g->need_resched = true;
		if (!interrupts_off(g) && !in_softirq(g) && engine_chance(e, 0.3)) {
			const struct guest_frame soft = {
				.kind = FRAME_OF_SOFTIRQ,
				.number = engine_chance(e, 0.5) ? 1 : 9,
				.left = pace_draw(g->pace, e, PACE_SOFTIRQ, 1000, 20000)};

			frame_add(g, &soft);
		}
	}
	if (f.pending == GUEST_STORM)
		engine_at(e, e->now + engine_between(e, g->storm.gap_ns[0], g->storm.gap_ns[1]),
			  storm_again, g, 0);
	if (f.done)
		f.done(f.context);
}

/* ---- time ---- */

static void settle(struct guest_cpu_sim *g)
{
	int64_t ran = g->engine->now - g->since;

	g->generation++;
	g->since = g->engine->now;
	if (g->n_frames) {
		struct guest_frame *top = &g->frames[g->n_frames - 1];

		top->left -= ran;
		top->until_exit -= ran;
		if (top->kind == FRAME_OF_SECTION && g->current)
			g->current->slice_used += ran;
	} else if (g->current) {
		g->current->left -= ran;
		g->current->slice_used += ran;
	}
}

static bool frame_exits(const struct guest_cpu_sim *g)
{
	const struct guest_frame *top = g->n_frames ? &g->frames[g->n_frames - 1] : NULL;

	return top && top->exits && top->left > 0 && top->until_exit <= 0;
}

static void step(void *object, uint64_t generation)
{
	struct guest_cpu_sim *g = object;

	if (!g->in_guest || g->generation != generation)
		return;
	settle(g);
	if (frame_exits(g))
		g->frames[g->n_frames - 1].exits(g, &g->frames[g->n_frames - 1]);
	else if (g->n_frames)
		frame_done(g);
	else if (g->current && g->current->left <= 0)
		task_done(g);
	proceed(g);
}

static int64_t frame_next(const struct guest_frame *f)
{
	return f->exits && f->until_exit < f->left ? f->until_exit : f->left;
}

/* It leaves the guest to call others. */
static bool calls_send(struct guest_cpu_sim *g)
{
	size_t n = g->n_calls;

	if (!n)
		return false;
	g->n_calls = 0;
	vcpu_sim_exit(g->vcpu, EXIT_APIC_WRITE, NULL, 0);
	for (size_t i = 0; i < n; i++)
		apic_call(&g->calls[i]->vcpu->apic, GUEST_RESCHEDULE, g->vcpu);
	return true;
}

static void proceed(struct guest_cpu_sim *g)
{
	int64_t left;

	if (!g->in_guest)
		return;
	while (interrupt_deliver(g))
		;
	if (!g->in_guest || calls_send(g))
		return;
	while (g->need_resched && !preemption_off(g))
		schedule(g, VS_TASK_RUNNING);
	vcpu_sim_emit(g->vcpu);
	if (!g->n_frames && !g->current) {
		vcpu_sim_halt(g->vcpu);
		return;
	}
	left = g->n_frames ? frame_next(&g->frames[g->n_frames - 1]) : g->current->left;
	engine_at(g->engine, g->engine->now + (left > 0 ? left : 0), step, g, g->generation);
}

void guest_sim_enter(struct guest_cpu_sim *g)
{
	g->in_guest = true;
	g->since = g->engine->now;
	g->generation++;
	proceed(g);
}

void guest_sim_leave(struct guest_cpu_sim *g)
{
	settle(g);
	g->in_guest = false;
}

void guest_sim_interrupt(struct guest_cpu_sim *g, enum guest_vector vector)
{
	if (g->offline)
		return;
	apic_interrupt(&g->vcpu->apic, vector);
}

void guest_sim_poke(struct guest_cpu_sim *g)
{
	settle(g);
	proceed(g);
}

void guest_task_due(struct guest_task *t, enum guest_vector vector)
{
	t->due = true;
	guest_sim_interrupt(t->cpu, vector);
}

void guest_sim_push(struct guest_cpu_sim *g, const struct guest_frame *frame)
{
	settle(g);
	frame_add(g, frame);
	proceed(g);
}

void guest_sim_release(struct guest_cpu_sim *g)
{
	bool running = g->in_guest;

	if (running)
		settle(g);
	for (size_t i = 0; i < g->n_frames; i++) {
		if (g->frames[i].exits)
			g->frames[i].left = 0;
	}
	if (running)
		proceed(g);
}

void guest_sim_storm(struct guest_cpu_sim *g, const struct guest_storm *storm)
{
	g->storm = *storm;
	guest_sim_interrupt(g, GUEST_STORM);
}

void guest_sim_offline(struct guest_cpu_sim *g, struct guest_task *stopper)
{
	settle(g);
	for (size_t i = 0; i < g->n_tasks; i++) {
		struct guest_task *t = &g->tasks[i];

		t->state = TASK_SLEEPING;
		t->due = false;
		t->left = 0;
		t->generation++;
	}
	g->n_ready = 0;
	g->need_resched = false;
	ready_add(stopper);
	if (g->current)
		g->current->state = TASK_SLEEPING;
	schedule(g, VS_TASK_INTERRUPTIBLE);
	g->offline = true;
	g->current = NULL; /* its kernel's last switch there is not traced */
	truth_switch(g->truth, g->cpu, 0, "");
	proceed(g);
}

void guest_sim_online(struct guest_cpu_sim *g)
{
	g->offline = false;
	for (size_t i = 0; i < g->n_tasks; i++) {
		struct guest_task *t = &g->tasks[i];

		if (t->sleep_ns[1])
			engine_at(g->engine,
				  g->engine->now + engine_between(g->engine, 1000000,
								  t->sleep_ns[1] + 1000000),
				  task_timer, t, t->generation);
	}
}

/* Ticks stop while the CPU idles. */
static void tick(void *object, uint64_t argument)
{
	struct guest_cpu_sim *g = object;

	(void)argument;
	engine_at(g->engine, g->engine->now + TICK_NS, tick, g, 0);
	if (g->current)
		guest_sim_interrupt(g, GUEST_TIMER);
}

void guest_sim_init(struct guest_cpu_sim *g, struct engine *e, const struct sim_pace *pace,
		    struct sim_capture *c, struct truth *t, struct sim_vcpu *v, uint16_t cpu)
{
	memset(g, 0, sizeof(*g));
	g->engine = e;
	g->pace = pace;
	g->capture = c;
	g->truth = t;
	g->vcpu = v;
	g->cpu = cpu;
	truth_switch(t, cpu, 0, "");
	engine_at(e, engine_between(e, 0, TICK_NS), tick, g, 0);
}

struct guest_task *guest_task_new(struct guest_cpu_sim *g, int32_t pid, const char *comm,
				  int64_t run_low, int64_t run_high, int64_t sleep_low,
				  int64_t sleep_high)
{
	struct guest_task *t;

	if (g->n_tasks == GUEST_TASKS_MAX)
		return NULL;
	t = &g->tasks[g->n_tasks++];
	*t = (struct guest_task){.cpu = g,
				 .pid = pid,
				 .run_ns = {run_low, run_high},
				 .sleep_ns = {sleep_low, sleep_high},
				 .device_share = 0.05};
	snprintf(t->comm, sizeof(t->comm), "%s", comm);
	if (sleep_high)
		engine_at(g->engine,
			  g->engine->now + engine_between(g->engine, 1000000, sleep_high + 1000000),
			  task_timer, t, 0);
	return t;
}
