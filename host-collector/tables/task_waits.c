/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Follows each task from event to event of one kernel, so the lengths do not depend on how well the
 * clocks of guest and host are known. While a task waits, a loss of events of its kernel may hide
 * that it ran meanwhile: such a wait is not counted, but its number is.
 */
#include "host-collector/tables/task_waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/tables/figures.h"
#include "host-collector/util/lru.h"

/* X(NAME, "name"): what a task waited for. */
#define TASK_WAITS(X)                                                                              \
	X(WAKEUP, "wake-up")      /* from its wake-up until it ran */                              \
	X(PREEMPTED, "preempted") /* switched out while it could run, until it ran again */        \
	X(BLOCKED, "blocked")     /* asleep and not interruptible, until its wake-up */            \
	X(SLEEPING, "sleeping")   /* asleep, until its wake-up */                                  \
	X(STOPPED, "stopped")     /* by a signal, a debugger or the freezer, until its wake-up */

enum task_wait {
#define X(NAME, ...) TASK_WAIT_##NAME,
	TASK_WAITS(X)
#undef X
		TASK_WAIT_COUNT
};

struct task_waits_task {
	uint32_t vm;
	bool host;     /* a thread of the host that works for the VM */
	uint32_t boot; /* of the guest's kernel */
	int32_t pid;
	struct {
		struct histogram lengths;
		int64_t longest_begin_ns; /* when the longest began */
		uint64_t incomplete;      /* not counted: events were lost before they ended */
	} waits[TASK_WAIT_COUNT];
};

enum { TASKS_MAX = 4096, RUNNING = TASK_WAIT_COUNT, UNSEEN };

/* What a task does now. */
struct follower {
	struct task_waits_task counts;
	unsigned doing; /* an enum task_wait, RUNNING or UNSEEN */
	struct host_ns since;
	uint64_t losses; /* of its kernel, when it began to wait */
};

struct task_waits {
	struct analysis_base base;
	struct lru index;
	struct follower *tasks;
	/* How often events of each kernel were lost: the host's first. */
	size_t n_kernels;
	struct {
		uint32_t source;
		uint64_t losses;
	} kernels[MODEL_VMS_MAX + 1];
};

static const char *const wait_names[] = {
#define X(NAME, name) [TASK_WAIT_##NAME] = name,
	TASK_WAITS(X)
#undef X
};

static uint64_t *losses_of(struct task_waits *x, uint32_t source)
{
	size_t i = 0;

	while (i < x->n_kernels && x->kernels[i].source != source)
		i++;
	if (i == MODEL_VMS_MAX + 1)
		i = 0; /* more kernels than a model has VMs */
	if (i == x->n_kernels) {
		x->kernels[i].source = source;
		x->kernels[i].losses = 0;
		x->n_kernels++;
	}
	return &x->kernels[i].losses;
}

static void counts_clear(struct task_waits_task *t)
{
	for (int w = 0; w < TASK_WAIT_COUNT; w++) {
		histogram_fini(&t->waits[w].lengths);
		t->waits[w].longest_begin_ns = 0;
		t->waits[w].incomplete = 0;
	}
}

/* A task of a kernel. vm: for which a thread of the host works. */
struct who {
	uint32_t source, boot, vm;
};

static struct follower *task_get(struct task_waits *x, const struct who *who, int32_t pid)
{
	const bool host = who->source == VS_SOURCE_HOST;
	const uint64_t key = (uint64_t)(who->boot & 0xfff) << 52 |
			     (uint64_t)(who->source & 0xfffff) << 32 | (uint32_t)pid;
	bool fresh;
	uint32_t slot = lru_put(&x->index, key, &fresh);
	struct follower *f = &x->tasks[slot];

	if (fresh) {
		counts_clear(&f->counts);
		*f = (struct follower){
			.counts = {.vm = who->vm, .host = host, .boot = who->boot, .pid = pid},
			.doing = UNSEEN};
	}
	return f;
}

/* What it did ends. */
static void settle(struct task_waits *x, struct follower *f, struct host_ns now, uint64_t losses)
{
	int64_t ns = now.ns - f->since.ns;
	struct histogram *h;

	if (f->doing >= TASK_WAIT_COUNT || ns < x->base.options.than_ns)
		return;
	if (f->losses != losses) {
		f->counts.waits[f->doing].incomplete++;
		return;
	}
	h = &f->counts.waits[f->doing].lengths;
	if (!h->count || (uint64_t)ns > h->max_ns)
		f->counts.waits[f->doing].longest_begin_ns = f->since.ns;
	if (histogram_add(h, (uint64_t)ns))
		x->base.error = -ENOMEM;
}

