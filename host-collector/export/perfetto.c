/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Passes the model's instants, spans and interrupts to the rows to which they belong, each at the
 * time that every other view shows.
 */
#include "host-collector/export/perfetto.h"

#include <errno.h>
#include <stdlib.h>

#include "host-collector/export/chosen_rows.h"
#include "host-collector/export/pair_slices.h"
#include "host-collector/export/counter_rows.h"
#include "host-collector/export/guest_rows.h"
#include "host-collector/export/host_sched.h"
#include "host-collector/export/stall_rows.h"
#include "host-collector/export/vcpu_slices.h"
#include "host-collector/model/guest_cpu.h"

enum { THREADS_MAX = 16384 };

/* A vCPU's thread. */
struct thread {
	uint32_t vm, vcpu;
	int32_t tid;
	int32_t guest_cpu; /* the newest of its, -1 none yet */
	struct vcpu_track track;
};

struct host_cpu {
	struct host_ns last; /* the newest event */
	struct loss_row loss;
};

struct perfetto {
	struct model *model;
	const struct pipeline *const *pipeline;
	const struct narrow *narrow;
	bool all_rows; /* `narrow` selects all VMs and vCPUs */
	bool begun;
	int error;
	struct host_ns host_end; /* time of the host's newest event */
	struct trace_file file;
	struct boottime boottime;
	struct tasks tasks;
	struct loss_rows losses;
	struct host_sched host;
	struct vcpu_slices slices;
	struct flows flows;
	struct guest_rows guests;
	struct counter_rows counters;
	struct chosen_rows chosen;
	struct pair_slices pairs;
	struct stall_rows *stalls; /* their chains are those that flows and counters show */
	uint64_t n_guest_events;   /* in the time that is written */
	struct lru by_tid, by_vcpu;
	struct thread **threads; /* by slot of by_tid */
	struct thread **newest;  /* by slot of by_vcpu */
	struct host_cpu cpus[VS_CPUS_MAX];
};

static void fail(struct perfetto *x, int err)
{
	if (err && !x->error)
		x->error = err;
}

/* ---- the beginning of the trace ---- */

static void begin(struct perfetto *x, struct host_ns t)
{
	const struct host_ns first = t;
	struct trace_clocks clocks = {0};
	int64_t wall_offset_ns;

	x->begun = true;
	fail(x, boottime_init(&x->boottime, *x->pipeline));
	if (x->narrow->cut) {
		t = x->narrow->from;
		x->file.from = boottime_of(&x->boottime, t);
		x->file.until = boottime_of(&x->boottime, x->narrow->until);
	}
	clocks.boottime = boottime_of(&x->boottime, t);
	clocks.monotonic = clocks.boottime - x->boottime.suspended_ns;
	clocks.raw = (uint64_t)t.ns;
	if (pipeline_wall_offset(*x->pipeline, t, &wall_offset_ns))
		clocks.realtime = (uint64_t)(t.ns + wall_offset_ns);
	x->tasks.begin = clocks.boottime;
	for (size_t i = 0; i < VS_CPUS_MAX; i++)
		x->cpus[i].last = first;
	trace_clock_snapshot(&x->file, &clocks);
	guest_rows_host(&x->guests);
}

static uint64_t time_of(struct perfetto *x, struct host_ns t)
{
	if (!x->begun)
		begin(x, t);
	return boottime_of(&x->boottime, t);
}

/* ---- vCPU threads ---- */

static bool has_vcpu(const struct perfetto *x, uint32_t vm, uint32_t vcpu)
{
	return x->all_rows || narrow_has_vcpu(x->narrow, x->model, vm, vcpu);
}

static bool has_guest_cpu(const struct perfetto *x, uint32_t vm, uint16_t cpu)
{
	return x->all_rows || narrow_has_guest_cpu(x->narrow, x->model, vm, cpu);
}

