// SPDX-License-Identifier: GPL-2.0-only
/*
 * A lane joins three streams in time order: the vCPU's spans (which arrive late, up to
 * MODEL_HOLD_NS), the contexts of its guest CPU, and marks: who runs or waits there, and samples. A
 * segment is the time between two changes of any stream. It is charged to the task that runs and to
 * each task that waits. Each stream is bounded: if one stream is late by more, the others go on
 * without it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/array.h"

#include "host-collector/analyze/flame/flame_internal.h"

enum {
	RING_FIRST = 64, /* the capacity is always a power of two */
	RING_MAX = 1 << 16,
	/* After one stream has sent this many items while another's span is open, the part of the
	 * span so far is taken. */
	PATIENCE = 4096,
	WAITERS_AT_ONCE = 4096,
};

static void *ring_at(const struct ring *r, uint32_t i)
{
	return r->items + (size_t)((r->head + i) & (r->capacity - 1)) * r->item_bytes;
}

static void *ring_head(const struct ring *r)
{
	return r->count ? ring_at(r, 0) : NULL;
}

static void ring_pop(struct ring *r)
{
	r->head = (r->head + 1) & (r->capacity - 1);
	r->count--;
}

/* 0, -ENOMEM, -ENOSPC. */
static int ring_push(struct ring *r, const void *item)
{
	if (r->count == RING_MAX)
		return -ENOSPC;
	if (r->count == r->capacity) {
		uint32_t capacity = r->capacity ? 2 * r->capacity : RING_FIRST;
		uint8_t *items = malloc((size_t)capacity * r->item_bytes);

		if (!items)
			return -ENOMEM;
		for (uint32_t i = 0; i < r->count; i++)
			memcpy(items + (size_t)i * r->item_bytes, ring_at(r, i), r->item_bytes);
		free(r->items);
		r->items = items;
		r->capacity = capacity;
		r->head = 0;
	}
	r->count++;
	memcpy(ring_at(r, r->count - 1), item, r->item_bytes);
	return 0;
}

static struct lane *lane_new(uint32_t vm, uint32_t vcpu)
{
	struct lane *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->vm = vm;
	l->vcpu = vcpu;
	l->runner = -1;
	l->spans.item_bytes = sizeof(struct vcpu_span);
	l->contexts.item_bytes = sizeof(struct guest_span);
	l->marks.item_bytes = sizeof(struct mark);
	return l;
}

void lane_free(struct lane *l)
{
	if (!l)
		return;
	free(l->spans.items);
	free(l->contexts.items);
	free(l->marks.items);
	free(l->waiters);
	free(l);
}

static struct lane *lane_in(struct flame *f, struct lane **slot, uint32_t vm, uint32_t vcpu)
{
	if (!*slot)
		*slot = lane_new(vm, vcpu);
	if (!*slot)
		f->error = -ENOMEM;
	return *slot;
}

struct lane *lane_of_vcpu(struct flame *f, struct flame_vm *vm, uint32_t vcpu)
{
	struct lane *l = lane_in(f, &vm->by_vcpu[vcpu], vm->vm, vcpu);

	if (l)
		l->has_vcpu = true;
	return l;
}

struct lane *lane_of_cpu(struct flame *f, struct flame_vm *vm, uint16_t cpu)
{
	uint32_t vcpu;

	if (model_vcpu_of_guest_cpu(f->model, vm->vm, cpu, &vcpu))
		return lane_in(f, &vm->orphans[cpu], vm->vm, UINT32_MAX);
	return lane_of_vcpu(f, vm, vcpu);
}

/* ---- charging ---- */

static bool wants_lane(const struct flame *f, const struct lane *l)
{
	return flame_wants_vm(f, l->vm) &&
	       (f->options.vcpu < 0 || (uint32_t)f->options.vcpu == l->vcpu);
}

