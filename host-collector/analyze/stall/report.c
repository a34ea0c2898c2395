/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/report.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const verdict_names[] = {
#define X(NAME, name) [VERDICT_##NAME] = #name,
	VERDICTS(X)
#undef X
};

static const char *const confidence_names[] = {
	[CONFIDENCE_UNDETERMINED] = "undetermined",
	[CONFIDENCE_LIKELY] = "likely",
	[CONFIDENCE_DECIDED] = "decided",
};

static const char *const missing_names[][2] = {
#define X(NAME, name, meaning) [MISSING_##NAME] = {name, meaning},
	MISSING_DATA(X)
#undef X
};

const char *verdict_name(enum verdict v)
{
	return verdict_names[v];
}

static const char *const detector_names[] = {
#define X(NAME, name, ...) [DETECTOR_##NAME] = name,
	DETECTORS(X)
#undef X
};

const char *detector_name(enum detector d)
{
	return detector_names[d];
}

static const char *const answer_names[] = {
#define X(NAME, name) [ANSWER_##NAME] = name,
	ANSWERS(X)
#undef X
};

const char *answer_name(enum report_answer a)
{
	return answer_names[a];
}

const char *confidence_name(enum confidence c)
{
	return confidence_names[c];
}

const char *missing_data_name(enum missing_data m)
{
	return missing_names[m][0];
}

const char *missing_data_meaning(enum missing_data m)
{
	return missing_names[m][1];
}

struct ranked {
	bool healthy;
	int64_t ns;
	size_t index;
};

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->healthy != y->healthy)
		return x->healthy ? 1 : -1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return (x->index > y->index) - (x->index < y->index);
}

static int by_index(const void *a, const void *b)
{
	const size_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

size_t report_longest(const struct report *r, size_t max, size_t *indices)
{
	struct ranked *all = calloc(r->n_incidents ? r->n_incidents : 1, sizeof(*all));
	size_t n = r->n_incidents < max ? r->n_incidents : max;

	for (size_t i = 0; all && i < r->n_incidents; i++) {
		const struct incident *x = &r->incidents[i];

		all[i] = (struct ranked){x->healthy, x->end.ns - x->begin.ns, i};
	}
	if (all)
		qsort(all, r->n_incidents, sizeof(*all), by_rank);
	for (size_t i = 0; i < n; i++)
		indices[i] = all ? all[i].index : i;
	qsort(indices, n, sizeof(*indices), by_index);
	free(all);
	return n;
}

static bool incident_selected(const struct incident *i, const struct narrow *n,
			      const struct model *m)
{
	bool task = narrow_has_task(n, i->task_comm, i->task_pid);

	for (size_t k = 0; k < i->n_culprits && !task; k++)
		task = narrow_has_task(n, i->culprits[k].comm, i->culprits[k].pid);
	return task && narrow_has_vcpu(n, m, i->vm, i->vcpu);
}

/* Incidents keep their order. Lines of the guest's log stay with their incidents. */
static void incidents_narrow(struct report *r, const struct narrow *n, const struct model *m)
{
	size_t kept = 0, kept_lines = 0;

	for (size_t i = 0; i < r->n_incidents; i++) {
		const bool selected = incident_selected(&r->incidents[i], n, m);

		r->n_unlisted += !selected && !r->incidents[i].healthy;
		for (size_t k = 0; k < r->n_watchdogs; k++) {
			if (r->watchdogs[k].incident == (int)i)
				r->watchdogs[k].incident = selected ? (int)kept : -2;
		}
		if (selected)
			r->incidents[kept++] = r->incidents[i];
	}
	r->n_incidents = kept;
	for (size_t k = 0; k < r->n_watchdogs; k++) {
		const struct report_watchdog *w = &r->watchdogs[k];

		if (w->incident != -2 && narrow_has_guest_cpu(n, m, w->vm, w->cpu))
			r->watchdogs[kept_lines++] = *w;
	}
	r->n_watchdogs = kept_lines;
}

static void vms_narrow(struct report *r, const struct narrow *n, const struct model *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->n_clocks; i++) {
		if (narrow_has_vm(n, m, r->clocks[i].vm))
			r->clocks[kept++] = r->clocks[i];
		else
			free((char *)r->clocks[i].vm_name);
	}
	r->n_clocks = kept;
	kept = 0;
	for (size_t i = 0; i < r->n_losses; i++) {
		if (r->losses[i].source == VS_SOURCE_HOST ||
		    narrow_has_vm(n, m, r->losses[i].source))
			r->losses[kept++] = r->losses[i];
		else
			free((char *)r->losses[i].name);
	}
	r->n_losses = kept;
	kept = 0;
	for (size_t i = 0; i < r->n_reboots; i++) {
		if (narrow_has_vm(n, m, r->reboots[i].vm))
			r->reboots[kept++] = r->reboots[i];
	}
	r->n_reboots = kept;
}

void report_narrow(struct report *r, const struct narrow *n, const struct model *m)
{
	size_t kept = 0;

	if (!narrow_rows(n))
		return;
	narrow_describe(n, r->only, sizeof(r->only));
	incidents_narrow(r, n, m);
	vms_narrow(r, n, m);
	for (size_t i = 0; i < r->n_vcpus; i++) {
		if (narrow_has_vcpu(n, m, r->vcpus[i].vm, r->vcpus[i].vcpu))
			r->vcpus[kept++] = r->vcpus[i];
	}
	r->n_vcpus = kept;
	kept = 0;
	for (size_t i = 0; i < r->n_gaps; i++) {
		if (narrow_has_vcpu(n, m, r->gaps[i].vm, r->gaps[i].vcpu))
			r->gaps[kept++] = r->gaps[i];
	}
	r->n_gaps = kept;
}

const struct stack *report_stack_find(const struct report *r, uint32_t id)
{
	for (size_t i = 0; id && i < r->n_stacks; i++) {
		if (r->stacks[i]->id == id)
			return r->stacks[i];
	}
	return NULL;
}

const char *report_vm_name(const struct report *r, uint32_t vm)
{
	for (size_t i = 0; i < r->n_clocks; i++) {
		if (r->clocks[i].vm == vm)
			return r->clocks[i].vm_name;
	}
	return "";
}

int64_t report_wall_ns(const struct report *r, struct host_ns t)
{
	int64_t ns = t.ns + r->wall_offset_ns;

	for (size_t i = 0; i < r->n_wall_steps && r->wall_steps[i].t.ns <= t.ns; i++)
		ns += r->wall_steps[i].by_ns;
	return ns;
}

void report_free(struct report *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_clocks; i++)
		free((char *)r->clocks[i].vm_name);
	for (size_t i = 0; i < r->n_losses; i++)
		free((char *)r->losses[i].name);
	for (size_t i = 0; i < r->n_stacks; i++)
		free(r->stacks[i]);
	free(r->clocks);
	free(r->losses);
	free(r->incidents);
	free(r->watchdogs);
	free(r->wall_steps);
	free(r->reboots);
	free(r->vcpus);
	free(r->gaps);
	free(r->stacks);
	free(r);
}