/* NULL: not selected, or no memory. */
static struct guest_row *row_get(struct perfetto *x, uint32_t vm, uint16_t cpu)
{
	return has_guest_cpu(x, vm, cpu) ? guest_rows_get(&x->guests, vm, cpu) : NULL;
}

__attribute__((noinline)) static struct thread *thread_new(struct perfetto *x, int32_t tid)
{
	uint32_t vm, vcpu;
	struct thread *v;
	bool fresh;

	if (x->by_tid.count == THREADS_MAX || model_vcpu_of_thread(x->model, tid, &vm, &vcpu))
		return NULL;
	v = calloc(1, sizeof(*v));
	if (!v) {
		fail(x, -ENOMEM);
		return NULL;
	}
	*v = (struct thread){.vm = vm, .vcpu = vcpu, .tid = tid, .guest_cpu = -1};
	x->threads[lru_put(&x->by_tid, (uint32_t)tid, &fresh)] = v;
	x->newest[lru_put(&x->by_vcpu, (uint64_t)vm << 32 | vcpu, &fresh)] = v;
	return v;
}

/* NULL: no vCPU's thread, or no memory. */
static inline struct thread *thread_get(struct perfetto *x, int32_t tid)
{
	const uint32_t slot = lru_find(&x->by_tid, (uint32_t)tid);

	return slot != LRU_NONE ? x->threads[slot] : thread_new(x, tid);
}

static struct thread *thread_of_vcpu(struct perfetto *x, uint32_t vm, uint32_t vcpu)
{
	uint32_t slot = lru_find(&x->by_vcpu, (uint64_t)vm << 32 | vcpu);
	struct vcpu_span now;

	if (slot != LRU_NONE)
		return x->newest[slot];
	return model_vcpu_current(x->model, vm, vcpu, &now) ? NULL : thread_get(x, now.tid);
}

#define EACH_THREAD(x, v, statement)                                                               \
	do {                                                                                       \
		/* None is ever removed, so their slots are the first ones. */                     \
		for (uint32_t i_ = 0; i_ < (x)->by_tid.count; i_++) {                              \
			struct thread *v = (x)->threads[i_];                                       \
			statement;                                                                 \
		}                                                                                  \
	} while (0)

/* Its thread ran there at that time. */
static void on_kvm(struct perfetto *x, const struct host_instant *i)
{
	const struct vs_event *e = &i->event;

	if (!i->of_vcpu || !thread_get(x, e->pid))
		return;
	if (e->type != VS_EVENT_KVM_ENTRY && e->pid2 > 0) /* emitted after the exit's end */
		host_sched_proof(&x->host, (struct host_ns){i->t.ns - 1000ll * e->pid2}, e->cpu,
				 e->pid);
	host_sched_proof(&x->host, i->t, e->cpu, e->pid);
}

static void on_switch(struct perfetto *x, const struct host_instant *i)
{
	const struct vs_event *e = &i->event;

	host_sched_switch(&x->host, time_of(x, i->t), e, i->of_vcpu && thread_get(x, e->pid),
			  thread_get(x, e->pid2));
}

static void on_lost(struct perfetto *x, const struct host_instant *i)
{
	struct host_cpu *c = &x->cpus[i->event.cpu];
	uint64_t from = time_of(x, loss_since(&i->event, i->t, c->last));

	if (i->event.cpu == VS_CPU_COLLECTOR)
		return;
	if (trace_has(&x->file, time_of(x, i->t)))
		host_sched_lost(&x->host, i->event.cpu);
	loss_row_begin(&c->loss, from, ev_lost_count(&i->event));
}