static bool on_pcpu(const struct vcpu_span *span)
{
	return span->state == VCPU_GUEST || span->state == VCPU_KVM || span->state == VCPU_VMM;
}

static void context_add(struct frames *s, const struct guest_span *context)
{
	char name[32];

	if (context->state == GUEST_CPU_UNKNOWN) {
		frames_text(s, FOLDED_ANNOTATION, false, "[unknown: events lost]");
	} else if (context->state == GUEST_CPU_HARDIRQ || context->state == GUEST_CPU_SOFTIRQ) {
		interrupt_name(context->state, context->vector, context->number, name,
			       sizeof(name));
		frames_add(s, FOLDED_ANNOTATION, false, "[%s %s]",
			   context->state == GUEST_CPU_SOFTIRQ ? "softirq"
			   : context->vector                   ? "interrupt"
							       : "irq",
			   name);
	}
}

/* Adds the segment to the key. Returns false if it has frames other than short texts: stacks, or
 * what took the vCPU off its pCPU. */
static bool run_key_fill(struct charge_key *key, const struct flame *f, const struct lane *l,
			 const struct pending *p)
{
	const struct vcpu_exit *exit = &p->span.exit;

	if (l->sampled || model_data_of(f->model, l->vm).guest_stacks ||
	    (p->observed && !on_pcpu(&p->span)))
		return false;
	key->context = p->context.state;
	key->number = p->context.number;
	key->vector = p->context.vector;
	key->observed = p->observed;
	if (!p->observed)
		return true;
	key->state = p->span.state;
	if (p->span.state != VCPU_GUEST && exit->serial) {
		key->in_exit = true;
		key->exit_isa = exit->isa;
		key->exit_reason = exit->reason;
	}
	return true;
}

static void task_frames(struct frames *s, struct flame *f, struct lane *l, const struct pending *p)
{
	static const struct flame_guest_stack none = {0};

	frames_task(s, f, l->vm, l->runner, true);
	if (l->sampled || model_data_of(f->model, l->vm).guest_stacks)
		frames_guest_stack(s, f, l->vm, l->sampled ? &l->sample : &none, "[not sampled]");
	context_add(s, &p->context);
}

/* Charges the segment to the task that runs. */
static void task_charge(struct flame *f, struct lane *l, const struct pending *p)
{
	bool known = p->context.state != GUEST_CPU_UNKNOWN && p->observed &&
		     p->span.state != VCPU_UNKNOWN;
	struct frames *s = frames_begin(f);
	struct charge_key key;
	bool short_texts;

	if (l->runner <= 0)
		return;
	flame_task_counted(f, l->vm, l->runner, p->ns, known);
	if (!wants_lane(f, l) || !flame_wants_task(f, l->vm, l->runner) ||
	    !flame_wants_state(f, FLAME_TASK_RUNNING))
		return;
	if (f->options.kind == FLAME_ONCPU && p->observed && !on_pcpu(&p->span))
		return;
	charge_key_init(&key, f, CHARGE_RUNS, l->vm, l->runner);
	short_texts = run_key_fill(&key, f, l, p);
	if (short_texts && flame_charge_again(f, &key, p->ns))
		return;
	task_frames(s, f, l, p);
	if (f->options.kind == FLAME_WALL)
		frames_vcpu(s, f, p->observed ? &p->span : NULL, true);
	frames_charge(f, s, p->ns);
	if (short_texts)
		flame_charge_keep(f, &key);
}

