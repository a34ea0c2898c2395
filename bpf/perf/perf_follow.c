/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf/perf_follow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/prog/follow.h"
#include "bpf/perf/perf_tracepoint.h"
#include "bpf/perf/request_table.h"
#include "bpf/prog/ring.h"
#include "proto/array.h"
#include "proto/event_catalog.h"

enum {
	TYPES = PERF_SWITCHED_IN + 1,
	/* After so many switches of a CPU without a missing one, perf sees all its switches. */
	SWITCHES_ENOUGH = 4096,
	PRIO_DEFAULT = 120,
	PROCESSES_MAX = 4096,
};

/* An order is carried out between the records before and after its time. */
struct order {
	uint64_t time;
	pid_t tid, tgid;
	uint32_t vm;
	bool remove, is_vcpu;
};

/* A process whose new threads and signals are captured. */
struct process {
	pid_t tgid;
	uint32_t vm;
	size_t n_threads; /* followed threads */
	size_t n_added;   /* number of them that user space added */
	size_t n_exiting;
};

struct perf_follow {
	struct perf_follow_sink sink;
	uint64_t wait_threshold_ns;
	struct task_table *tasks;
	struct request_table *requests;
	struct process processes[PROCESSES_MAX];
	size_t n_processes, n_followed;
	uint64_t unfollowed, unseen_wakeups;
	struct cpu_waits *waits;
	uint32_t seen[VS_CPUS_MAX]; /* switches since the last missing one */
	struct order *orders;
	size_t n_orders, orders_capacity;
};

struct perf_follow *perf_follow_new(const struct perf_follow_sink *sink, uint64_t wait_threshold_ns)
{
	struct perf_follow *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->sink = *sink;
	f->wait_threshold_ns = wait_threshold_ns;
	f->tasks = task_table_new();
	f->requests = request_table_new();
	f->waits = cpu_waits_new(VS_CPUS_MAX, 1);
	if (f->tasks && f->requests && f->waits)
		return f;
	perf_follow_free(f);
	return NULL;
}

void perf_follow_threshold(struct perf_follow *f, uint64_t wait_threshold_ns)
{
	if (wait_threshold_ns < f->wait_threshold_ns)
		f->wait_threshold_ns = wait_threshold_ns;
}

void perf_follow_free(struct perf_follow *f)
{
	if (!f)
		return;
	task_table_free(f->tasks);
	request_table_free(f->requests);
	cpu_waits_free(f->waits);
	free(f->orders);
	free(f);
}

/* The process whose threads are released. */
struct release {
	struct perf_follow *f;
	pid_t tgid;
};

/* ---- names ---- */

static void task_name(struct task *task, pid_t tgid, const char *comm)
{
	task->tgid = tgid;
	memset(task->comm, 0, sizeof(task->comm));
	memcpy(task->comm, comm, strnlen(comm, sizeof(task->comm) - 1));
}

void perf_follow_name(struct perf_follow *f, pid_t tid, pid_t tgid, const char comm[16])
{
	struct task *task = task_get(f->tasks, tid);

	if (task)
		task_name(task, tgid, comm);
}

/* Reads the name of a task whose beginning was not captured, while the task exists. */
static void task_ask(struct task *task)
{
	char path[64], line[128], comm[16] = "";
	int tgid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", task->tid);
	file = fopen(path, "re");
	while (file && !tgid && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "Name:\t", 6))
			memcpy(comm, line + 6, strnlen(line + 6, sizeof(comm) - 1));
		sscanf(line, "Tgid: %d", &tgid);
	}
	if (file)
		fclose(file);
	if (tgid)
		task_name(task, tgid, comm);
}

void perf_follow_announce(struct perf_follow *f, const struct vs_event *at, pid_t tid)
{
	struct task *task = task_get(f->tasks, tid);
	struct vs_event name = {.time = at->time, .cpu = at->cpu, .type = VS_EVENT_TASK_NAME};

	if (!task) /* every CPU's idle task */
		return;
	if (!task->tgid)
		task_ask(task);
	if (!task->tgid || (task->announced && task->announced_tgid == task->tgid &&
			    !memcmp(task->announced_comm, task->comm, sizeof(task->comm))))
		return;
	task->announced = true;
	task->announced_tgid = task->tgid;
	memcpy(task->announced_comm, task->comm, sizeof(task->comm));
	name.pid = tid;
	name.pid2 = task->tgid;
	ev_set_task_comm(&name, task->comm);
	f->sink.emit(f->sink.context, &name);
}