/* An instant on the thread's track, with its fields. */
static void on_shown(struct perfetto *x, const struct vs_event *e, struct host_ns at)
{
	struct trace_event opened;
	size_t n;
	const struct event_field *fields;
	uint64_t t;

	if (!event_type_is(e->type, EVENT_EVIDENCE) || e->pid <= 0)
		return;
	t = time_of(x, at);
	if (!trace_has(&x->file, t))
		return;
	fields = event_fields(e->type, &n);
	opened = trace_event_open(&x->file, t, tasks_track(&x->tasks, e->pid), EVENT_INSTANT,
				  trace_name(&x->file, event_type_of(e->type)->name));
	for (size_t i = 0; i < n; i++) {
		char value[32];

		if (fields[i].place == EVENT_PLACE_pid)
			continue;
		event_field_text(&fields[i], e, value, sizeof(value));
		if (fields[i].base == 16)
			trace_annotate_text(&x->file, fields[i].name, value);
		else
			trace_annotate_int(&x->file, fields[i].name,
					   (int64_t)event_field_get(&fields[i], e));
	}
	trace_event_close(&x->file, opened);
}

static void on_host_instant(void *context, const struct host_instant *i)
{
	struct perfetto *x = context;

	if (!x->begun)
		begin(x, i->t);
	x->host_end = i->t;
	chosen_rows_event(&x->chosen, VS_SOURCE_HOST, &i->event, i->t, i->err_ns);
	switch (i->event.type) {
	case VS_EVENT_LOST:
		on_lost(x, i);
		return;
	case VS_EVENT_SCHED_SWITCH:
		on_switch(x, i);
		break;
	case VS_EVENT_SCHED_WAKEUP:
	case VS_EVENT_SCHED_WAKEUP_NEW:
		host_sched_waking(&x->host, time_of(x, i->t), &i->event);
		break;
	case VS_EVENT_TASK_NAME:
		tasks_named(&x->tasks, TRACE_MACHINE_HOST, &i->event);
		break;
	case VS_EVENT_KVM_ENTRY:
	case VS_EVENT_KVM_EXIT:
	case VS_EVENT_KVM_USERSPACE_EXIT:
		on_kvm(x, i);
		break;
	default:
		if (!i->of_vcpu || has_vcpu(x, i->vm, i->vcpu))
			on_shown(x, &i->event, i->t);
		break;
	}
	if (i->event.cpu != VS_CPU_COLLECTOR) {
		struct host_cpu *c = &x->cpus[i->event.cpu];

		if (c->loss.open)
			loss_row_end(&x->losses, &c->loss, time_of(x, i->t), "host", i->event.cpu);
		c->last = i->t;
	}
}

/* The types that on_host_instant() reads; user_hits_take() reads some of them. */
static struct event_set host_types(void)
{
	const struct event_set read = EVENT_SET(
		VS_EVENT_LOST, VS_EVENT_SCHED_SWITCH, VS_EVENT_SCHED_WAKEUP,
		VS_EVENT_SCHED_WAKEUP_NEW, VS_EVENT_TASK_NAME, VS_EVENT_KVM_ENTRY,
		VS_EVENT_KVM_EXIT, VS_EVENT_KVM_USERSPACE_EXIT, VS_EVENT_USER, VS_EVENT_USER_MORE);
	struct event_set set = event_set_flagged(EVENT_EVIDENCE);

	event_set_add(&set, &read);
	return set;
}

/* ---- guests ---- */

static void on_guest_instant(void *context, const struct guest_instant *i)
{
	struct perfetto *x = context;
	struct guest_row *r;
	struct thread *v;

	if (!x->begun)
		begin(x, i->t);
	chosen_rows_event(&x->chosen, i->vm, &i->event, i->t, i->err_ns);
	if (i->type == VS_EVENT_TASK_NAME)
		tasks_named(&x->tasks, i->vm, &i->event);
	/* No row shows where a task exits. */
	if (i->type != VS_EVENT_LOST &&
	    (!event_type_is((uint16_t)i->type, EVENT_IN_GUEST) || i->type == VS_EVENT_TASK_EXIT))
		return;
	r = row_get(x, i->vm, i->event.cpu);
	if (!r && (x->guests.error || i->type == VS_EVENT_LOST))
		return;
	if (i->type == VS_EVENT_LOST) {
		guest_row_lost(&x->guests, r, time_of(x, loss_since(&i->event, i->t, r->last)),
			       ev_lost_count(&i->event));
		return;
	}
	v = i->has_vcpu ? thread_of_vcpu(x, i->vm, i->vcpu) : NULL;
	if (v)
		v->guest_cpu = i->event.cpu;
	if (!r)
		return;
	r->last = i->t;
	guest_row_event(&x->guests, r, &i->event, i->t);
	x->n_guest_events += !x->narrow->cut || trace_has(&x->file, time_of(x, i->t));
}