static void turn(struct task_waits *x, const struct who *who, int32_t pid, unsigned to,
		 struct host_ns now)
{
	const uint64_t losses = *losses_of(x, who->source);
	struct follower *f = task_get(x, who, pid);

	/* A wake-up that changes nothing: it waits for a CPU already. */
	if (to == TASK_WAIT_WAKEUP &&
	    (f->doing == TASK_WAIT_WAKEUP || f->doing == TASK_WAIT_PREEMPTED ||
	     f->doing == RUNNING) &&
	    f->losses == losses)
		return;
	/* It runs, and the wake-up that ended its sleep was not seen. */
	if (to == RUNNING && f->doing < TASK_WAIT_COUNT && f->doing >= TASK_WAIT_BLOCKED)
		f->losses = UINT64_MAX;
	settle(x, f, now, losses);
	f->doing = to;
	f->since = now;
	f->losses = losses;
}

static unsigned wait_of(uint64_t state)
{
	if (!state)
		return TASK_WAIT_PREEMPTED;
	if (state & (VS_TASK_DEAD | VS_TASK_EXIT))
		return UNSEEN;
	if (state & (VS_TASK_STOPPED | VS_TASK_TRACED | VS_TASK_FROZEN))
		return TASK_WAIT_STOPPED;
	return state & VS_TASK_UNINTERRUPTIBLE && !(state & VS_TASK_IDLE) ? TASK_WAIT_BLOCKED
									  : TASK_WAIT_SLEEPING;
}

/* Of the host's threads only those that work for a VM: of others the capture does not have all
 * events. */
static void task_turn(struct task_waits *x, const struct who *who, int32_t pid, unsigned to,
		      struct host_ns t)
{
	struct who of = *who;

	if (pid > 0 &&
	    (who->source != VS_SOURCE_HOST || !model_vm_of_thread(x->base.model, pid, &of.vm)))
		turn(x, &of, pid, to, t);
}

/* Takes an event of a guest, or of the host if who->source is VS_SOURCE_HOST. */
static void event_take(struct task_waits *x, const struct who *who, const struct vs_event *e,
		       struct host_ns t)
{
	switch (e->type) {
	case VS_EVENT_LOST:
		++*losses_of(x, who->source);
		break;
	case VS_EVENT_SCHED_SWITCH:
		task_turn(x, who, e->pid, wait_of(ev_sched_switch_state(e)), t);
		task_turn(x, who, e->pid2, RUNNING, t);
		break;
	case VS_EVENT_SCHED_WAKEUP:
	case VS_EVENT_SCHED_WAKEUP_NEW:
		task_turn(x, who, e->pid, TASK_WAIT_WAKEUP, t);
		break;
	default:
		break;
	}
}

static void guest_take(void *context, const struct guest_instant *i)
{
	event_take(context, &(struct who){.source = i->vm, .boot = i->boot, .vm = i->vm}, &i->event,
		   i->t);
}

static void host_take(void *context, const struct host_instant *i)
{
	event_take(context, &(struct who){.source = VS_SOURCE_HOST}, &i->event, i->t);
}

static void task_waits_free(void *analysis)
{
	struct task_waits *x = analysis;

	if (!x)
		return;
	for (uint32_t slot = 0; slot < lru_slots(&x->index); slot++)
		counts_clear(&x->tasks[slot].counts);
	lru_fini(&x->index);
	free(x->tasks);
	free(x);
}

static void *task_waits_new(struct model *m, const struct figures_options *options)
{
	struct task_waits *x = analysis_allocate(sizeof(*x), m, options);
	const struct event_set types = EVENT_SET(VS_EVENT_LOST, VS_EVENT_SCHED_SWITCH,
						 VS_EVENT_SCHED_WAKEUP, VS_EVENT_SCHED_WAKEUP_NEW);
	const struct model_observer observer = {.guest_instant = guest_take,
						.host_instant = host_take,
						.host_types = types,
						.guest_types = types,
						.context = x};

	if (!x)
		return NULL;
	x->tasks = calloc(TASKS_MAX, sizeof(*x->tasks));
	if (!x->tasks || lru_init(&x->index, TASKS_MAX) || model_observe(m, &observer)) {
		task_waits_free(x);
		return NULL;
	}
	return x;
}

static void task_waits_clear(void *analysis)
{
	struct task_waits *x = analysis;

	for (uint32_t slot = 0; slot < lru_slots(&x->index); slot++)
		counts_clear(&x->tasks[slot].counts);
}

/* ---- tables waits and threads ---- */

