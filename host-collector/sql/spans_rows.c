/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/sql/rows.h"

#include <stdlib.h>

#include "host-collector/model/exit_name.h"

struct sql_spans {
	const struct model *model;
	const struct sql_source *source;
	const struct sql_wanted *wanted;
	sql_row_take *take;
	void *context;
	struct sql_row row;
};

static void task(struct sql_spans *x, unsigned pid_column, unsigned name_column, int32_t pid,
		 const char *name)
{
	sql_row_number(&x->row, pid_column, pid);
	if (pid > 0)
		sql_row_text(&x->row, name_column, name);
}

/* The first columns, of a span that is wanted. The source's window cuts; the query's does not. */
static bool begin(struct sql_spans *x, const char *kind, uint32_t vm, const char *state,
		  struct host_ns from, struct host_ns until)
{
	struct host_ns wanted_from = from, wanted_until = until;
	struct sql_row *row = &x->row;

	if (!narrow_clip(&x->wanted->rows, &wanted_from, &wanted_until) ||
	    !narrow_clip(x->source->narrow, &from, &until))
		return false;
	sql_row_clear(row);
	sql_row_text(row, SPANS_kind, kind);
	sql_row_text(row, SPANS_vm, model_vm_name(x->model, vm));
	sql_row_text(row, SPANS_state, state);
	sql_row_number(row, SPANS_begin_ns, from.ns);
	sql_row_number(row, SPANS_end_ns, until.ns);
	sql_row_number(row, SPANS_duration_ns, until.ns - from.ns);
	return true;
}

static void on_vcpu_span(void *context, const struct vcpu_span *s)
{
	const bool ran = s->state == VCPU_GUEST || s->state == VCPU_KVM || s->state == VCPU_VMM;
	struct sql_spans *x = context;
	const char *name = model_task_name(x->model, VS_SOURCE_HOST, s->tid);
	int32_t other = s->holder_pid ? s->holder_pid : s->waker_pid;
	uint16_t cpu;

	if (!narrow_has_vcpu(&x->wanted->rows, x->model, s->vm, s->vcpu) ||
	    !narrow_has_vcpu(x->source->narrow, x->model, s->vm, s->vcpu) ||
	    !narrow_has_task(x->source->narrow, name, s->tid) ||
	    !begin(x, "vcpu", s->vm, vcpu_state_name(s->state), s->begin, s->end))
		return;
	sql_row_number(&x->row, SPANS_vcpu, s->vcpu);
	if (!model_guest_cpu_of_vcpu(x->model, s->vm, s->vcpu, &cpu))
		sql_row_number(&x->row, SPANS_guest_cpu, cpu);
	task(x, SPANS_pid, SPANS_task, s->tid, name);
	if (ran || s->state == VCPU_RUNNABLE || s->state == VCPU_THROTTLED)
		sql_row_number(&x->row, SPANS_pcpu, s->pcpu);
	if (s->exit.serial)
		sql_row_text(&x->row, SPANS_exit, exit_name(s->exit.isa, s->exit.reason).text);
	if (s->wait_class != WAIT_NONE)
		sql_row_text(&x->row, SPANS_wait, wait_class_name(s->wait_class));
	if (other > 0)
		task(x, SPANS_other_pid, SPANS_other_task, other,
		     model_task_name(x->model, VS_SOURCE_HOST, other));
	x->take(x->context, &x->row);
}

/* Begins the row of a span of a guest CPU. pid < 0: the span belongs to no task. */
static bool guest_begin(struct sql_spans *x, const char *kind, uint32_t vm, uint16_t cpu,
			int32_t pid, const char *state, struct host_ns from, struct host_ns until)
{
	const char *name = pid < 0 ? "" : model_task_name(x->model, vm, pid);
	uint32_t vcpu;

	if (!narrow_has_guest_cpu(&x->wanted->rows, x->model, vm, cpu) ||
	    !narrow_has_guest_cpu(x->source->narrow, x->model, vm, cpu) ||
	    !narrow_has_task(x->source->narrow, name, pid) ||
	    !begin(x, kind, vm, state, from, until))
		return false;
	sql_row_number(&x->row, SPANS_guest_cpu, cpu);
	if (!model_vcpu_of_guest_cpu(x->model, vm, cpu, &vcpu))
		sql_row_number(&x->row, SPANS_vcpu, vcpu);
	if (pid >= 0)
		task(x, SPANS_pid, SPANS_task, pid, name);
	return true;
}

static void on_guest_span(void *context, const struct guest_span *s)
{
	struct sql_spans *x = context;

	if (guest_begin(x, "guest_cpu", s->vm, s->cpu, s->state == GUEST_CPU_UNKNOWN ? -1 : s->pid,
			guest_cpu_state_name(s->state), s->begin, s->end))
		x->take(x->context, &x->row);
}

static void on_guest_interrupt(void *context, const struct guest_interrupt *i)
{
	struct sql_spans *x = context;
	char name[64];

	if (!guest_begin(x, "interrupt", i->vm, i->cpu, i->pid, guest_cpu_state_name(i->kind),
			 i->begin, i->end))
		return;
	interrupt_name(i->kind, i->vector, i->number, name, sizeof(name));
	sql_row_text(&x->row, SPANS_interrupt, name);
	sql_row_number(&x->row, SPANS_whole, i->whole);
	x->take(x->context, &x->row);
}

struct sql_spans *sql_spans_new(struct model *m, const struct sql_source *source,
				const struct sql_wanted *wanted, sql_row_take *take, void *context)
{
	struct sql_spans *x = calloc(1, sizeof(*x));
	const struct model_observer observer = {.vcpu_span = on_vcpu_span,
						.guest_span = on_guest_span,
						.guest_interrupt = on_guest_interrupt,
						.context = x};

	if (!x)
		return NULL;
	x->model = m;
	x->source = source;
	x->wanted = wanted;
	x->take = take;
	x->context = context;
	if (!model_observe(m, &observer))
		return x;
	free(x);
	return NULL;
}

void sql_spans_free(struct sql_spans *x)
{
	free(x);
}
