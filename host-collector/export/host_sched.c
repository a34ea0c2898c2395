/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/host_sched.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/event_fields.h"

/* Just before the losses. */
enum { RANK_UNSEEN = 999999 };

void host_sched_fini(struct host_sched *h)
{
	for (size_t i = 0; i < VS_CPUS_MAX; i++) {
		if (h->rows[i])
			sched_row_free(h->rows[i]->row);
		free(h->rows[i]);
	}
}

static struct host_row *row_get(struct host_sched *h, uint16_t cpu)
{
	struct host_row *r = h->rows[cpu];

	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (r)
		r->row = sched_row_new(TRACE_MACHINE_HOST, cpu);
	if (!r || !r->row) {
		free(r);
		h->error = -ENOMEM;
		return NULL;
	}
	h->rows[cpu] = r;
	return r;
}

/* Returns the thread that is drawn. Unknown time is drawn as an empty CPU and belongs to no thread.
 */
static int32_t shown(int32_t tid)
{
	return tasks_is_nobody(tid) ? 0 : tid;
}

static void commit(struct host_sched *h, struct host_row *r)
{
	struct sched_switch s = r->waiting;

	if (!r->any)
		return;
	s.next = shown(s.next);
	s.name = tasks_get(h->tasks, TRACE_MACHINE_HOST, s.next)->name;
	sched_row_switch(r->row, h->file, &s);
}

/* Writes a slice for time that was not observed, so that it does not look like an idle CPU. */
static void unseen_write(struct host_sched *h, struct host_row *r, uint64_t until)
{
	uint64_t from = r->waiting.t > h->file->from ? r->waiting.t : h->file->from;
	char name[TRACE_NAME_BYTES];

	if (until > h->file->until)
		until = h->file->until;
	if (!r->any || !tasks_is_nobody(r->waiting.next) || until <= from)
		return;
	if (!h->unseen_group)
		h->unseen_group = trace_track_new(h->file, 0, "Not captured", RANK_UNSEEN);
	if (!r->unseen) {
		snprintf(name, sizeof(name), "host CPU %u", r->row->cpu);
		r->unseen = trace_track_new(h->file, h->unseen_group, name, r->row->cpu);
	}
	trace_begin(h->file, from, r->unseen, trace_name(h->file, "not captured"));
	trace_end(h->file, until, r->unseen);
}

static void change(struct host_sched *h, struct host_row *r, const struct sched_switch *s,
		   bool vcpu)
{
	commit(h, r);
	unseen_write(h, r, s->t);
	r->waiting = *s;
	r->any = true;
	r->current = s->next;
	r->proven = vcpu;
	r->until = s->t;
	r->proof.ns = INT64_MIN;
	if (!tasks_is_nobody(s->next))
		tasks_get(h->tasks, TRACE_MACHINE_HOST, s->next)->cpu = r->row->cpu;
}

/* Records that the thread which is shown now was on the CPU at `t`. */
static void prove(struct host_row *r, uint64_t t)
{
	r->proven = true;
	if (t > r->until)
		r->until = t;
}

/* Returns until when the thread that is shown now ran at least. */
static uint64_t proven_until(struct host_sched *h, const struct host_row *r)
{
	uint64_t t = r->proof.ns == INT64_MIN ? 0 : boottime_of(h->boottime, r->proof);

	return t > r->until ? t : r->until;
}

/* From some time before `t` on, nobody knows who runs here. */
static void forget(struct host_sched *h, struct host_row *r, uint64_t t)
{
	int32_t nobody = tasks_nobody(r->row->cpu);
	uint64_t until;

	if (!r->any || r->current == nobody)
		return;
	if (!r->proven) {
		r->waiting.next = nobody;
		r->current = nobody;
		return;
	}
	until = proven_until(h, r);
	if (until + 1 < t)
		change(h, r, &(struct sched_switch){.t = until + 1, .next = nobody}, false);
}

