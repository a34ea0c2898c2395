/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For each guest CPU, a lane holds the spans of each side that the other side has not covered yet.
 * The model delivers vCPU spans late (MODEL_HOLD_NS), so the guest's spans wait for them. A lane is
 * bounded: if the guest's queue is full, its spans are charged as unknown.
 */
#include "host-collector/tables/bill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/tables/figures.h"
#include "host-collector/util/lru.h"

enum { TASKS_MAX = 8192, LANE_MAX = 1 << 16, LANE_FIRST = 64 };

struct piece {
	struct host_ns begin, end;
	int32_t what;  /* guest: pid; vCPU: state */
	uint32_t boot; /* guest: of its kernel */
};

/* A ring that grows to LANE_MAX. */
struct queue {
	struct piece *items;
	uint32_t capacity, head, count;
};

struct lane {
	uint32_t vm;
	uint16_t cpu;
	struct queue guest, vcpu;
	struct host_ns covered; /* by vCPU spans told so far */
	int32_t pid;            /* of the last stay... */
	uint32_t boot;          /* and its boot */
	int64_t kept_ns;        /* at a stretch, up to now */
};

struct bill_vm {
	uint32_t vm;
	struct lane *lanes[VS_CPUS_MAX];
};

struct bill {
	struct analysis_base base;
	struct lru index;
	struct bill_task *tasks;
	size_t n_vms;
	struct bill_vm *vms[MODEL_VMS_MAX];
};

static struct piece *queue_head(const struct queue *q)
{
	return q->count ? &q->items[q->head] : NULL;
}

/* Returns the new head, or NULL. */
static struct piece *queue_pop(struct queue *q)
{
	q->head = (q->head + 1) & (q->capacity - 1);
	q->count--;
	return queue_head(q);
}

__attribute__((noinline)) static int queue_grow(struct queue *q)
{
	uint32_t capacity = q->capacity ? 2 * q->capacity : LANE_FIRST;
	struct piece *items = malloc(capacity * sizeof(*items));

	if (!items)
		return -ENOMEM;
	for (uint32_t i = 0; i < q->count; i++)
		items[i] = q->items[(q->head + i) & (q->capacity - 1)];
	free(q->items);
	q->items = items;
	q->capacity = capacity;
	q->head = 0;
	return 0;
}

/* Appends to a queue that is not full. 0 or -ENOMEM. */
static inline int queue_push(struct queue *q, const struct piece *p)
{
	if (q->count == q->capacity && queue_grow(q))
		return -ENOMEM;
	q->items[(q->head + q->count++) & (q->capacity - 1)] = *p;
	return 0;
}

static struct bill_task *task_get(struct bill *b, uint32_t vm, uint32_t boot, uint16_t cpu,
				  int32_t pid)
{
	uint16_t kept = b->base.options.per_vcpu ? cpu : 0;
	bool fresh;
	uint32_t slot = lru_put(&b->index,
				(uint64_t)boot << 52 | (uint64_t)vm << 42 | (uint64_t)kept << 32 |
					(uint32_t)pid,
				&fresh);

	if (fresh)
		b->tasks[slot] =
			(struct bill_task){.vm = vm, .boot = boot, .cpu = kept, .pid = pid};
	return &b->tasks[slot];
}

/* Returns NULL if there is no memory, or no room for one more VM. */
__attribute__((noinline)) static struct lane *lane_new(struct bill *b, uint32_t vm, uint16_t cpu)
{
	struct bill_vm *v = NULL;

	for (size_t i = 0; i < b->n_vms && !v; i++) {
		if (b->vms[i]->vm == vm)
			v = b->vms[i];
	}
	if (!v) {
		v = b->n_vms < MODEL_VMS_MAX ? calloc(1, sizeof(*v)) : NULL;
		if (!v)
			return NULL;
		v->vm = vm;
		b->vms[b->n_vms++] = v;
	}
	v->lanes[cpu] = calloc(1, sizeof(struct lane));
	if (v->lanes[cpu])
		*v->lanes[cpu] = (struct lane){.vm = vm, .cpu = cpu};
	return v->lanes[cpu];
}

static inline struct lane *lane_get(struct bill *b, uint32_t vm, uint16_t cpu)
{
	for (size_t i = 0; i < b->n_vms; i++) {
		if (b->vms[i]->vm == vm && b->vms[i]->lanes[cpu])
			return b->vms[i]->lanes[cpu];
	}
	return lane_new(b, vm, cpu);
}

