/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/run_delay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/model/lru.h"

enum { TABLE_ITEMS = 4096 };

struct run_delay {
	struct lru vcpu_index, holder_index;
	struct run_delay_vcpu *vcpus;
	struct run_delay_holder *holders;
	struct run_delay_pcpu pcpus[VS_CPUS_MAX];
	int error;
};

static bool runs(enum vcpu_state s)
{
	return s == VCPU_GUEST || s == VCPU_KVM || s == VCPU_VMM;
}

static bool waits(enum vcpu_state s)
{
	return s == VCPU_RUNNABLE || s == VCPU_THROTTLED;
}

static void vcpu_clear(struct run_delay_vcpu *v)
{
	for (int c = 0; c < RUN_DELAY_CAUSES; c++)
		histogram_fini(&v->waits[c]);
	memset(v, 0, sizeof(*v));
}

static struct run_delay_vcpu *vcpu_get(struct run_delay *r, const struct vcpu_span *span)
{
	bool fresh;
	uint32_t slot = lru_put(&r->vcpu_index, (uint64_t)span->vm << 32 | span->vcpu, &fresh);
	struct run_delay_vcpu *v = &r->vcpus[slot];

	if (fresh) {
		vcpu_clear(v);
		v->vm = span->vm;
		v->vcpu = span->vcpu;
	}
	return v;
}

static void holder_count(struct run_delay *r, const struct vcpu_span *span)
{
	struct run_delay_holder *h;
	bool fresh;
	uint32_t slot;

	if (!span->holder_pid)
		return;
	slot = lru_put(&r->holder_index, (uint64_t)span->vm << 32 | (uint32_t)span->holder_pid,
		       &fresh);
	h = &r->holders[slot];
	if (fresh)
		*h = (struct run_delay_holder){.vm = span->vm, .pid = span->holder_pid};
	h->held_ns += span->holder_ns;
	h->waits++;
}

static void wait_count(struct run_delay *r, struct run_delay_vcpu *v, const struct vcpu_span *span)
{
	int64_t ns = span->end.ns - span->begin.ns;

	if (waits(span->state)) {
		v->waiting = true;
		v->wait_ns += ns;
		return;
	}
	if (v->waiting && v->cause_known && runs(span->state) &&
	    histogram_add(&v->waits[v->cause], (uint64_t)v->wait_ns))
		r->error = -ENOMEM;
	v->waiting = false;
	v->wait_ns = 0;
	v->cause_known = span->state != VCPU_UNKNOWN;
	v->cause = runs(span->state) ? RUN_DELAY_PREEMPTED : RUN_DELAY_WOKEN;
}

static void span_take(void *context, const struct vcpu_span *span)
{
	struct run_delay *r = context;
	struct run_delay_vcpu *v = vcpu_get(r, span);
	int64_t ns = span->end.ns - span->begin.ns;

	v->state_ns[span->state] += ns;
	wait_count(r, v, span);
	if (span->pcpu >= VS_CPUS_MAX)
		return;
	if (runs(span->state)) {
		v->migrations += v->ran && v->ran_on != span->pcpu;
		v->ran = true;
		v->ran_on = span->pcpu;
		r->pcpus[span->pcpu].run_ns += ns;
	} else if (waits(span->state)) {
		r->pcpus[span->pcpu].wait_ns += ns;
		holder_count(r, span);
	}
}

struct run_delay *run_delay_new(struct model *m)
{
	struct run_delay *r = calloc(1, sizeof(*r));
	struct model_observer observer = {.vcpu_span = span_take, .context = r};

	if (!r)
		return NULL;
	r->vcpus = calloc(TABLE_ITEMS, sizeof(*r->vcpus));
	r->holders = calloc(TABLE_ITEMS, sizeof(*r->holders));
	if (!r->vcpus || !r->holders || lru_init(&r->vcpu_index, TABLE_ITEMS) ||
	    lru_init(&r->holder_index, TABLE_ITEMS) || model_observe(m, &observer)) {
		run_delay_free(r);
		return NULL;
	}
	for (unsigned i = 0; i < VS_CPUS_MAX; i++)
		r->pcpus[i].pcpu = (uint16_t)i;
	return r;
}

void run_delay_free(struct run_delay *r)
{
	if (!r)
		return;
	for (unsigned i = 0; r->vcpus && i < TABLE_ITEMS; i++)
		vcpu_clear(&r->vcpus[i]);
	lru_fini(&r->vcpu_index);
	lru_fini(&r->holder_index);
	free(r->vcpus);
	free(r->holders);
	free(r);
}

int run_delay_error(const struct run_delay *r)
{
	return r->error;
}

/* The slot of the index-th key in use. */
static uint32_t slot_at(const struct lru *l, size_t index)
{
	for (uint32_t slot = 0; slot < TABLE_ITEMS; slot++) {
		if (lru_used(l, slot) && !index--)
			return slot;
	}
	return LRU_NONE;
}

const struct run_delay_vcpu *run_delay_vcpu(const struct run_delay *r, size_t index)
{
	uint32_t slot = slot_at(&r->vcpu_index, index);

	return slot == LRU_NONE ? NULL : &r->vcpus[slot];
}

const struct run_delay_holder *run_delay_holder(const struct run_delay *r, size_t index)
{
	uint32_t slot = slot_at(&r->holder_index, index);

	return slot == LRU_NONE ? NULL : &r->holders[slot];
}

const struct run_delay_pcpu *run_delay_pcpu(const struct run_delay *r, size_t index)
{
	for (unsigned i = 0; i < VS_CPUS_MAX; i++) {
		const struct run_delay_pcpu *p = &r->pcpus[i];

		if ((p->run_ns || p->wait_ns) && !index--)
			return p;
	}
	return NULL;
}
