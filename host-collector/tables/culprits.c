/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/tables/culprits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/model/thread_vm.h"
#include "host-collector/util/duration.h"

#define BY_TASK  (FIGURES_PER_TASK | FIGURES_PER_VCPU | FIGURES_PER_PCPU)
#define BY_GROUP (FIGURES_PER_PROCESS | FIGURES_PER_CGROUP)

const struct figures_column culprit_columns[CULPRIT_COLUMNS] = {
	{0, {"vm", "VM that waited", TABLE_TEXT}},
	{FIGURES_PER_VCPU, {"vcpu", "vCPU", TABLE_COUNT}},
	{FIGURES_PER_PCPU, {"pcpu", "pCPU", TABLE_COUNT}},
	{BY_TASK | FIGURES_PER_PROCESS, {"pid", "pid", TABLE_COUNT}},
	{0, {"held", "held its pCPU", TABLE_NS}},
	{BY_TASK, {"waits", "in waits", TABLE_COUNT}},
	{BY_GROUP, {"tasks", "tasks", TABLE_COUNT}},
	{0, {"comm", "host task", TABLE_TEXT}},
	{0, {"owner", "that is", TABLE_TEXT}},
	{0, {"cgroup", "cgroup", TABLE_TEXT}},
};

/* What a row sums: one task, or the tasks of a process or a cgroup. */
struct culprit {
	struct run_delay_holder first; /* who held longest; held_ns of all */
	int64_t most_ns;
	int32_t process; /* 0: unknown */
	uint32_t cgroup; /* by model_cgroup_of(); 0: unknown, or the tasks have different ones */
	uint64_t n_tasks;
};

static bool is_task(const struct run_delay_holder *h)
{
	return h->pid != RUN_DELAY_OTHERS && h->pid != RUN_DELAY_QUOTA;
}

static struct culprit culprit_of(const struct run_delay_holder *h, const struct model *m)
{
	const struct task_origin *origin =
		is_task(h) ? model_task_origin(m, h->pid, model_now(m)) : NULL;

	return (struct culprit){
		.first = *h,
		.most_ns = h->held_ns,
		.process = is_task(h) ? model_task_process(m, VS_SOURCE_HOST, h->pid) : 0,
		.cgroup = origin ? origin->cgroup : h->quota,
		.n_tasks = is_task(h),
	};
}

/* Returns whether both are parts of one row. A task whose process or cgroup is unknown has a row
 * of its own. */
static bool same_row(const struct culprit *a, const struct culprit *b, unsigned per)
{
	if (!is_task(&a->first) || !is_task(&b->first) || a->first.vm != b->first.vm)
		return false;
	if (per == FIGURES_PER_PROCESS)
		return a->process && a->process == b->process;
	return per == FIGURES_PER_CGROUP && a->cgroup && a->cgroup == b->cgroup;
}

static void culprit_add(struct culprit *to, const struct culprit *c)
{
	int64_t held_ns = to->first.held_ns + c->first.held_ns;

	if (c->most_ns > to->most_ns) {
		to->most_ns = c->most_ns;
		to->first = c->first;
	}
	to->first.held_ns = held_ns;
	if (to->cgroup != c->cgroup)
		to->cgroup = 0;
	to->n_tasks += c->n_tasks;
}

static void quota_text(const struct cgroup *c, char *out, size_t n)
{
	if (c && c->quota_us && c->quota_us < INT64_MAX / 1000 && c->period_us < INT64_MAX / 1000)
		snprintf(out, n, "CPU quota, %s in every %s",
			 duration_text((int64_t)c->quota_us * 1000).text,
			 duration_text((int64_t)c->period_us * 1000).text);
	else
		snprintf(out, n, "CPU quota");
}

/* Whose the time was, beyond the task's name. */
static void owner_text(const struct culprit *c, const struct figures_view *view, char *out,
		       size_t n)
{
	const struct model *m = view->model;
	struct thread_vm vm;

	*out = '\0';
	if (c->first.pid == RUN_DELAY_QUOTA)
		quota_text(model_cgroup_of(m, c->cgroup), out, n);
	else if (c->first.pid == RUN_DELAY_OTHERS)
		snprintf(out, n, "all other tasks");
	else if (view->per == FIGURES_PER_CGROUP && c->n_tasks > 1)
		return;
	else if (model_thread_vm(m, c->first.pid, model_now(m), &vm)) {
		if (c->n_tasks > 1) /* of one process: the VM is common to them, the vCPU is not */
			vm.vcpu_known = false;
		thread_vm_text(&vm, out, n);
	} else if (view->per != FIGURES_PER_PROCESS && c->process && c->process != c->first.pid) {
		snprintf(out, n, "of process %d (%s)", c->process,
			 model_task_name(m, VS_SOURCE_HOST, c->process));
	}
}

static void row_add(const struct culprit *c, const struct figures_view *view, struct table *t)
{
	const struct cgroup *cgroup = model_cgroup_of(view->model, c->cgroup);
	int32_t pid = is_task(&c->first) ? c->first.pid : 0;
	const char *comm = pid ? model_task_name(view->model, VS_SOURCE_HOST, pid) : "";
	char owner[256];

	if (view->per == FIGURES_PER_PROCESS && c->process) {
		const char *process = model_task_name(view->model, VS_SOURCE_HOST, c->process);

		pid = c->process;
		comm = *process ? process : comm;
	}
	owner_text(c, view, owner, sizeof(owner));
	table_row(t);
	table_text(t, model_vm_name(view->model, c->first.vm));
	if (view->per == FIGURES_PER_VCPU)
		table_count(t, c->first.vcpu);
	if (view->per == FIGURES_PER_PCPU)
		table_count(t, c->first.pcpu);
	if (view->per != FIGURES_PER_CGROUP)
		table_count(t, (uint64_t)pid);
	table_ns(t, c->first.held_ns);
	if (view->per & BY_GROUP)
		table_count(t, c->n_tasks);
	else
		table_count(t, c->first.waits);
	table_text(t, comm);
	table_text(t, owner);
	table_text(t, cgroup ? cgroup->path : "");
}

int culprits_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct run_delay_holder *h;
	struct culprit *culprits;
	size_t n = 0, max = 0;

	while (run_delay_holder(analysis, max))
		max++;
	culprits = calloc(max + 1, sizeof(*culprits));
	if (!culprits)
		return -ENOMEM;
	for (size_t i = 0; (h = run_delay_holder(analysis, i)); i++) {
		struct culprit c = culprit_of(h, view->model);
		size_t at = 0;

		while (at < n && !same_row(&culprits[at], &c, view->per))
			at++;
		if (at < n)
			culprit_add(&culprits[at], &c);
		else
			culprits[n++] = c;
	}
	for (size_t i = 0; i < n; i++)
		row_add(&culprits[i], view, t);
	free(culprits);
	return 0;
}