/* ---- followed threads, and waiting ones ---- */

static struct task *followed_of(const struct perf_follow *f, int32_t tid)
{
	struct task *task = task_find(f->tasks, tid);

	return task && task->followed ? task : NULL;
}

static struct process *process_find(struct perf_follow *f, pid_t tgid)
{
	for (size_t i = 0; i < f->n_processes; i++) {
		if (f->processes[i].tgid == tgid)
			return &f->processes[i];
	}
	return NULL;
}

static struct process *process_get(struct perf_follow *f, pid_t tgid)
{
	struct process *p = process_find(f, tgid);

	if (p || f->n_processes == PROCESSES_MAX)
		return p;
	p = &f->processes[f->n_processes++];
	*p = (struct process){.tgid = tgid};
	return p;
}

static void unfollow(struct perf_follow *f, struct task *task)
{
	struct process *p = process_find(f, task->tgid);

	cpu_waits_leave(f->waits, &task->wait);
	task->followed = false;
	f->n_followed--;
	if (!p)
		return;
	p->n_added -= !task->by_kernel;
	p->n_exiting -= task->exiting;
	if (!--p->n_threads)
		*p = f->processes[--f->n_processes];
}

static bool follow(struct perf_follow *f, struct task *task, uint32_t vm, bool by_kernel)
{
	struct process *p = process_get(f, task->tgid);

	if (!p || f->n_followed >= VS_FOLLOWED_MAX)
		return false;
	p->vm = vm;
	p->n_threads++;
	p->n_added += !by_kernel;
	task->followed = true;
	task->is_vcpu = false;
	task->by_kernel = by_kernel;
	task->exiting = false;
	task->vm = vm;
	task->waker = -1;
	task->off_state = 0;
	task->off_time = 0;
	task->on_time = 0;
	task->halt = VS_HALT_NONE;
	task->short_ns = 0;
	f->n_followed++;
	return true;
}

static void unfollow_of(void *context, struct task *task)
{
	const struct release *r = context;

	if (task->followed && task->tgid == r->tgid)
		unfollow(r->f, task);
}

/* After the last thread that user space added, releases the other threads of the process. */
static void process_release(struct perf_follow *f, pid_t tgid)
{
	const struct process *p = process_find(f, tgid);
	struct release r = {f, tgid};

	if (p && !p->n_added)
		task_each(f->tasks, unfollow_of, &r);
}

/* ---- orders ---- */

static const struct order *order_last(const struct perf_follow *f, pid_t tid)
{
	for (size_t i = f->n_orders; i > 0; i--) {
		if (f->orders[i - 1].tid == tid)
			return &f->orders[i - 1];
	}
	return NULL;
}

bool perf_follow_will(const struct perf_follow *f, pid_t tid)
{
	const struct order *last = order_last(f, tid);

	return last ? !last->remove : followed_of(f, tid) != NULL;
}

static int order_put(struct perf_follow *f, const struct order *order)
{
	if (ARRAY_RESERVE(&f->orders, f->n_orders, &f->orders_capacity, 16))
		return -ENOMEM;
	f->orders[f->n_orders++] = *order;
	return 0;
}

static bool thread_exists(pid_t tid, pid_t tgid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", tgid, tid);
	return !access(path, F_OK);
}

int perf_follow_add(struct perf_follow *f, uint64_t time, pid_t tid, pid_t tgid, uint32_t vm,
		    bool is_vcpu)
{
	const struct order order = {
		.time = time, .tid = tid, .tgid = tgid, .vm = vm, .is_vcpu = is_vcpu};

	if (tid <= 0 || tgid <= 0)
		return -EINVAL;
	if (f->n_followed + f->n_orders >= VS_FOLLOWED_MAX)
		return -ENOSPC;
	return thread_exists(tid, tgid) ? order_put(f, &order) : -ESRCH;
}

int perf_follow_remove(struct perf_follow *f, uint64_t time, pid_t tid)
{
	const struct order order = {.time = time, .tid = tid, .remove = true};

	return perf_follow_will(f, tid) ? order_put(f, &order) : -ENOENT;
}

static void order_remove(struct perf_follow *f, pid_t tid)
{
	struct task *task = followed_of(f, tid);

	if (!task)
		return;
	unfollow(f, task);
	process_release(f, task->tgid);
}