/* Charges the task of the lane's last stay. */
static void charge(struct bill *b, struct lane *l, enum vcpu_state state, int64_t ns)
{
	struct bill_task *t = task_get(b, l->vm, l->boot, l->cpu, l->pid);
	bool kept = state != VCPU_GUEST && state != VCPU_UNKNOWN;

	t->state_ns[state] += ns;
	l->kept_ns = kept ? l->kept_ns + ns : 0;
	if (l->kept_ns > t->longest_kept_ns)
		t->longest_kept_ns = l->kept_ns;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Joins what both sides know; with `final`, charges the guest's rest as unknown. Not inlined: it
 * needs many registers. */
__attribute__((noinline)) static void lane_join(struct bill *b, struct lane *l, bool final)
{
	struct piece *g = queue_head(&l->guest), *v = queue_head(&l->vcpu);

	while (g) {
		enum vcpu_state state = VCPU_UNKNOWN;
		int64_t until = g->end.ns;

		if (v && v->end.ns <= g->begin.ns) {
			v = queue_pop(&l->vcpu);
			continue;
		}
		if (!v && !final && l->covered.ns < g->end.ns)
			break;
		if (g->what != l->pid || g->boot != l->boot)
			l->kept_ns = 0;
		l->pid = g->what;
		l->boot = g->boot;
		if (v && v->begin.ns > g->begin.ns) {
			until = least(v->begin.ns, until);
		} else if (v) {
			until = least(v->end.ns, until);
			state = (enum vcpu_state)v->what;
		}
		charge(b, l, state, until - g->begin.ns);
		g->begin.ns = until;
		if (g->begin.ns >= g->end.ns)
			g = queue_pop(&l->guest);
	}
}

/* The queue is full. */
__attribute__((noinline)) static void room_make(struct bill *b, struct lane *l, struct queue *q)
{
	if (q == &l->guest)
		lane_join(b, l, true);
	else /* the guest says nothing: nobody to charge */
		queue_pop(q);
}

static inline void lane_push(struct bill *b, struct lane *l, struct queue *q, const struct piece *p)
{
	int err;

	if (q->count == LANE_MAX)
		room_make(b, l, q);
	err = queue_push(q, p);
	if (err)
		b->base.error = err;
	if (l->guest.count)
		lane_join(b, l, false);
}

static void vcpu_span_take(void *context, const struct vcpu_span *span)
{
	struct bill *b = context;
	struct lane *l;
	uint16_t cpu;

	if (model_guest_cpu_of_vcpu(b->base.model, span->vm, span->vcpu, &cpu))
		return;
	l = lane_get(b, span->vm, cpu);
	if (!l) {
		b->base.error = -ENOMEM;
		return;
	}
	if (span->end.ns > l->covered.ns)
		l->covered = span->end;
	lane_push(b, l, &l->vcpu, &(struct piece){span->begin, span->end, span->state, 0});
}

static void guest_span_take(void *context, const struct guest_span *span)
{
	struct bill *b = context;
	struct lane *l;

	if (span->pid <= 0 || span->state == GUEST_CPU_IDLE || span->state == GUEST_CPU_UNKNOWN ||
	    span->end.ns <= span->begin.ns)
		return;
	l = lane_get(b, span->vm, span->cpu);
	if (!l) {
		b->base.error = -ENOMEM;
		return;
	}
	lane_push(b, l, &l->guest, &(struct piece){span->begin, span->end, span->pid, span->boot});
}

static void guest_instant_take(void *context, const struct guest_instant *instant)
{
	struct bill *b = context;

	if (instant->type == VS_EVENT_SCHED_SWITCH && instant->event.pid2 > 0)
		task_get(b, instant->vm, instant->boot, instant->cpu, instant->event.pid2)->stays++;
}

static void bill_free(void *analysis)
{
	struct bill *b = analysis;

	if (!b)
		return;
	for (size_t i = 0; i < b->n_vms; i++) {
		for (unsigned cpu = 0; cpu < VS_CPUS_MAX; cpu++) {
			struct lane *l = b->vms[i]->lanes[cpu];

			if (!l)
				continue;
			free(l->guest.items);
			free(l->vcpu.items);
			free(l);
		}
		free(b->vms[i]);
	}
	lru_fini(&b->index);
	free(b->tasks);
	free(b);
}

static void *bill_new(struct model *m, const struct figures_options *options)
{
	struct bill *b = analysis_allocate(sizeof(*b), m, options);
	struct model_observer observer = {.vcpu_span = vcpu_span_take,
					  .guest_span = guest_span_take,
					  .guest_instant = guest_instant_take,
					  .guest_types = EVENT_SET(VS_EVENT_SCHED_SWITCH),
					  .context = b};

	if (!b)
		return NULL;
	b->tasks = calloc(TASKS_MAX, sizeof(*b->tasks));
	if (!b->tasks || lru_init(&b->index, TASKS_MAX) || model_observe(m, &observer)) {
		bill_free(b);
		return NULL;
	}
	return b;
}

static void bill_clear(void *analysis)
{
	struct bill *b = analysis;

	lru_clear(&b->index);
}

static void bill_finish(void *analysis)
{
	struct bill *b = analysis;

	for (size_t i = 0; i < b->n_vms; i++) {
		for (unsigned cpu = 0; cpu < VS_CPUS_MAX; cpu++) {
			if (b->vms[i]->lanes[cpu])
				lane_join(b, b->vms[i]->lanes[cpu], true);
		}
	}
}

const struct bill_task *bill_task(const struct bill *b, size_t index)
{
	for (uint32_t slot = 0; slot < lru_slots(&b->index); slot++) {
		if (lru_used(&b->index, slot) && !index--)
			return &b->tasks[slot];
	}
	return NULL;
}

int64_t bill_ran_ns(const struct bill_task *t)
{
	return t->state_ns[VCPU_GUEST] + t->state_ns[VCPU_KVM] + t->state_ns[VCPU_VMM];
}

int64_t bill_believed_ns(const struct bill_task *t)
{
	int64_t ns = 0;

	for (int s = 0; s < VCPU_STATE_COUNT; s++)
		ns += t->state_ns[s];
	return ns;
}

/* ---- table tasks ---- */

static const struct figures_column task_columns[] = {
	{0, {"vm", "VM", TABLE_TEXT}},
	{FIGURES_PER_VCPU, {"guest_cpu", "guest CPU", TABLE_COUNT}},
	{0, {"pid", "pid", TABLE_COUNT}},
	{0, {"believed", "believed it ran", TABLE_NS}},
	{0, {"ran", "really ran", TABLE_NS}},
	{0, {"kept", "was kept", TABLE_NS}},
	{0, {"kept_share", "share", TABLE_PERCENT}},
	{0, {"run_delay", "vCPU waited", TABLE_NS}},
	{0, {"blocked", "blocked", TABLE_NS}},
	{0, {"stopped", "stopped", TABLE_NS}},
	{0, {"halted", "halted", TABLE_NS}},
	{0, {"unknown", "unknown", TABLE_NS}},
	{0, {"longest_kept", "at a stretch", TABLE_NS}},
	{0, {"stays", "switched to", TABLE_COUNT}},
	{0, {"comm", "guest task", TABLE_TEXT}},
};

static void task_row(const struct bill_task *b, const struct figures_view *view, struct table *t)
{
	int64_t believed = bill_believed_ns(b), ran = bill_ran_ns(b);
	int64_t kept = believed - ran - b->state_ns[VCPU_UNKNOWN];

	table_row(t);
	table_text(t, model_vm_name(view->model, b->vm));
	if (view->per == FIGURES_PER_VCPU)
		table_count(t, b->cpu);
	table_count(t, (uint64_t)b->pid);
	table_ns(t, believed);
	table_ns(t, ran);
	table_ns(t, kept);
	table_percent(t, figures_percent(kept, believed));
	table_ns(t, b->state_ns[VCPU_RUNNABLE] + b->state_ns[VCPU_THROTTLED]);
	table_ns(t, b->state_ns[VCPU_BLOCKED]);
	table_ns(t, b->state_ns[VCPU_STOPPED]);
	table_ns(t, b->state_ns[VCPU_HALTED]);
	table_ns(t, b->state_ns[VCPU_UNKNOWN]);
	table_ns(t, b->longest_kept_ns);
	table_count(t, b->stays);
	table_text(t, model_task_name_in(view->model, b->vm, b->boot, b->pid));
}

static int task_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct bill_task *b;

	for (size_t i = 0; (b = bill_task(analysis, i)); i++) {
		if (bill_believed_ns(b) && b->longest_kept_ns >= view->than_ns)
			task_row(b, view, t);
	}
	return 0;
}

static const struct figures_kind tables[] = {
	{"tasks", "What guest tasks believed they ran, and what they got",
	 FIGURES_COLUMNS(task_columns), "kept", false, FIGURES_PER_TASK | FIGURES_PER_VCPU,
	 FIGURES_PER_TASK, true, task_fill},
	{.name = NULL},
};

const struct analysis bill_analysis = {
	.name = "bill",
	.new = bill_new,
	.free = bill_free,
	.clear = bill_clear,
	.finish = bill_finish,
	.error = analysis_error,
	.tables = tables,
};
