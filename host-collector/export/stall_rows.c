/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/stall_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "host-collector/engine/account.h"
#include "host-collector/util/escape.h"
#include "host-collector/view/culprit_text.h"
#include "host-collector/view/finding_text.h"

enum { RANK_FIRST = 1, CULPRIT_BYTES = 256 };

struct stall_rows {
	struct model *model;
	const struct pipeline *const *pipeline;
	struct report_builder *builder;
	struct report *report; /* NULL until stall_rows_finish() */
};

/* The tracks of one VM, while its stalls are written. */
struct stall_tracks {
	uint64_t group, cpus[VS_CPUS_MAX];
};

struct stall_rows *stall_rows_new(struct model *m, const struct pipeline *const *pipeline)
{
	struct stall_rows *x = calloc(1, sizeof(*x));
	struct report_options options = {.than_ns = STALL_DEFAULT_NS,
					 .incidents_only = true,
					 .dmesg = account_dmesg,
					 .context = (void *)(uintptr_t)pipeline};

	if (!x)
		return NULL;
	x->model = m;
	x->pipeline = pipeline;
	x->builder = report_builder_new(m, &options);
	if (!x->builder) {
		free(x);
		return NULL;
	}
	return x;
}

void stall_rows_free(struct stall_rows *x)
{
	if (!x)
		return;
	report_free(x->report);
	report_builder_free(x->builder);
	free(x);
}

struct chains *stall_rows_chains(const struct stall_rows *x)
{
	return report_builder_chains(x->builder);
}

int stall_rows_finish(struct stall_rows *x)
{
	if (account_give(*x->pipeline, x->model, 0, x->builder))
		return -ENOMEM;
	x->report = report_builder_finish(x->builder);
	return x->report ? 0 : -ENOMEM;
}

static void culprits_annotate(struct trace_file *f, const struct incident *i)
{
	char text[CULPRIT_BYTES];

	for (size_t k = 0; k < i->n_culprits; k++) {
		const struct report_culprit *c = &i->culprits[k];

		if (c->pid)
			snprintf(text, sizeof(text), "%.40s (%d)",
				 escape(*c->comm ? c->comm : "task").text, c->pid);
		else
			snprintf(text, sizeof(text), "%.190s",
				 escape(culprit_what_text(c).text).text);
		trace_annotate_text(f, k ? "further culprit" : "culprit", text);
		if (k)
			continue;
		trace_annotate_text(f, "culprit's side", c->host ? "host" : "guest");
		trace_annotate_text(f, "culprit's role", culprit_role_text(c));
		trace_annotate_int(f, "culprit's share_ns", c->share_ns);
	}
}

static void stall_write(struct trace_file *f, struct boottime *boottime, uint64_t track,
			const struct incident *i, struct host_ns from, struct host_ns until,
			size_t number)
{
	uint32_t name = trace_name(f, verdict_name(i->verdict));
	uint64_t begin = boottime_of(boottime, from), end = boottime_of(boottime, until);
	struct trace_event e = trace_event_open(f, begin, track, EVENT_BEGIN, name);

	trace_annotate_int(f, "incident", (int64_t)number);
	trace_annotate_text(f, "verdict", verdict_name(i->verdict));
	trace_annotate_text(f, "confidence", confidence_name(i->confidence));
	trace_annotate_text(f, "why", escape(because_text(i).text).text);
	trace_annotate_text(f, "denied", escape(denied_text(i).text).text);
	trace_annotate_int(f, "duration_ns", i->end.ns - i->begin.ns);
	trace_annotate_int(f, "error_ns", (int64_t)i->err_ns);
	culprits_annotate(f, i);
	trace_event_close(f, e);
	trace_end(f, end > begin ? end : begin, track);
}

static uint64_t track_get(struct stall_tracks *t, struct trace_file *f, const struct model *m,
			  const struct incident *i)
{
	char name[TRACE_NAME_BYTES];

	if (!t->group) {
		snprintf(name, sizeof(name), "VM %.60s: stalls",
			 escape(model_vm_name(m, i->vm)).text);
		t->group = trace_track_new(f, 0, name, RANK_FIRST);
	}
	if (!t->cpus[i->guest_cpu]) {
		snprintf(name, sizeof(name), "guest CPU %u", i->guest_cpu);
		t->cpus[i->guest_cpu] = trace_track_new(f, t->group, name, i->guest_cpu);
	}
	return t->cpus[i->guest_cpu];
}

static void stalls_of_vm(const struct stall_rows *x, const struct report *r, uint32_t vm,
			 const struct narrow *narrow, struct trace_file *f,
			 struct boottime *boottime)
{
	struct stall_tracks tracks = {0};

	for (size_t i = 0; i < r->n_incidents; i++) {
		const struct incident *incident = &r->incidents[i];
		struct host_ns begin = incident->begin, end = incident->end;

		if (incident->vm == vm && !incident->healthy &&
		    narrow_has_vcpu(narrow, x->model, vm, incident->vcpu) &&
		    narrow_clip(narrow, &begin, &end))
			stall_write(f, boottime, track_get(&tracks, f, x->model, incident),
				    incident, begin, end, i + 1);
	}
}

void stall_rows_write(const struct stall_rows *x, const struct narrow *narrow, struct trace_file *f,
		      struct boottime *boottime)
{
	uint32_t vms[MODEL_VMS_MAX];
	size_t n = model_vms(x->model, vms, MODEL_VMS_MAX);

	for (size_t i = 0; x->report && i < n && i < MODEL_VMS_MAX; i++)
		stalls_of_vm(x, x->report, vms[i], narrow, f, boottime);
}
