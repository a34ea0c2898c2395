/* SPDX-License-Identifier: GPL-2.0-only */
/* Decides which waits for a pCPU were throttling, from the increase of the cgroup's counter. */
#include "host-collector/model/vcpu_internal.h"

/* How much of a wait that nobody is charged for yet lies before `until`, if any of it came after
 * `from`: the counter advances when a throttling ends. */
static int64_t quota_chargeable(const struct vcpu_span *span, const struct quota_reading *r)
{
	int64_t end = span->end.ns < r->until.ns ? span->end.ns : r->until.ns;

	if (span->state != VCPU_RUNNABLE || span->end.ns <= r->from.ns)
		return 0;
	return end - span->begin.ns - span->throttled_ns;
}

/* Of this, as much as its pCPU idled and is not charged yet. */
static int64_t quota_idle(const struct vcpu_span *span, int64_t chargeable)
{
	int64_t ns = span->pcpu_idle_ns - span->throttled_ns;

	if (ns <= 0)
		return 0;
	return ns < chargeable ? ns : chargeable;
}

static bool quota_open_wait(const struct vcpu *v, const struct quota_reading *r)
{
	return v->state == THREAD_READY && v->open.begin.ns < r->until.ns;
}

static void waits_add(const struct vcpu_span *span, const struct quota_reading *r,
		      struct quota_waits *sum)
{
	int64_t ns = quota_chargeable(span, r), idle;

	if (ns <= 0)
		return;
	idle = quota_idle(span, ns);
	sum->idle_ns += idle;
	sum->n_busy += ns - idle >= QUOTA_WAIT_NS;
}

void vcpu_quota_waits(const struct vcpu *v, const struct quota_reading *r,
		      const struct vcpu_sink *sink, struct quota_waits *sum)
{
	if (quota_open_wait(v, r)) {
		struct vcpu_span now = vcpu_span_closed(v, r->until, sink);

		waits_add(&now, r, sum);
	}
	for (uint32_t i = 0; i < v->held_count; i++)
		waits_add(&vcpu_held_at(v, i)->span, r, sum);
}

/* What a wait is to be charged with: all of it if `spare` suffices, else what its pCPU idled. */
static int64_t quota_due(const struct vcpu_span *span, const struct quota_reading *r, int64_t spare)
{
	int64_t ns = quota_chargeable(span, r), idle;

	if (ns <= 0)
		return 0;
	idle = quota_idle(span, ns);
	return ns - idle <= spare + spare / 4 ? ns : idle;
}

/*
 * The counter adds up what all pCPUs were throttled, so the longest waits are charged first. One
 * whose pCPU idled meanwhile can hardly have been anything else. What the counter has beyond that
 * was throttling while others ran on the pCPU: a fair share of it must suffice for all of a wait.
 */
void vcpu_quota(struct vcpu *v, const struct quota_reading *r, const struct quota_waits *all,
		const struct vcpu_sink *sink)
{
	int64_t left = r->throttled_ns, spare = left - all->idle_ns;

	spare = spare > 0 ? spare / (all->n_busy ? all->n_busy : 1) : 0;
	v->quota_until = r->until;
	while (left > 0) {
		bool open = quota_open_wait(v, r);
		struct vcpu_span now = open ? vcpu_span_closed(v, r->until, sink) : v->open;
		struct vcpu_span *most = open ? &now : NULL;
		int64_t ns = open ? quota_due(&now, r, spare) : 0;

		for (uint32_t i = 0; i < v->held_count; i++) {
			struct vcpu_span *span = &vcpu_held_at(v, i)->span;
			int64_t more = quota_due(span, r, spare);

			if (more > ns) {
				ns = more;
				most = span;
			}
		}
		if (ns <= 0)
			break;
		ns = ns < left ? ns : left;
		left -= ns;
		if (most != &now) {
			vcpu_quota_charge(most, ns, r->cgroup);
			continue;
		}
		if (ns > v->throttled_ns)
			v->throttled_by = r->cgroup;
		v->throttled_ns += ns;
	}
	vcpu_release(v, r->until, false, sink);
}