/* Charges the segment to the vCPU, whatever its guest runs. */
static void vcpu_charge(struct flame *f, struct lane *l, const struct pending *p)
{
	struct frames *s = frames_begin(f);

	if (!p->observed)
		return;
	l->counted_ns += p->ns;
	if (p->span.state == VCPU_UNKNOWN)
		l->unknown_ns += p->ns;
	if (!wants_lane(f, l) || !flame_wants_state(f, p->span.state) ||
	    !flame_wants_task(f, l->vm, l->runner))
		return;
	frames_thread(s, f, l->vm, p->span.tid);
	if (l->has_guest && l->runner > 0) {
		frames_task(s, f, l->vm, l->runner, false);
		if (l->sampled)
			frames_guest_stack(s, f, l->vm, &l->sample, "");
		context_add(s, &p->context);
	} else if (l->has_guest && l->runner == 0) {
		frames_text(s, FOLDED_ANNOTATION, false, "[guest idle]");
		context_add(s, &p->context);
	}
	frames_vcpu(s, f, &p->span, true);
	frames_charge(f, s, p->ns);
}

static void pending_flush(struct flame *f, struct lane *l)
{
	for (size_t i = 0; i < l->n_pending; i++) {
		if (f->options.subject == FLAME_OF_TASKS)
			task_charge(f, l, &l->pending[i]);
		else
			vcpu_charge(f, l, &l->pending[i]);
	}
	l->n_pending = 0;
}

/* Returns true if a segment of this context and span (NULL: none) would be shown by the same frames
 * as `a`. */
static bool pending_equal(const struct pending *a, const struct guest_span *context,
			  const struct vcpu_span *span)
{
	const struct guest_span *x = &a->context;

	if (a->observed != (span != NULL) || x->state != context->state ||
	    x->number != context->number || x->vector != context->vector)
		return false;
	if (!span)
		return true;
	if (a->span.state != span->state || a->span.tid != span->tid)
		return false;
	if (span->state == VCPU_GUEST)
		return true;
	if (span->state == VCPU_KVM || span->state == VCPU_VMM)
		return !a->span.exit.serial == !span->exit.serial &&
		       a->span.exit.reason == span->exit.reason &&
		       a->span.exit.isa == span->exit.isa;
	return a->span.begin.ns == span->begin.ns;
}

static void pending_add(struct flame *f, struct lane *l, const struct guest_span *context,
			const struct vcpu_span *span, int64_t ns)
{
	struct pending *p;

	for (size_t i = 0; i < l->n_pending; i++) {
		if (pending_equal(&l->pending[i], context, span)) {
			l->pending[i].ns += ns;
			return;
		}
	}
	if (l->n_pending == PENDING_MAX)
		pending_flush(f, l);
	p = &l->pending[l->n_pending++];
	p->ns = ns;
	p->observed = span != NULL;
	p->context = *context;
	if (span)
		p->span = *span;
}

/* span: NULL if the vCPU was not observed. */
static void waiter_charge(struct flame *f, struct lane *l, const struct lane_waiter *w,
			  const struct vcpu_span *span, int64_t ns)
{
	enum flame_task_state state = w->preempted ? FLAME_TASK_PREEMPTED : FLAME_TASK_RUNNABLE;
	const char *runner;
	struct frames *s = frames_begin(f);
	struct charge_key key;
	bool short_texts;

	flame_task_counted(f, l->vm, w->pid, ns, true);
	if (!wants_lane(f, l) || !flame_wants_task(f, l->vm, w->pid) ||
	    !flame_wants_state(f, state))
		return;
	short_texts = !span || on_pcpu(span);
	charge_key_init(&key, f, CHARGE_WAITS, l->vm, w->pid);
	charge_key_runner(&key, f, l->runner);
	key.preempted = w->preempted;
	if (short_texts && flame_charge_again(f, &key, ns))
		return;
	frames_task(s, f, l->vm, w->pid, true);
	runner = l->runner > 0 ? model_task_name(f->model, l->vm, l->runner) : "";
	if (l->runner == 0)
		frames_add(s, FOLDED_ANNOTATION, false, "[task %s: CPU idle]",
			   w->preempted ? "preempted" : "runnable");
	else if (*runner)
		frames_add(s, FOLDED_ANNOTATION, false, "[task %s: CPU held by %s]",
			   w->preempted ? "preempted" : "runnable", runner);
	else
		frames_add(s, FOLDED_ANNOTATION, false, "[task %s]",
			   w->preempted ? "preempted" : "runnable");
	if (span && !on_pcpu(span))
		frames_vcpu(s, f, span, true);
	frames_charge(f, s, ns);
	if (short_texts)
		flame_charge_keep(f, &key);
}

