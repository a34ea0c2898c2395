/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/csv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/model/exit_name.h"
#include "host-collector/analyze/stall/report.h"
#include "host-collector/util/csv.h"

enum { ENTRIES = 16 }; /* of handlers that are under way on one CPU */

/* The bounds on the errors of a guest CPU's spans, which the model's spans do not have. A span
 * begins and ends with an event, which arrives just before the span. */
struct cpu_errors {
	uint32_t newest_ns; /* of the newest event */
	uint32_t begin_ns;  /* of the span that is open */
	struct {
		int64_t t_ns;
		uint32_t err_ns;
	} entries[ENTRIES];
	size_t n_entries; /* ever */
};

struct vm_errors {
	uint32_t vm;
	struct cpu_errors *cpus;
	size_t n_cpus;
};

struct csv_export {
	const struct model *model;
	const struct narrow *narrow;
	struct csv_writer rows;
	struct vm_errors vms[MODEL_VMS_MAX];
	size_t n_vms, vm_at;
	int error;
};

/* NULL if there is no room for one more. */
static struct vm_errors *vm_errors_get(struct csv_export *x, uint32_t vm)
{
	if (x->vm_at < x->n_vms && x->vms[x->vm_at].vm == vm)
		return &x->vms[x->vm_at];
	for (x->vm_at = 0; x->vm_at < x->n_vms; x->vm_at++) {
		if (x->vms[x->vm_at].vm == vm)
			return &x->vms[x->vm_at];
	}
	if (x->n_vms == MODEL_VMS_MAX)
		return NULL;
	x->vms[x->n_vms] = (struct vm_errors){.vm = vm};
	return &x->vms[x->n_vms++];
}

static struct cpu_errors *errors_get(struct csv_export *x, uint32_t vm, uint16_t cpu)
{
	struct vm_errors *v = vm_errors_get(x, vm);
	struct cpu_errors *grown;

	if (!v || cpu < v->n_cpus)
		return v ? &v->cpus[cpu] : NULL;
	grown = realloc(v->cpus, (cpu + 1u) * sizeof(*grown));
	if (!grown) {
		x->error = -ENOMEM;
		return NULL;
	}
	memset(grown + v->n_cpus, 0, (cpu + 1u - v->n_cpus) * sizeof(*grown));
	v->cpus = grown;
	v->n_cpus = cpu + 1u;
	return &v->cpus[cpu];
}

static void on_guest_instant(void *context, const struct guest_instant *i)
{
	struct csv_export *x = context;
	struct cpu_errors *e = errors_get(x, i->vm, i->event.cpu);

	if (!e)
		return;
	e->newest_ns = i->err_ns;
	if (i->type != VS_EVENT_IRQ_ENTRY && i->type != VS_EVENT_SOFTIRQ_ENTRY &&
	    i->type != VS_EVENT_VECTOR_ENTRY)
		return;
	e->entries[e->n_entries % ENTRIES].t_ns = i->t.ns;
	e->entries[e->n_entries++ % ENTRIES].err_ns = i->err_ns;
}

static uint32_t entry_error_ns(const struct cpu_errors *e, struct host_ns begin)
{
	for (size_t i = e->n_entries; i-- > 0 && e->n_entries - i <= ENTRIES;) {
		if (e->entries[i % ENTRIES].t_ns == begin.ns)
			return e->entries[i % ENTRIES].err_ns;
	}
	return e->newest_ns;
}

/* The last three columns. whole: "" where it means nothing. */
static void tail(struct csv_writer *w, uint32_t err_ns, const char *whole)
{
	csv_plain(w, ",");
	if (err_ns == UINT32_MAX)
		csv_plain(w, "inf");
	else
		csv_number(w, err_ns);
	csv_plain(w, ",");
	csv_plain(w, whole);
	csv_plain(w, ",\r\n");
}

static void head(struct csv_export *x, const char *kind, uint32_t vm, uint32_t cpu,
		 const char *state, struct host_ns begin, struct host_ns end)
{
	struct csv_writer *w = &x->rows;

	csv_plain(w, kind);
	csv_plain(w, ",");
	csv_text(w, model_vm_name(x->model, vm));
	csv_plain(w, ",");
	csv_number(w, cpu);
	csv_plain(w, ",");
	csv_plain(w, state);
	csv_plain(w, ",");
	csv_number(w, begin.ns);
	csv_plain(w, ",");
	csv_number(w, end.ns);
	csv_plain(w, ",");
	csv_number(w, end.ns - begin.ns);
	csv_plain(w, ",");
}

static void task(struct csv_export *x, uint32_t source, int32_t pid)
{
	if (pid > 0)
		csv_number(&x->rows, pid);
	else if (pid == 0 && source != VS_SOURCE_HOST)
		csv_plain(&x->rows, "0");
	csv_plain(&x->rows, ",");
	if (pid > 0)
		csv_text(&x->rows, model_task_name(x->model, source, pid));
	csv_plain(&x->rows, ",");
}

/* Returns true if rows of this task are requested. Looks its name up only if tasks are selected. */
static bool task_selected(const struct csv_export *x, uint32_t source, int32_t pid)
{
	return !narrow_rows(x->narrow) ||
	       narrow_has_task(x->narrow, pid < 0 ? "" : model_task_name(x->model, source, pid),
			       pid);
}

