/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/tasks.h"

#include <errno.h>
#include <stdlib.h>

#include "host-collector/util/escape.h"
#include "proto/event_fields.h"

int tasks_init(struct tasks *x, const struct model *m, struct trace_file *f)
{
	*x = (struct tasks){.model = m, .file = f};
	x->items = calloc(TASKS_MAX, sizeof(*x->items));
	return x->items ? lru_init(&x->index, TASKS_MAX) : -ENOMEM;
}

void tasks_fini(struct tasks *x)
{
	free(x->items);
	lru_fini(&x->index);
}

int32_t tasks_nobody(uint16_t cpu)
{
	return TASKS_NOBODY + 1 + cpu;
}

bool tasks_is_nobody(int32_t tid)
{
	return tid > TASKS_NOBODY && tid <= TASKS_NOBODY + VS_CPUS_MAX;
}

static struct task *task_slot(struct tasks *x, uint32_t machine, int32_t tid, bool *fresh)
{
	struct task *t =
		&x->items[lru_put(&x->index, (uint64_t)machine << 32 | (uint32_t)tid, fresh)];

	if (*fresh)
		*t = (struct task){.tid = tid, .tgid = tid, .cpu = -1};
	return t;
}

static void name_set(struct task *t, const char *comm)
{
	snprintf(t->name, sizeof(t->name), "%.*s", TRACE_NAME_BYTES - 1, escape(comm).text);
}

static void process_announce(struct tasks *x, uint32_t machine, int32_t tgid, const char *thread)
{
	const char *comm = model_task_name(x->model, machine, tgid);
	char name[2 * VS_TEXT_MAX];
	uint32_t vm;

	if (!*comm)
		comm = thread;
	if (machine == TRACE_MACHINE_HOST && !model_vm_of_thread(x->model, tgid, &vm))
		snprintf(name, sizeof(name), "%s (VM %s)", comm, model_vm_name(x->model, vm));
	else
		snprintf(name, sizeof(name), "%s", comm);
	trace_process(x->file, machine, x->begin, tgid, escape(name).text);
}

static void announce(struct tasks *x, uint32_t machine, const struct task *t)
{
	int32_t tid = t->tid, tgid = t->tgid;
	char name[TRACE_NAME_BYTES];
	struct task *leader;
	bool fresh;

	memcpy(name, t->name, sizeof(name));
	leader = task_slot(x, machine, tgid, &fresh);
	if (!leader->process_announced) {
		leader->process_announced = true;
		process_announce(x, machine, tgid, name);
	}
	trace_thread(x->file, machine, x->begin, tid, tgid, name);
}

/* A task is seen for the first time. Not inlined: other events would pay for its registers. */
__attribute__((noinline)) static struct task *task_appear(struct tasks *x, uint32_t machine,
							  int32_t tid, struct task *t)
{
	bool fresh;
	int32_t tgid;

	t->announced = true;
	if (tid == 0) {
		name_set(t, "swapper");
		return t;
	}
	name_set(t, model_task_name(x->model, machine, tid));
	tgid = model_task_process(x->model, machine, tid);
	t->tgid = tgid > 0 ? tgid : tid;
	announce(x, machine, t);
	return task_slot(x, machine, tid, &fresh);
}

struct task *tasks_get(struct tasks *x, uint32_t machine, int32_t tid)
{
	bool fresh;
	struct task *t = task_slot(x, machine, tid, &fresh);

	return t->announced ? t : task_appear(x, machine, tid, t);
}

void tasks_named(struct tasks *x, uint32_t machine, const struct vs_event *e)
{
	char comm[16], was[TRACE_NAME_BYTES];
	int32_t tgid = e->pid2 > 0 ? e->pid2 : e->pid;
	struct task *t;
	bool fresh;

	if (e->pid <= 0)
		return;
	t = task_slot(x, machine, e->pid, &fresh);
	memcpy(was, t->name, sizeof(was));
	ev_task_comm(e, comm);
	name_set(t, comm);
	if (t->announced && t->tgid == tgid && !strcmp(was, t->name))
		return;
	t->announced = true;
	t->tgid = tgid;
	announce(x, machine, t);
}

uint64_t tasks_track(struct tasks *x, int32_t tid)
{
	struct task *t = tasks_get(x, TRACE_MACHINE_HOST, tid);

	if (!t->track)
		t->track = trace_thread_track_new(x->file, t->tgid, tid, t->name);
	return t->track;
}