static void on_guest_interrupt(void *context, const struct guest_interrupt *interrupt)
{
	struct perfetto *x = context;
	struct guest_interrupt cut = *interrupt;

	if (has_guest_cpu(x, cut.vm, cut.cpu) && narrow_clip(x->narrow, &cut.begin, &cut.end))
		guest_row_interrupt(&x->guests, &cut);
}

static void on_vcpu_span(void *context, const struct vcpu_span *span)
{
	struct perfetto *x = context;
	struct thread *v = span->tid > 0 ? thread_get(x, span->tid) : NULL;
	struct vcpu_span cut;

	if (!x->begun)
		begin(x, span->begin);
	if (!has_vcpu(x, span->vm, span->vcpu))
		return;
	if (x->narrow->cut) {
		cut = *span;
		if (!narrow_clip(x->narrow, &cut.begin, &cut.end))
			return;
		span = &cut;
	}
	if (v)
		vcpu_slices_span(&x->slices, &v->track, span);
	counter_rows_span(&x->counters, span);
}

static void on_guest_steal(void *context, const struct guest_steal *steal)
{
	struct perfetto *x = context;

	if (!x->begun)
		begin(x, steal->t);
	if (has_guest_cpu(x, steal->vm, steal->cpu) && narrow_has_time(x->narrow, steal->t))
		counter_rows_steal(&x->counters, steal);
}

static void on_chain(void *context, const struct chain *c)
{
	struct perfetto *x = context;

	flows_chain(&x->flows, c);
	if (has_vcpu(x, c->vm, c->vcpu) && narrow_has_time(x->narrow, c->at[CHAIN_HANDLER]))
		counter_rows_chain(&x->counters, c);
}

/* ---- beginning and end ---- */

static int parts_init(struct perfetto *x, const struct event_choices *pairs, FILE *out)
{
	int err = trace_file_init(&x->file, out);

	if (!err)
		err = tasks_init(&x->tasks, x->model, &x->file);
	x->losses = (struct loss_rows){.file = &x->file};
	x->host =
		(struct host_sched){.tasks = &x->tasks, .file = &x->file, .boottime = &x->boottime};
	x->slices = (struct vcpu_slices){
		.file = &x->file, .tasks = &x->tasks, .boottime = &x->boottime};
	x->flows = (struct flows){
		.file = &x->file, .tasks = &x->tasks, .boottime = &x->boottime, .model = x->model};
	x->guests = (struct guest_rows){.file = &x->file,
					.tasks = &x->tasks,
					.boottime = &x->boottime,
					.flows = &x->flows,
					.losses = &x->losses,
					.model = x->model,
					.pipeline = x->pipeline};
	if (!err)
		err = flows_init(&x->flows);
	x->counters = (struct counter_rows){
		.file = &x->file, .boottime = &x->boottime, .model = x->model};
	if (!err)
		err = counter_rows_init(&x->counters);
	x->chosen = (struct chosen_rows){
		.file = &x->file, .boottime = &x->boottime, .model = x->model, .narrow = x->narrow};
	if (!err)
		err = chosen_rows_init(&x->chosen);
	x->pairs = (struct pair_slices){.file = &x->file,
					.boottime = &x->boottime,
					.model = x->model,
					.narrow = x->narrow,
					.choices = pairs};
	if (!err)
		err = pair_slices_init(&x->pairs);
	if (!err)
		err = lru_init(&x->by_tid, THREADS_MAX);
	if (!err)
		err = lru_init(&x->by_vcpu, THREADS_MAX);
	x->threads = calloc(THREADS_MAX, sizeof(struct thread *));
	x->newest = calloc(THREADS_MAX, sizeof(struct thread *));
	return err ? err : x->threads && x->newest ? 0 : -ENOMEM;
}