static void segment(struct flame *f, struct lane *l, const struct guest_span *context,
		    const struct vcpu_span *span, int64_t ns)
{
	static const struct guest_span task = {.state = GUEST_CPU_TASK};
	bool waits = f->options.kind == FLAME_WALL || f->options.kind == FLAME_OFFCPU ||
		     f->options.kind == FLAME_OFFWAKE;

	if (f->options.subject == FLAME_OF_VCPUS || f->options.kind == FLAME_WALL ||
	    f->options.kind == FLAME_ONCPU)
		pending_add(f, l, context ? context : &task, span, ns);
	for (size_t i = 0; i < l->n_waiters && waits && f->options.subject == FLAME_OF_TASKS; i++)
		waiter_charge(f, l, &l->waiters[i], span, ns);
}

/* ---- marks ---- */

static void waiter_remove(struct lane *l, int32_t pid)
{
	for (size_t i = 0; i < l->n_waiters; i++) {
		if (l->waiters[i].pid == pid) {
			l->waiters[i] = l->waiters[--l->n_waiters];
			return;
		}
	}
}

static void waiter_add(struct flame *f, struct lane *l, const struct mark *m)
{
	waiter_remove(l, m->pid);
	if (l->n_waiters == WAITERS_AT_ONCE)
		return;
	if (ARRAY_RESERVE(&l->waiters, l->n_waiters, &l->waiters_capacity, 16)) {
		f->error = -ENOMEM;
		return;
	}
	l->waiters[l->n_waiters++] = (struct lane_waiter){m->pid, m->preempted};
}

static void mark_apply(struct flame *f, struct lane *l, const struct mark *m)
{
	switch (m->type) {
	case MARK_RUN:
		pending_flush(f, l);
		l->runner = m->pid;
		l->sampled = false;
		break;
	case MARK_WAIT:
		waiter_add(f, l, m);
		break;
	case MARK_WAIT_OVER:
		waiter_remove(l, m->pid);
		break;
	case MARK_SAMPLE:
		if (m->pid != l->runner)
			break;
		l->sampled = true;
		l->sample = m->stack;
		pending_flush(f, l);
		break;
	}
}

/* ---- joining ---- */

static struct host_ns least(struct host_ns a, struct host_ns b)
{
	return a.ns < b.ns ? a : b;
}

/* Takes one segment or one mark. Returns false if nothing is left before `until`. */
static bool lane_step(struct flame *f, struct lane *l, struct host_ns until)
{
	const struct mark *m = ring_head(&l->marks);
	const struct vcpu_span *v = ring_head(&l->spans);
	const struct guest_span *g = ring_head(&l->contexts);
	struct host_ns next = until;
	int64_t ns;

	if (m && m->t.ns <= l->at.ns) {
		mark_apply(f, l, m);
		ring_pop(&l->marks);
		return true;
	}
	if (v && v->end.ns <= l->at.ns) {
		ring_pop(&l->spans);
		return true;
	}
	if (g && g->end.ns <= l->at.ns) {
		ring_pop(&l->contexts);
		return true;
	}
	if (l->at.ns >= until.ns)
		return false;
	if (m)
		next = least(next, m->t);
	if (v)
		next = least(next, v->begin.ns > l->at.ns ? v->begin : v->end);
	if (g)
		next = least(next, g->begin.ns > l->at.ns ? g->begin : g->end);
	ns = narrow_ns(f->options.time, l->at, next);
	if (ns)
		segment(f, l, g && g->begin.ns <= l->at.ns ? g : NULL,
			v && v->begin.ns <= l->at.ns ? v : NULL, ns);
	l->at = next;
	return true;
}