static void order_add(struct perf_follow *f, const struct order *order)
{
	struct task *task = task_find(f->tasks, order->tid);

	/* An unknown thread has left its CPU for the last time, or its beginning was lost. */
	if (!task && thread_exists(order->tid, order->tgid))
		task = task_get(f->tasks, order->tid);
	if (!task)
		return;
	task->tgid = order->tgid;
	if (!task->comm[0])
		task_ask(task);
	if (task->followed && task->by_kernel) {
		struct process *p = process_find(f, task->tgid);

		task->by_kernel = false;
		if (p)
			p->n_added++;
	} else if (!task->followed && !follow(f, task, order->vm, false)) {
		f->unfollowed++;
		return;
	}
	task->vm = order->vm;
	task->is_vcpu = order->is_vcpu;
}

static void order_obey(struct perf_follow *f, const struct order *order)
{
	if (order->remove)
		order_remove(f, order->tid);
	else
		order_add(f, order);
}

void perf_follow_until(struct perf_follow *f, uint64_t time)
{
	size_t n = 0;

	while (n < f->n_orders && f->orders[n].time <= time)
		order_obey(f, &f->orders[n++]);
	if (!n)
		return;
	f->n_orders -= n;
	memmove(f->orders, f->orders + n, f->n_orders * sizeof(*f->orders));
}

/* ---- records: each function does what the program of its tracepoint in host.bpf.c does ---- */

static bool slept_long(const struct perf_follow *f, const struct task *task, uint64_t now)
{
	return task->is_vcpu && task->off_time && task->off_state &&
	       now - task->off_time >= f->wait_threshold_ns;
}

/* Handles that a task runs again. */
static void sleep_replay(struct perf_follow *f, const struct vs_event *e, struct task *task)
{
	const bool is_long = slept_long(f, task, e->time);
	const bool sampled = task->is_vcpu && task->off_time && task->off_state &&
			     task->halt != VS_HALT_SLEEP &&
			     short_wait_due(&task->short_ns, e->time - task->off_time);

	if (is_long || sampled)
		f->sink.slept(f->sink.context, e, task, is_long ? VS_STACK_WAITER : VS_STACK_SHORT,
			      sampled);
	task->off_state = 0;
	task->on_time = e->time;
	if (task->halt == VS_HALT_SLEEP)
		task->halt = VS_HALT_NONE;
}

static void switch_replay(struct perf_follow *f, const struct vs_event *e)
{
	struct task *out = task_find(f->tasks, e->pid), *in = task_get(f->tasks, e->pid2);
	const uint64_t state = ev_sched_switch_state(e);
	const bool follows_out = out && out->followed, follows_in = in && in->followed;

	/* It slept, and was not seen to be woken. */
	if (follows_in && in->off_state && in->wait.waiting_cpu < 0)
		f->unseen_wakeups++;
	if (follows_out || follows_in || cpu_waits_count(f->waits, e->cpu)) {
		perf_follow_announce(f, e, e->pid);
		perf_follow_announce(f, e, e->pid2);
		f->sink.emit(f->sink.context, e);
	}
	if (follows_out) {
		out->off_time = e->time;
		out->off_state = (uint32_t)state;
		if (state && out->halt == VS_HALT_EXIT)
			out->halt = VS_HALT_SLEEP;
		if (state & VS_TASK_DEAD)
			unfollow(f, out);
	}
	if (follows_in)
		sleep_replay(f, e, in); /* reads where it slept: in->wait.cpu */
	cpu_waits_switch(f->waits, e, follows_out ? &out->wait : NULL,
			 follows_in ? &in->wait : NULL);
	/* Needed for all tasks: some are followed later. */
	if (out)
		out->wait.cpu = e->cpu;
	if (in)
		in->wait.cpu = e->cpu;
	if (out && state & VS_TASK_DEAD)
		task_forget(f->tasks, out);
}

/* Returns true if the task on the CPU is not the one that was switched in last. */
static bool is_hole(const struct perf_follow *f, const struct vs_event *e)
{
	const int32_t running = cpu_waits_running(f->waits, e->cpu);

	return running != CPU_WAITS_TASK_UNKNOWN && running != e->pid;
}

