/* SPDX-License-Identifier: GPL-2.0-only */
/* Which waits for a pCPU were throttling, by what the cgroup's counter advanced. */
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

/*
 * The counter adds up what all pCPUs were throttled, so the longest waits are charged first. One
 * whose pCPU idled meanwhile can hardly have been anything else; where others ran on it, a fair
 * share of the sum must suffice for all of it.
 */
void vcpu_quota(struct vcpu *v, const struct quota_reading *r, const struct vcpu_sink *sink)
{
	int64_t left = r->throttled_ns, share = left / (r->n_vcpus ? r->n_vcpus : 1);

	v->quota_until = r->until;
	while (left > 0) {
		bool open = v->state == THREAD_READY && v->open.begin.ns < r->until.ns;
		struct vcpu_span now = open ? vcpu_span_closed(v, r->until, sink) : v->open;
		struct vcpu_span *most = open ? &now : NULL;
		int64_t ns = open ? quota_chargeable(&now, r) : 0;

		for (uint32_t i = 0; i < v->held_count; i++) {
			struct vcpu_span *span = &vcpu_held_at(v, i)->span;
			int64_t more = quota_chargeable(span, r);

			if (more > ns) {
				ns = more;
				most = span;
			}
		}
		if (ns <= 0)
			break;
		if (most->pcpu_idle_ns < ns / 2 && ns > share + share / 4)
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