static void lane_join(struct flame *f, struct lane *l, struct host_ns until)
{
	if (!l->begun)
		return;
	while (lane_step(f, l, until)) {
	}
}

/* Takes all segments up to the time up to which all streams are known. */
static void lane_advance(struct flame *f, struct lane *l)
{
	struct host_ns until = model_now(f->model);

	if (l->has_vcpu)
		until = least(until, l->spans_until);
	if (l->has_guest)
		until = least(until, l->contexts_until);
	lane_join(f, l, until);
}

static void begin(struct flame *f, struct lane *l)
{
	if (l->begun)
		return;
	l->begun = true;
	l->at = model_begin(f->model);
}

static void put(struct flame *f, struct lane *l, struct ring *r, const void *item,
		struct host_ns end)
{
	int err = ring_push(r, item);

	if (err == -ENOSPC) { /* another stream is silent: go on without it */
		lane_join(f, l, end);
		err = ring_push(r, item);
	}
	if (err)
		f->error = err;
}

/* Takes the open span of the guest CPU up to now. Otherwise the vCPU's spans would fill their ring.
 */
static void context_catch_up(struct flame *f, struct lane *l)
{
	struct guest_span open;
	uint16_t cpu;

	if (model_guest_cpu_of_vcpu(f->model, l->vm, l->vcpu, &cpu) ||
	    model_guest_current(f->model, l->vm, cpu, &open))
		return;
	open.end = model_now(f->model);
	lane_context(f, l, &open);
}

/* Takes the open span of a vCPU that runs for long, for the same reason. */
static void span_catch_up(struct flame *f, struct lane *l)
{
	struct vcpu_span open;
	struct host_ns until;

	if (model_vcpu_current(f->model, l->vm, l->vcpu, &open) ||
	    (!on_pcpu(&open) && open.state != VCPU_UNKNOWN) ||
	    model_vcpu_delivered(f->model, l->vm, l->vcpu, &until) || until.ns < open.begin.ns)
		return;
	open.end = model_now(f->model);
	lane_span(f, l, &open);
}

void lane_span(struct flame *f, struct lane *l, const struct vcpu_span *span)
{
	struct vcpu_span rest = *span;

	begin(f, l);
	if (rest.begin.ns < l->spans_until.ns)
		rest.begin = l->spans_until;
	if (rest.begin.ns >= rest.end.ns)
		return;
	l->wall_ns += narrow_ns(f->options.time, rest.begin, rest.end);
	l->tid = rest.tid;
	l->spans_until = rest.end;
	put(f, l, &l->spans, &rest, rest.end);
	if (l->has_guest && l->spans.count >= PATIENCE)
		context_catch_up(f, l);
	lane_advance(f, l);
}

void lane_context(struct flame *f, struct lane *l, const struct guest_span *span)
{
	struct guest_span rest = *span;

	begin(f, l);
	l->has_guest = true;
	if (rest.begin.ns < l->contexts_until.ns)
		rest.begin = l->contexts_until;
	if (rest.begin.ns >= rest.end.ns)
		return;
	l->contexts_until = rest.end;
	put(f, l, &l->contexts, &rest, rest.end);
	if (l->has_vcpu && l->contexts.count >= PATIENCE)
		span_catch_up(f, l);
	lane_advance(f, l);
}

void lane_mark(struct flame *f, struct lane *l, const struct mark *mark)
{
	struct mark m = *mark;

	begin(f, l);
	if (m.t.ns < l->marked.ns)
		m.t = l->marked;
	l->marked = m.t;
	put(f, l, &l->marks, &m, m.t);
	if (l->has_vcpu && l->marks.count >= PATIENCE)
		span_catch_up(f, l);
}

void lane_finish(struct flame *f, struct lane *l, struct host_ns end)
{
	lane_join(f, l, end);
	pending_flush(f, l);
}
