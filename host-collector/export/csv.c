/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/csv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "host-collector/analyze/exits.h"
#include "host-collector/analyze/report.h"
#include "host-collector/view/csv.h"

struct csv_export {
	const struct model *model;
	FILE *out;
};

static void head(struct csv_export *x, const char *kind, uint32_t vm, uint32_t cpu,
		 const char *state, struct host_ns begin, struct host_ns end)
{
	fprintf(x->out, "%s,", kind);
	csv_text_write(model_vm_name(x->model, vm), x->out);
	fprintf(x->out, ",%" PRIu32 ",%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",", cpu, state,
		begin.ns, end.ns, end.ns - begin.ns);
}

static void task(struct csv_export *x, uint32_t source, int32_t pid)
{
	if (pid > 0)
		fprintf(x->out, "%" PRId32 ",", pid);
	else
		fputs(pid == 0 && source != VS_SOURCE_HOST ? "0," : ",", x->out);
	if (pid > 0)
		csv_text_write(model_task_name(x->model, source, pid), x->out);
	fputc(',', x->out);
}

static void on_vcpu_span(void *context, const struct vcpu_span *s)
{
	bool ran = s->state == VCPU_GUEST || s->state == VCPU_KVM || s->state == VCPU_VMM;
	struct csv_export *x = context;

	head(x, "vcpu", s->vm, s->vcpu, vcpu_state_name(s->state), s->begin, s->end);
	task(x, VS_SOURCE_HOST, s->tid);
	if (ran || s->state == VCPU_RUNNABLE || s->state == VCPU_THROTTLED)
		fprintf(x->out, "%u", s->pcpu);
	fprintf(x->out, ",%s,", s->exit.serial ? exit_name(s->exit.isa, s->exit.reason).text : "");
	fprintf(x->out, "%s,", s->wait_class == WAIT_NONE ? "" : wait_class_name(s->wait_class));
	task(x, VS_SOURCE_HOST, s->holder_pid ? s->holder_pid : s->waker_pid);
	fputs("\r\n", x->out);
}

static void on_guest_span(void *context, const struct guest_span *s)
{
	struct csv_export *x = context;

	head(x, "guest_cpu", s->vm, s->cpu, guest_cpu_state_name(s->state), s->begin, s->end);
	if (s->state == GUEST_CPU_UNKNOWN)
		fputs(",,", x->out);
	else
		task(x, s->vm, s->pid);
	fputs(",,,,,\r\n", x->out);
}

static void on_guest_interrupt(void *context, const struct guest_interrupt *i)
{
	struct csv_export *x = context;
	char name[64];

	interrupt_name(i->kind, i->vector, i->number, name, sizeof(name));
	head(x, "interrupt", i->vm, i->cpu, guest_cpu_state_name(i->kind), i->begin, i->end);
	task(x, i->vm, i->pid);
	fputs(",,,,,", x->out);
	csv_text_write(name, x->out);
	fputs("\r\n", x->out);
}

struct csv_export *csv_export_new(struct model *m, FILE *out)
{
	struct csv_export *x = calloc(1, sizeof(*x));
	struct model_observer observer = {
		.vcpu_span = on_vcpu_span,
		.guest_span = on_guest_span,
		.guest_interrupt = on_guest_interrupt,
	};

	if (!x)
		return NULL;
	x->model = m;
	x->out = out;
	observer.context = x;
	if (model_observe(m, &observer)) {
		free(x);
		return NULL;
	}
	fputs("kind,vm,cpu,state,begin_ns,end_ns,duration_ns,pid,task,pcpu,exit,wait,other_pid,"
	      "other_task,interrupt\r\n",
	      out);
	return x;
}

void csv_export_free(struct csv_export *x)
{
	free(x);
}

int csv_export_finish(struct csv_export *x)
{
	return fflush(x->out) || ferror(x->out) ? (errno ? -errno : -EIO) : 0;
}