static void on_vcpu_span(void *context, const struct vcpu_span *s)
{
	bool ran = s->state == VCPU_GUEST || s->state == VCPU_KVM || s->state == VCPU_VMM;
	struct csv_export *x = context;
	struct csv_writer *w = &x->rows;
	struct host_ns begin = s->begin, end = s->end;

	if (!narrow_has_vcpu(x->narrow, x->model, s->vm, s->vcpu) ||
	    !task_selected(x, VS_SOURCE_HOST, s->tid) || !narrow_clip(x->narrow, &begin, &end))
		return;
	head(x, "vcpu", s->vm, s->vcpu, vcpu_state_name(s->state), begin, end);
	task(x, VS_SOURCE_HOST, s->tid);
	if (ran || s->state == VCPU_RUNNABLE || s->state == VCPU_THROTTLED)
		csv_number(w, s->pcpu);
	csv_plain(w, ",");
	if (s->exit.serial)
		csv_plain(w, exit_name(s->exit.isa, s->exit.reason).text);
	csv_plain(w, ",");
	if (s->wait_class != WAIT_NONE)
		csv_plain(w, wait_class_name(s->wait_class));
	csv_plain(w, ",");
	task(x, VS_SOURCE_HOST, s->holder_pid ? s->holder_pid : s->waker_pid);
	csv_plain(w, ",,,\r\n");
}

/* Rows of a guest CPU. pid < 0: of no task. */
static bool guest_selected(const struct csv_export *x, uint32_t vm, uint16_t cpu, int32_t pid)
{
	return narrow_has_guest_cpu(x->narrow, x->model, vm, cpu) && task_selected(x, vm, pid);
}

static void on_guest_span(void *context, const struct guest_span *s)
{
	struct csv_export *x = context;
	struct cpu_errors *e = errors_get(x, s->vm, s->cpu);
	const uint32_t begin_ns = e ? e->begin_ns : 0, end_ns = e ? e->newest_ns : 0;

	struct host_ns begin = s->begin, end = s->end;

	if (e)
		e->begin_ns = e->newest_ns;
	if (!guest_selected(x, s->vm, s->cpu, s->state == GUEST_CPU_UNKNOWN ? -1 : s->pid) ||
	    !narrow_clip(x->narrow, &begin, &end))
		return;
	head(x, "guest_cpu", s->vm, s->cpu, guest_cpu_state_name(s->state), begin, end);
	if (s->state == GUEST_CPU_UNKNOWN)
		csv_plain(&x->rows, ",,");
	else
		task(x, s->vm, s->pid);
	csv_plain(&x->rows, ",,,,,");
	tail(&x->rows, begin_ns > end_ns ? begin_ns : end_ns, "");
}

static void on_guest_interrupt(void *context, const struct guest_interrupt *i)
{
	struct csv_export *x = context;
	const struct cpu_errors *e = errors_get(x, i->vm, i->cpu);
	const uint32_t begin_ns = e ? entry_error_ns(e, i->begin) : 0;
	const uint32_t end_ns = e ? e->newest_ns : 0;
	struct host_ns begin = i->begin, end = i->end;
	char name[64];

	if (!guest_selected(x, i->vm, i->cpu, i->pid) || !narrow_clip(x->narrow, &begin, &end))
		return;
	interrupt_name(i->kind, i->vector, i->number, name, sizeof(name));
	head(x, "interrupt", i->vm, i->cpu, guest_cpu_state_name(i->kind), begin, end);
	task(x, i->vm, i->pid);
	csv_plain(&x->rows, ",,,,,");
	csv_text(&x->rows, name);
	tail(&x->rows, begin_ns > end_ns ? begin_ns : end_ns, i->whole ? "yes" : "no");
}

/* Only vCPUs' threads: the host's other events name no VM. */
static void on_host_instant(void *context, const struct host_instant *i)
{
	struct csv_export *x = context;
	char fields[160];

	if (!i->of_vcpu || !event_type_is(i->event.type, EVENT_EVIDENCE) ||
	    !narrow_has_vcpu(x->narrow, x->model, i->vm, i->vcpu) ||
	    !task_selected(x, VS_SOURCE_HOST, i->event.pid) || !narrow_has_time(x->narrow, i->t))
		return;
	head(x, "event", i->vm, i->vcpu, event_type_of(i->event.type)->name, i->t, i->t);
	task(x, VS_SOURCE_HOST, i->event.pid);
	csv_number(&x->rows, i->event.cpu);
	csv_plain(&x->rows, ",,,,,,,,");
	csv_plain(&x->rows, event_text(&i->event, fields, sizeof(fields)));
	csv_plain(&x->rows, "\r\n");
}

struct csv_export *csv_export_new(struct model *m, const struct narrow *narrow, FILE *out)
{
	struct csv_export *x = calloc(1, sizeof(*x));
	struct model_observer observer = {
		.vcpu_span = on_vcpu_span,
		.guest_span = on_guest_span,
		.guest_interrupt = on_guest_interrupt,
		.guest_instant = on_guest_instant,
		.host_instant = on_host_instant,
	};

	if (!x)
		return NULL;
	x->model = m;
	x->narrow = narrow;
	csv_writer_init(&x->rows, out);
	observer.context = x;
	observer.host_types = event_set_flagged(EVENT_EVIDENCE);
	if (model_observe(m, &observer)) {
		free(x);
		return NULL;
	}
	csv_plain(&x->rows,
		  "kind,vm,cpu,state,begin_ns,end_ns,duration_ns,pid,task,pcpu,exit,wait,other_pid,"
		  "other_task,interrupt,error_ns,whole,fields\r\n");
	return x;
}

void csv_export_free(struct csv_export *x)
{
	for (size_t i = 0; x && i < x->n_vms; i++)
		free(x->vms[i].cpus);
	free(x);
}

int csv_export_finish(struct csv_export *x)
{
	if (x->error)
		return x->error;
	csv_writer_flush(&x->rows);
	return fflush(x->rows.out) || ferror(x->rows.out) ? (errno ? -errno : -EIO) : 0;
}