struct perfetto *perfetto_new(struct model *m, const struct pipeline *const *pipeline,
			      const struct narrow *narrow, const struct event_choices *pairs,
			      FILE *out)
{
	const struct model_observer observer = {
		.vcpu_span = on_vcpu_span,
		.guest_instant = on_guest_instant,
		.guest_interrupt = on_guest_interrupt,
		.host_instant = on_host_instant,
		.guest_steal = on_guest_steal,
	};
	struct model_observer mine = observer;
	struct perfetto *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->model = m;
	x->pipeline = pipeline;
	x->narrow = narrow;
	x->all_rows = !narrow_rows(narrow);
	mine.context = x;
	mine.host_types = host_types();
	if (parts_init(x, pairs, out))
		goto fail;
	x->stalls = stall_rows_new(m, pipeline);
	if (!x->stalls || model_observe(m, &mine))
		goto fail;
	chains_watch(stall_rows_chains(x->stalls), on_chain, x);
	return x;
fail:
	perfetto_free(x);
	return NULL;
}

void perfetto_free(struct perfetto *x)
{
	if (!x)
		return;
	stall_rows_free(x->stalls);
	if (x->threads)
		EACH_THREAD(x, v, free(v));
	free(x->threads);
	free(x->newest);
	lru_fini(&x->by_tid);
	lru_fini(&x->by_vcpu);
	guest_rows_fini(&x->guests);
	counter_rows_fini(&x->counters);
	chosen_rows_fini(&x->chosen);
	pair_slices_fini(&x->pairs);
	flows_fini(&x->flows);
	host_sched_fini(&x->host);
	tasks_fini(&x->tasks);
	boottime_fini(&x->boottime);
	trace_file_fini(&x->file);
	free(x);
}

int perfetto_finish(struct perfetto *x)
{
	fail(x, stall_rows_finish(x->stalls)); /* closes the chains, which the flows need */
	chosen_rows_finish(&x->chosen);
	fail(x, pair_slices_finish(&x->pairs));
	EACH_THREAD(x, v, vcpu_slices_finish(&x->slices, &v->track));
	for (size_t i = 0; i < VS_CPUS_MAX; i++) {
		if (x->cpus[i].loss.open)
			loss_row_end(&x->losses, &x->cpus[i].loss, time_of(x, x->host_end), "host",
				     (uint16_t)i);
	}
	guest_rows_finish(&x->guests);
	host_sched_finish(&x->host);
	counter_rows_finish(&x->counters);
	if (x->begun)
		stall_rows_write(x->stalls, x->narrow, &x->file, &x->boottime);
	fail(x, chains_error(stall_rows_chains(x->stalls)));
	fail(x, x->host.error);
	fail(x, x->guests.error);
	fail(x, trace_file_finish(&x->file));
	return x->error;
}

void perfetto_summarise(const struct perfetto *x, struct perfetto_summary *out)
{
	*out = (struct perfetto_summary){
		.bytes = x->file.bytes,
		.flows = x->flows.drawn,
		.contradicted = x->flows.contradicted,
		.pairs = x->pairs.written,
		.pairs_left_out = x->pairs.left_out,
		.guest_events = x->n_guest_events,
	};
}

bool perfetto_cpu_get(const struct perfetto *x, size_t i, struct perfetto_cpu *out)
{
	size_t n = 0;

	for (uint32_t k = 0; k < x->by_tid.count; k++) {
		const struct thread *v = x->threads[k];

		if (v->guest_cpu >= 0 && n++ == i) {
			*out = (struct perfetto_cpu){v->vm, (uint16_t)v->guest_cpu, v->tid};
			return true;
		}
	}
	return false;
}
