/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/guest_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "host-collector/analyze/stall/report.h"
#include "host-collector/model/guest_cpu.h"
#include "host-collector/util/escape.h"

enum { RANK_VMS = 10 };

/* Calls `statement` for every row `r`. */
#define EACH_ROW(x, r, statement)                                                                  \
	do {                                                                                       \
		for (size_t i_ = 0; i_ < (x)->n_vms; i_++) {                                       \
			for (size_t k_ = 0; k_ < VS_CPUS_MAX; k_++) {                              \
				struct guest_row *r = (x)->vms[i_]->cpus[k_];                      \
				if (r)                                                             \
					statement;                                                 \
			}                                                                          \
		}                                                                                  \
	} while (0)

static void row_free(struct guest_row *r)
{
	sched_row_free(r->row);
	free(r->interrupts);
	free(r);
}

void guest_rows_fini(struct guest_rows *x)
{
	EACH_ROW(x, r, row_free(r));
	for (size_t i = 0; i < x->n_vms; i++)
		free(x->vms[i]);
}

/* Readers take the states of tasks by the kernel's release; ours are those since 4.14. */
static void release_text(const char *release, char *out, size_t out_bytes)
{
	unsigned major = 0, minor = 0;

	if (sscanf(release, "%u.%u", &major, &minor) == 2 &&
	    (major > 4 || (major == 4 && minor >= 14)))
		snprintf(out, out_bytes, "%.150s", escape(release).text);
	else
		snprintf(out, out_bytes, "4.14.0 (%.100s)",
			 *release ? escape(release).text : "not known");
}

static void machine_describe(struct guest_rows *x, uint32_t vm)
{
	char name[TRACE_NAME_BYTES], release[160];
	struct pipeline_hello said = {.kernel_release = ""};

	pipeline_hello_get(*x->pipeline, vm, &said);
	release_text(said.kernel_release, release, sizeof(release));
	if (vm == TRACE_MACHINE_HOST)
		snprintf(name, sizeof(name), "host");
	else
		snprintf(name, sizeof(name), "%.80s", escape(model_vm_name(x->model, vm)).text);
	trace_system_info(x->file, vm, name, release);
}

void guest_rows_host(struct guest_rows *x)
{
	machine_describe(x, TRACE_MACHINE_HOST);
}

static struct guest_rows_vm *vm_get(struct guest_rows *x, uint32_t id)
{
	char name[TRACE_NAME_BYTES];
	struct guest_rows_vm *vm;

	if (x->n_vms && x->vms[x->newest]->vm == id)
		return x->vms[x->newest];
	for (size_t i = 0; i < x->n_vms; i++) {
		if (x->vms[i]->vm == id) {
			x->newest = i;
			return x->vms[i];
		}
	}
	vm = x->n_vms < MODEL_VMS_MAX ? calloc(1, sizeof(*vm)) : NULL;
	if (!vm)
		return NULL;
	machine_describe(x, id);
	snprintf(name, sizeof(name), "VM %.70s: interrupts",
		 escape(model_vm_name(x->model, id)).text);
	vm->vm = id;
	vm->group = trace_track_new(x->file, 0, name, RANK_VMS + (uint32_t)x->n_vms);
	x->newest = x->n_vms;
	x->vms[x->n_vms++] = vm;
	return vm;
}

struct guest_row *guest_rows_find(struct guest_rows *x, uint32_t vm_id, uint16_t cpu)
{
	struct guest_rows_vm *vm = vm_get(x, vm_id);
	char name[TRACE_NAME_BYTES];
	struct guest_row *r;

	if (vm && vm->cpus[cpu])
		return vm->cpus[cpu];
	r = vm ? calloc(1, sizeof(*r)) : NULL;
	if (r)
		r->row = sched_row_new(vm_id, cpu);
	if (!r || !r->row) {
		free(r);
		x->error = -ENOMEM;
		return NULL;
	}
	r->vm = vm_id;
	r->cpu = cpu;
	snprintf(name, sizeof(name), "CPU %u", cpu);
	r->track = trace_track_new(x->file, vm->group, name, cpu);
	vm->cpus[cpu] = r;
	return r;
}

static void switch_to(struct guest_rows *x, struct guest_row *r, uint64_t t, uint32_t prev_state,
		      int32_t next, int32_t prio)
{
	const struct task *task = tasks_get(x->tasks, r->vm, next);

	sched_row_switch(r->row, x->file,
			 &(struct sched_switch){.t = t,
						.prev_state = prev_state,
						.next = next,
						.next_prio = prio,
						.name = task->name});
	r->any = true;
	r->current = next;
}

void guest_row_event(struct guest_rows *x, struct guest_row *r, const struct vs_event *e,
		     struct host_ns at)
{
	const bool wakes = e->type == VS_EVENT_SCHED_WAKEUP || e->type == VS_EVENT_SCHED_WAKEUP_NEW;
	int32_t current;
	/* A task that no event showed to arrive was on this CPU before this event. */
	const bool unseen =
		guest_event_was_current(e, &current) && (!r->any || r->current != current);
	uint64_t t;