static void on_switch(struct perf_follow *f, const struct vs_event *e)
{
	struct task *out = task_find(f->tasks, e->pid), *in = task_get(f->tasks, e->pid2);

	if (is_hole(f, e)) {
		f->sink.missed(f->sink.context, e->cpu);
		f->seen[e->cpu] = 0;
	} else if (f->seen[e->cpu] < SWITCHES_ENOUGH) {
		f->seen[e->cpu]++;
	}
	if (out)
		out->prio = ev_sched_switch_out_prio(e);
	if (in)
		in->prio = ev_sched_switch_in_prio(e);
	switch_replay(f, e);
}

static int32_t prio_of(const struct perf_follow *f, int32_t tid)
{
	const struct task *task = task_find(f->tasks, tid);

	return task && task->prio ? task->prio : PRIO_DEFAULT;
}

/* Handles perf's own record of a switch. The tracepoint came before it, unless perf omits events in
 * the task that left. Then both tasks are known, but not the state of the one that left. */
static void on_switched_in(struct perf_follow *f, const struct vs_event *e)
{
	struct vs_event filled = *e;

	if (cpu_waits_running(f->waits, e->cpu) == e->pid2)
		return;
	f->seen[e->cpu] = 0;
	if (is_hole(f, e) || followed_of(f, e->pid))
		f->sink.missed(f->sink.context, e->cpu);
	filled.type = VS_EVENT_SCHED_SWITCH;
	ev_set_sched_switch_state(&filled, VS_TASK_RUNNING);
	ev_set_sched_switch_out_prio(&filled, prio_of(f, e->pid));
	ev_set_sched_switch_in_prio(&filled, prio_of(f, e->pid2));
	switch_replay(f, &filled);
}

static void on_waking(struct perf_follow *f, const struct vs_event *e)
{
	struct task *task = followed_of(f, e->pid);

	if (!task)
		return;
	task->waker = e->pid2;
	perf_follow_announce(f, e, e->pid2);
	if (task->wait.waiting_cpu < 0 && slept_long(f, task, e->time))
		f->sink.woke(f->sink.context, e, task, task_find(f->tasks, e->pid2));
}

static void on_wakeup(struct perf_follow *f, const struct vs_event *e)
{
	struct task *task = followed_of(f, e->pid);
	struct vs_event out = *e;

	if (!task)
		return;
	perf_follow_announce(f, e, e->pid);
	if (task->waker >= 0)
		out.pid2 = task->waker;
	else
		perf_follow_announce(f, e, e->pid2);
	task->waker = -1;
	f->sink.emit(f->sink.context, &out);
	cpu_waits_wakeup(f->waits, e, &task->wait);
}

static void on_migrate(struct perf_follow *f, const struct vs_event *e)
{
	struct task *task = followed_of(f, e->pid);

	if (!task)
		return;
	perf_follow_announce(f, e, e->pid);
	perf_follow_announce(f, e, e->pid2);
	f->sink.emit(f->sink.context, e);
	cpu_waits_migrate(f->waits, e, &task->wait);
}

static void on_signal(struct perf_follow *f, const struct vs_event *e)
{
	const struct task *task = task_find(f->tasks, e->pid);
	const struct process *p = task ? process_find(f, task->tgid) : NULL;
	struct vs_event out = *e;

	if (!p || p->n_exiting == p->n_threads)
		return;
	ev_set_signal_process(&out, (uint32_t)task->tgid);
	perf_follow_announce(f, e, e->pid);
	perf_follow_announce(f, e, e->pid2);
	f->sink.emit(f->sink.context, &out);
}

static void on_new_task(struct perf_follow *f, const struct vs_event *e)
{
	struct task *task = task_get(f->tasks, e->pid);
	const struct process *p;
	char comm[16];

	if (!task)
		return;
	ev_task_comm(e, comm);
	if (task->followed) /* the end of an earlier task with this id was lost */
		unfollow(f, task);
	task->announced = false;
	task->wait.cpu = -1;
	task_name(task, e->pid2, comm);
	p = e->pid == e->pid2 ? NULL : process_find(f, e->pid2);
	if (!p)
		return;
	if (follow(f, task, p->vm, true))
		perf_follow_announce(f, e, e->pid);
	else
		f->unfollowed++;
}

static void on_name(struct perf_follow *f, const struct vs_event *e)
{
	struct task *task = task_get(f->tasks, e->pid);
	char comm[16];

	if (!task)
		return;
	ev_task_comm(e, comm);
	task_name(task, e->pid2, comm);
	if (task->followed)
		perf_follow_announce(f, e, e->pid);
}