/* The CPU on which `tid` is shown now, or -1. */
static int32_t cpu_of(const struct host_sched *h, int32_t tid)
{
	int32_t cpu = tasks_get(h->tasks, TRACE_MACHINE_HOST, tid)->cpu;

	return cpu >= 0 && h->rows[cpu] && h->rows[cpu]->current == tid ? cpu : -1;
}

/* It turns up on `cpu`, so it has left any other. */
static void leave_others(struct host_sched *h, uint64_t t, uint16_t cpu, int32_t tid)
{
	int32_t at = cpu_of(h, tid);

	if (at >= 0 && at != cpu)
		forget(h, h->rows[at], t > proven_until(h, h->rows[at]) + 1 ? t : UINT64_MAX);
}

static uint64_t after_newest(const struct host_row *r, uint64_t t)
{
	return r->any && t <= r->waiting.t ? r->waiting.t + 1 : t;
}

/* `tid` ran on that CPU at `t`, which shows another task. */
static void correct(struct host_sched *h, struct host_row *r, uint64_t t, int32_t tid)
{
	leave_others(h, t, r->row->cpu, tid);
	t = after_newest(r, t);
	forget(h, r, t);
	change(h, r, &(struct sched_switch){.t = after_newest(r, t), .next = tid}, true);
}

void host_sched_proof(struct host_sched *h, struct host_ns at, uint16_t cpu, int32_t tid)
{
	struct host_row *r = row_get(h, cpu);

	if (!r)
		return;
	if (!r->any || r->current != tid) {
		correct(h, r, boottime_of(h->boottime, at), tid);
		return;
	}
	r->proven = true;
	if (at.ns > r->proof.ns)
		r->proof = at;
}

void host_sched_switch(struct host_sched *h, uint64_t t, const struct vs_event *e, bool out_vcpu,
		       bool in_vcpu)
{
	struct host_row *r = row_get(h, e->cpu);

	if (!r)
		return;
	if (out_vcpu && r->any && r->current == e->pid)
		prove(r, t);
	else if (out_vcpu)
		correct(h, r, r->current == e->pid || !t ? t : t - 1, e->pid);
	else if (r->any && r->current != e->pid)
		forget(h, r, t);
	if (in_vcpu)
		leave_others(h, t, e->cpu, e->pid2);
	change(h, r,
	       &(struct sched_switch){.t = r->any && t < r->waiting.t ? r->waiting.t : t,
				      .prev_state = (uint32_t)ev_sched_switch_state(e),
				      .next = e->pid2,
				      .next_prio = ev_sched_switch_in_prio(e)},
	       in_vcpu);
}

void host_sched_waking(struct host_sched *h, uint64_t t, const struct vs_event *e)
{
	struct host_row *r = row_get(h, e->cpu);
	struct sched_waking w = {.t = t,
				 .pid = e->pid,
				 .prio = ev_sched_wakeup_prio(e),
				 .target_cpu = (uint32_t)ev_sched_wakeup_cpu(e)};

	if (!r || e->pid <= 0)
		return;
	tasks_get(h->tasks, TRACE_MACHINE_HOST, e->pid2);
	w.name = tasks_get(h->tasks, TRACE_MACHINE_HOST, e->pid)->name;
	if (r->any && r->current == e->pid2) {
		prove(r, t);
		sched_row_waking(r->row, h->file, &w);
	} else {
		sched_row_waking_by(r->row, h->file, &w, e->pid2);
	}
}

void host_sched_lost(struct host_sched *h, uint16_t cpu)
{
	struct host_row *r = row_get(h, cpu);

	if (r)
		r->row->lost = true;
}

void host_sched_finish(struct host_sched *h)
{
	for (size_t i = 0; i < VS_CPUS_MAX; i++) {
		if (!h->rows[i])
			continue;
		commit(h, h->rows[i]);
		sched_row_finish(h->rows[i]->row, h->file);
	}
}