	/* Most events are of interrupts: nothing of them is written here. */
	if (!r->loss.open && !unseen && !wakes && e->type != VS_EVENT_SCHED_SWITCH)
		return;
	t = boottime_of(x->boottime, at);
	if (r->loss.open) {
		r->row->lost |= trace_has(x->file, t);
		loss_row_end(x->losses, &r->loss, t, model_vm_name(x->model, r->vm), r->cpu);
	}
	if (unseen)
		switch_to(x, r, t, 0, current, 0);
	switch (e->type) {
	case VS_EVENT_SCHED_SWITCH:
		switch_to(x, r, t, (uint32_t)ev_sched_switch_state(e), e->pid2,
			  ev_sched_switch_in_prio(e));
		break;
	case VS_EVENT_SCHED_WAKEUP:
	case VS_EVENT_SCHED_WAKEUP_NEW:
		if (e->pid > 0)
			sched_row_waking(r->row, x->file,
					 &(struct sched_waking){
						 .t = t,
						 .pid = e->pid,
						 .prio = ev_sched_wakeup_prio(e),
						 .target_cpu = (uint32_t)ev_sched_wakeup_cpu(e),
						 .name = tasks_get(x->tasks, r->vm, e->pid)->name,
					 });
		break;
	default:
		break;
	}
}

void guest_row_lost(struct guest_rows *x, struct guest_row *r, uint64_t from, uint64_t n)
{
	/* The end of what a guest said counts none: nothing is missing unless an event follows. */
	r->row->lost |= n > 0 && trace_has(x->file, from);
	loss_row_begin(&r->loss, from, n);
}

/* ---- interrupts ---- */

static uint32_t interrupt_name_of(struct guest_rows *x, const struct guest_interrupt *i)
{
	uint32_t *cached = NULL, name;
	char text[TRACE_NAME_BYTES], what[64];

	if (i->kind == GUEST_CPU_SOFTIRQ && i->number < 16)
		cached = &x->softirqs[i->number];
	else if (i->kind != GUEST_CPU_SOFTIRQ && i->vector && i->number < 16)
		cached = &x->vectors[i->number];
	else if (i->kind != GUEST_CPU_SOFTIRQ && !i->vector && i->number < 256)
		cached = &x->irqs[i->number];
	if (cached && *cached)
		return *cached;
	interrupt_name(i->kind, i->vector, i->number, what, sizeof(what));
	snprintf(text, sizeof(text), "%s%s",
		 i->kind == GUEST_CPU_SOFTIRQ ? "softirq "
		 : i->vector                  ? ""
					      : "irq ",
		 what);
	name = trace_name(x->file, text);
	if (cached)
		*cached = name;
	return name;
}

static void interrupt_write(struct guest_rows *x, struct guest_row *r,
			    const struct guest_interrupt *i)
{
	uint64_t begin = boottime_of(x->boottime, i->begin);
	uint64_t end = boottime_of(x->boottime, i->end), flow = 0;
	uint32_t name = interrupt_name_of(x, i);
	struct trace_event e;

	if (i->kind == GUEST_CPU_HARDIRQ)
		flow = flows_to(x->flows, r->vm, r->cpu, i->begin, begin);
	e = trace_event_open(x->file, begin, r->track, EVENT_BEGIN, name);
	if (flow)
		trace_flow(x->file, flow, true);
	if (!i->whole)
		trace_annotate_text(x->file, "end", "not seen");
	trace_event_close(x->file, e);
	trace_end(x->file, end > begin ? end : begin, r->track);
}

/* Returns the index of the i-th interrupt that is held back. The capacity is a power of two. */
static size_t interrupt_index(const struct guest_row *r, size_t i)
{
	return (r->first + i) & (r->capacity - 1);
}

static bool interrupts_grow(struct guest_row *r)
{
	size_t capacity = r->capacity ? 2 * r->capacity : 64;
	struct guest_interrupt *bigger = malloc(capacity * sizeof(*bigger));

	if (!bigger)
		return false;
	for (size_t i = 0; i < r->n; i++)
		bigger[i] = r->interrupts[interrupt_index(r, i)];
	free(r->interrupts);
	r->interrupts = bigger;
	r->capacity = capacity;
	r->first = 0;
	return true;
}

static void interrupts_write(struct guest_rows *x, struct guest_row *r, int64_t until)
{
	while (r->n && r->interrupts[r->first].end.ns <= until) {
		interrupt_write(x, r, &r->interrupts[r->first]);
		r->first = interrupt_index(r, 1);
		r->n--;
	}
}

void guest_row_interrupt(struct guest_rows *x, const struct guest_interrupt *i)
{
	struct guest_row *r = guest_rows_get(x, i->vm, i->cpu);

	if (!r)
		return;
	interrupts_write(x, r, i->end.ns - FLOW_HOLD_NS);
	if (r->n == r->capacity && !interrupts_grow(r)) {
		x->error = -ENOMEM;
		return;
	}
	r->interrupts[interrupt_index(r, r->n++)] = *i;
}

static void row_finish(struct guest_rows *x, struct guest_row *r)
{
	interrupts_write(x, r, INT64_MAX);
	sched_row_finish(r->row, x->file);
}

void guest_rows_finish(struct guest_rows *x)
{
	EACH_ROW(x, r, row_finish(x, r));
}