static void on_exit_begun(struct perf_follow *f, const struct vs_event *e)
{
	struct task *task = followed_of(f, e->pid);
	struct process *p = task ? process_find(f, task->tgid) : NULL;
	struct vs_event out = *e;

	if (!task)
		return;
	out.pid2 = task->tgid;
	if (p && !task->exiting)
		p->n_exiting++;
	task->exiting = true;
	perf_follow_announce(f, e, e->pid);
	f->sink.emit(f->sink.context, &out);
}

static void on_row(struct perf_follow *f, const struct vs_event *e)
{
	const enum vs_scope scope = (enum vs_scope)event_type_of(e->type)->scope;
	const struct vs_request request = request_of(e);
	struct vs_event out = *e;
	struct task *task = followed_of(f, e->pid);

	if ((scope == VS_SCOPE_FOLLOWED || scope == VS_SCOPE_BEGIN) && !task)
		return;
	if (task && e->type == VS_EVENT_KVM_EXIT)
		task->halt = exit_is_hlt(e) ? VS_HALT_EXIT : VS_HALT_NONE;
	if (scope == VS_SCOPE_BEGIN)
		request_begin(f->requests, &request, e->pid);
	if (scope == VS_SCOPE_END && !request_end(f->requests, &request, &out.pid2))
		return;
	f->sink.emit(f->sink.context, &out);
}

typedef void (*record_handler)(struct perf_follow *f, const struct vs_event *e);

static const record_handler handlers[TYPES] = {
	[VS_EVENT_SCHED_SWITCH] = on_switch,   [PERF_WAKING] = on_waking,
	[VS_EVENT_SCHED_WAKEUP] = on_wakeup,   [VS_EVENT_SCHED_WAKEUP_NEW] = on_wakeup,
	[VS_EVENT_SCHED_MIGRATE] = on_migrate, [VS_EVENT_SIGNAL] = on_signal,
	[PERF_NEW_TASK] = on_new_task,         [VS_EVENT_TASK_NAME] = on_name,
	[VS_EVENT_TASK_EXIT] = on_exit_begun,  [PERF_SWITCHED_IN] = on_switched_in,
};

void perf_follow_record(struct perf_follow *f, const struct vs_event *event)
{
	perf_follow_until(f, event->time);
	if (event->type >= TYPES || event->cpu >= VS_CPUS_MAX)
		return;
	(handlers[event->type] ? handlers[event->type] : on_row)(f, event);
}

void perf_follow_lost(struct perf_follow *f, uint16_t cpu)
{
	cpu_waits_lost(f->waits, cpu);
}

const struct task *perf_follow_find(const struct perf_follow *f, pid_t tid)
{
	return followed_of(f, tid);
}

bool perf_follow_concerns(const struct perf_follow *f, const struct vs_event *event)
{
	const enum vs_scope scope = (enum vs_scope)event_type_of(event->type)->scope;

	return followed_of(f, event->pid) || followed_of(f, event->pid2) ||
	       (scope != VS_SCOPE_FOLLOWED && scope != VS_SCOPE_TASKS) ||
	       (event->type == VS_EVENT_SCHED_SWITCH && cpu_waits_count(f->waits, event->cpu));
}

uint64_t perf_follow_unseen_wakeups(const struct perf_follow *f)
{
	return f->unseen_wakeups;
}

static void count_then(const struct perf_follow *f, size_t *n)
{
	for (size_t i = 0; i < f->n_orders; i++) {
		const struct order *o = &f->orders[i];

		if (order_last(f, o->tid) != o)
			continue;
		if (!o->remove && !followed_of(f, o->tid))
			(*n)++;
		else if (o->remove && followed_of(f, o->tid))
			(*n)--;
	}
}

bool perf_follow_sees_all(const struct perf_follow *f, size_t cpu)
{
	return f->seen[cpu] >= SWITCHES_ENOUGH;
}

size_t perf_follow_threads(const struct perf_follow *f)
{
	size_t n = f->n_followed;

	count_then(f, &n);
	return n;
}

long perf_follow_waiting(const struct perf_follow *f, size_t cpu)
{
	long n = 0;

	if (cpu != SIZE_MAX)
		return cpu_waits_count(f->waits, cpu);
	for (size_t i = 0; i < VS_CPUS_MAX; i++)
		n += cpu_waits_count(f->waits, i);
	return n;
}

uint64_t perf_follow_unfollowed(const struct perf_follow *f)
{
	return f->unfollowed;
}
