/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Longer stories for the tests of analyses. A tale is a list of events: helpers add events in any
 * order, and tale_play() sorts them by time and feeds them to a model. All tales have one vCPU on
 * pCPU 0, the guest tasks 42 and 50, and timer ticks every 4 ms while the guest runs.
 */
#ifndef TESTS_MODEL_TALE_H
#define TESTS_MODEL_TALE_H

#include <stdlib.h>

#include "host-collector/analyze/stall/builder.h"
#include "host-collector/engine/pauses.h"
#include "host-collector/engine/quotas.h"
#include "tests/unit/model_script.h"

enum { TALE_MAX = 65536, TICK_US = 4000 };

enum { TALE_VMM_MAX = 16 };

struct tale {
	size_t n;
	struct timeline_event events[TALE_MAX];
	size_t n_vmm;
	struct tale_vmm { /* the VMM's notes, in order of time */
		int64_t t_us;
		enum note_kind kind;
	} vmm[TALE_VMM_MAX];
	struct quotas quotas; /* readings of the quota that the model has not got yet */
	const char *cgroup;   /* cgroup of the quota; NULL: unknown */
	uint64_t quota_us;
	void (*prepare)(struct model *m); /* called before the first event; NULL: none */
	int64_t log_us;                   /* time of `log` */
	const char *log;                  /* a line of the host's kernel log; NULL: none */
};

static inline void tale_add(struct tale *t, struct timeline_event event)
{
	assert_true(t->n < TALE_MAX);
	event.event.seq = (uint32_t)t->n; /* keeps the order of equal times */
	t->events[t->n++] = event;
}

static inline void tale_vmm(struct tale *t, int64_t t_us, enum note_kind kind)
{
	assert_true(t->n_vmm < TALE_VMM_MAX);
	t->vmm[t->n_vmm++] = (struct tale_vmm){t_us, kind};
}

/* Adds a reading of the quota of vCPU 0: its cgroup, which `n_vcpus` vCPUs share, was throttled for
 * `throttled_us` between `from_us` and `until_us`. */
static inline void tale_quota(struct tale *t, int64_t from_us, int64_t until_us, uint32_t n_vcpus,
			      int64_t throttled_us)
{
	const struct quota_reading reading = {.vm = VM,
					      .cgroup = t->cgroup ? 1 : 0,
					      .n_vcpus = n_vcpus,
					      .from = {from_us * 1000},
					      .until = {until_us * 1000},
					      .throttled_ns = throttled_us * 1000};

	assert_int_equal(quotas_add(&t->quotas, NULL, &reading), 0);
}

/* Sets the line of the host's kernel log. */
static inline void tale_log(struct tale *t, int64_t t_us, const char *text)
{
	t->log_us = t_us;
	t->log = text;
}

#define ADD(t, ...) tale_add(t, (struct timeline_event)__VA_ARGS__)

static inline void tale_ticks(struct tale *t, int64_t from_us, int64_t to_us, int32_t pid)
{
	for (int64_t at = from_us; at < to_us; at += TICK_US) {
		ADD(t, IRQ(at, 0, VECTOR_ENTRY, pid, VS_VECTOR_LOCAL_TIMER));
		ADD(t, IRQ(at + 5, 0, VECTOR_EXIT, pid, VS_VECTOR_LOCAL_TIMER));
	}
}

/* Begins a tale with 200 ms in which task 42 computes and the ticks show their interval. Then task
 * 50 takes over. */
static inline void tale_begin(struct tale *t)
{
	t->n = t->n_vmm = 0;
	ADD(t, SWITCH(HOST, 0, 0, 0, TID0, 0));
	ADD(t, NAME(HOST, 1, 900, 900, script_comm("bash")));
	ADD(t, NAME(HOST, 1, 500, 500, script_comm("hog")));
	ADD(t, NAME(HOST, 1, 77, QEMU, script_comm("qemu-io")));
	ADD(t, SWITCH(VM, 1, 0, 0, 42, 0));
	ADD(t, NAME(VM, 1, 42, 42, script_comm("worker")));
	ADD(t, NAME(VM, 1, 50, 50, script_comm("victim")));
	ADD(t, NAME(VM, 1, 60, 60, script_comm("waiter")));
	tale_ticks(t, 2000, 200000, 42);
	ADD(t, SWITCH(VM, 200000, 0, 42, 50, 1));
}

/* On the host, task `instead` runs in place of the vCPU thread, which leaves its pCPU with `state`.
 * Unless it was preempted, a wake-up brings it back. */
static inline void tale_away(struct tale *t, int64_t from_us, int64_t to_us, uint32_t state,
			     int32_t instead)
{
	ADD(t, SWITCH(HOST, from_us, 0, TID0, instead, state));
	if (state != VS_TASK_RUNNING)
		ADD(t, WAKEUP(HOST, to_us, 1, TID0, 77, 0));
	ADD(t, SWITCH(HOST, to_us, 0, instead, TID0, instead ? VS_TASK_RUNNING : 0));
}

/* The guest idles, and a signal stops its VM from 300 to 700 ms. */
static inline void tale_idle_and_stopped(struct tale *t)
{
	tale_begin(t);
	ADD(t, SWITCH(VM, 201000, 0, 50, 0, 1));
	ADD(t, SIGNAL(299900, QEMU, 900, 19));
	tale_away(t, 202000, 300000, VS_TASK_INTERRUPTIBLE, 0);
	tale_away(t, 300010, 700000, 0x104, 0);
	ADD(t, SWITCH(VM, 720000, 0, 0, 50, 0));
	ADD(t, SWITCH(VM, 721000, 0, 50, 42, 1));
}

/* The same with a guest without an agent: only the host's events. */
static inline void tale_silent_and_stopped(struct tale *t)
{
	t->n = t->n_vmm = 0;
	ADD(t, SWITCH(HOST, 0, 0, 0, TID0, 0));
	ADD(t, SIGNAL(299900, QEMU, 900, 19));
	tale_away(t, 300000, 700000, 0x104, 0);
	ADD(t, SWITCH(HOST, 800000, 0, TID0, 0, 1));
}

static inline int tale_order(const void *a, const void *b)
{
	const struct timeline_event *x = a, *y = b;

	if (x->t.ns != y->t.ns)
		return x->t.ns < y->t.ns ? -1 : 1;
	return x->event.seq < y->event.seq ? -1 : 1;
}

static inline void tale_play(struct tale *t, struct model *m)
{
	struct pauses pauses = {0};
	uint32_t number; /* becomes 1, as tale_quota() expects */

	qsort(t->events, t->n, sizeof(*t->events), tale_order);
	for (size_t i = 0; i < t->n_vmm; i++)
		pauses_add(&pauses, m,
			   &(struct pause){VM, {t->vmm[i].t_us * 1000}, t->vmm[i].kind});
	if (t->log)
		model_host_log(m, (struct host_ns){t->log_us * 1000}, t->log);
	t->log = NULL;
	if (t->cgroup)
		assert_int_equal(model_cgroup(m, t->cgroup, t->quota_us, 100000, &number), 0);
	t->cgroup = NULL;
	if (t->prepare)
		t->prepare(m);
	t->prepare = NULL;
	for (size_t i = 0; i < t->n; i++) {
		pauses_deliver(&pauses, m, t->events[i].t);
		quotas_deliver(&t->quotas, m, t->events[i].t);
		script_run(m, &t->events[i], 1);
	}
	quotas_deliver(&t->quotas, m, (struct host_ns){INT64_MAX});
	quotas_fini(&t->quotas);
}

#endif