static const struct figures_column columns[] = {
	{0, {"vm", "VM", TABLE_TEXT}},
	{0, {"pid", "pid", TABLE_COUNT}},
	{0, {"wait", "waited for", TABLE_TEXT}},
	{0, {"waits", "waits", TABLE_COUNT}},
	{0, {"total", "total", TABLE_NS}},
	{0, {"share", "of the time", TABLE_PERCENT}},
	{0, {"min", "min", TABLE_NS}},
	FIGURES_QUANTILES,
	{0, {"longest_begin", "longest began at", TABLE_TIME}},
	{0, {"incomplete", "incomplete", TABLE_COUNT}},
	{0, {"comm", "task", TABLE_TEXT}},
};

static void wait_row(const struct task_waits_task *task, enum task_wait w,
		     const struct figures_view *view, struct table *t)
{
	const struct histogram *h = &task->waits[w].lengths;

	table_row(t);
	table_text(t, model_vm_name(view->model, task->vm));
	table_count(t, (uint64_t)task->pid);
	table_text(t, wait_names[w]);
	table_count(t, h->count);
	table_ns(t, figures_clip(h->sum_ns));
	table_percent(t, figures_percent(figures_clip(h->sum_ns), view->span_ns));
	if (h->count) {
		table_ns(t, figures_clip(h->min_ns));
		figures_quantiles(t, h);
		table_time(t, task->waits[w].longest_begin_ns);
	} else { /* min, five quantiles, the longest */
		for (int i = 0; i < 7; i++)
			table_none(t);
	}
	table_count(t, task->waits[w].incomplete);
	table_text(t, task->host
			      ? model_task_name(view->model, VS_SOURCE_HOST, task->pid)
			      : model_task_name_in(view->model, task->vm, task->boot, task->pid));
}

/* Time that the task lost: it sleeps because it has nothing to do. */
static uint64_t lost_ns(const struct task_waits_task *t)
{
	return t->waits[TASK_WAIT_WAKEUP].lengths.sum_ns +
	       t->waits[TASK_WAIT_PREEMPTED].lengths.sum_ns +
	       t->waits[TASK_WAIT_BLOCKED].lengths.sum_ns;
}

static int task_compare(const void *a, const void *b)
{
	const struct task_waits_task *x = *(const struct task_waits_task *const *)a;
	const struct task_waits_task *y = *(const struct task_waits_task *const *)b;
	const uint64_t x_ns = lost_ns(x), y_ns = lost_ns(y);

	if (x_ns != y_ns)
		return x_ns < y_ns ? 1 : -1;
	if (x->vm != y->vm)
		return x->vm < y->vm ? -1 : 1;
	if (x->boot != y->boot)
		return x->boot < y->boot ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool task_has(const struct task_waits_task *t)
{
	for (int w = 0; w < TASK_WAIT_COUNT; w++) {
		if (t->waits[w].lengths.count || t->waits[w].incomplete)
			return true;
	}
	return false;
}

/* The waits of one task stay together, and --top counts tasks. */
static int fill(struct task_waits *x, bool host, const struct figures_view *view, struct table *t)
{
	const struct task_waits_task **tasks, *task;
	size_t n = 0, cut = 0;

	tasks = calloc(TASKS_MAX, sizeof(const struct task_waits_task *));
	if (!tasks)
		return -ENOMEM;
	for (uint32_t slot = 0; slot < lru_slots(&x->index); slot++) {
		task = &x->tasks[slot].counts;
		if (lru_used(&x->index, slot) && task->host == host && task_has(task))
			tasks[n++] = task;
	}
	if (n)
		qsort(tasks, n, sizeof(*tasks), task_compare);
	for (size_t i = 0; i < n; i++) {
		for (int w = 0; w < TASK_WAIT_COUNT; w++) {
			if (!tasks[i]->waits[w].lengths.count && !tasks[i]->waits[w].incomplete)
				continue;
			if (view->top && i >= view->top)
				cut++;
			else
				wait_row(tasks[i], (enum task_wait)w, view, t);
		}
	}
	table_cut(t, cut);
	free(tasks);
	return 0;
}

static int waits_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	return fill(analysis, false, view, t);
}

static int threads_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	return fill(analysis, true, view, t);
}

static const struct figures_kind tables[] = {
	{"waits", "How long guest tasks waited for a CPU, and slept", FIGURES_COLUMNS(columns),
	 NULL, false, FIGURES_PER_TASK, FIGURES_PER_TASK, true, waits_fill},
	{"threads", "The same of the VM's threads on the host", FIGURES_COLUMNS(columns), NULL,
	 false, FIGURES_PER_TASK, FIGURES_PER_TASK, true, threads_fill},
	{.name = NULL},
};

const struct analysis task_waits_analysis = {
	.name = "task_waits",
	.new = task_waits_new,
	.free = task_waits_free,
	.clear = task_waits_clear,
	.error = analysis_error,
	.tables = tables,
};
