/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decides which waits for a pCPU were throttling, from the increase of the cgroup's counter. The
 * counter advances when a throttling ends, so it is about the waits that ended between two
 * readings; waits that go on get what those leave.
 */
#include <string.h>

#include "host-collector/model/vcpu_internal.h"

/* The counter and the wait begin and end at slightly different times: a wait may be longer by a
 * quarter. */
static bool fits(int64_t ns, int64_t spare)
{
	return ns <= spare + spare / 4;
}

/* Returns how much of a wait that is not charged yet lies before `until`, if a part of it is
 * after `from`. */
static int64_t quota_chargeable(const struct vcpu_span *span, const struct quota_reading *r)
{
	int64_t end = span->end.ns < r->until.ns ? span->end.ns : r->until.ns;

	if (span->state != VCPU_RUNNABLE || span->end.ns <= r->from.ns)
		return 0;
	return end - span->begin.ns - span->throttled_ns;
}

/* The part of this in which its pCPU was idle and which is not charged yet. */
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

/* Keeps the longest, sorted. */
static void busy_add(struct quota_waits *all, int64_t ns)
{
	size_t at = all->n_busy;

	while (at > 0 && all->busy_ns[at - 1] < ns)
		at--;
	if (at == QUOTA_BUSY_MAX)
		return;
	if (all->n_busy < QUOTA_BUSY_MAX)
		all->n_busy++;
	memmove(&all->busy_ns[at + 1], &all->busy_ns[at],
		(all->n_busy - 1 - at) * sizeof(all->busy_ns[0]));
	all->busy_ns[at] = ns;
}

void vcpu_quota_waits(const struct vcpu *v, const struct quota_reading *r,
		      const struct vcpu_sink *sink, struct quota_waits *all)
{
	if (quota_open_wait(v, r)) {
		struct vcpu_span now;
		int64_t ns, idle;

		vcpu_span_closed(v, r->until, sink, &now);
		ns = quota_chargeable(&now, r);
		idle = quota_idle(&now, ns);
		if (ns > 0) {
			all->open_idle_ns += idle;
			all->n_open += ns - idle >= QUOTA_WAIT_NS;
		}
	}
	for (uint32_t i = 0; i < v->held_count; i++) {
		const struct vcpu_span *span = &vcpu_held_at(v, i)->span;
		int64_t ns = quota_chargeable(span, r), idle = quota_idle(span, ns);

		if (ns <= 0)
			continue;
		all->idle_ns += idle;
		if (ns - idle >= QUOTA_WAIT_NS)
			busy_add(all, ns - idle);
	}
}

/*
 * A wait during which others ran on the pCPU may have been throttling, or a loss against them. The
 * increase that idle pCPUs do not explain is as long as the throttlings were: the longest waits
 * that fit into it one after the other. If the next one is about as long as the last of them, then
 * the counter does not say which of the two it was, and neither is charged.
 */
static int64_t busy_choose(struct quota_waits *all, int64_t spare)
{
	size_t first = 0, end;
	int64_t sum = 0;

	while (first < all->n_busy && !fits(all->busy_ns[first], spare))
		first++;
	for (end = first; end < all->n_busy && fits(sum + all->busy_ns[end], spare); end++)
		sum += all->busy_ns[end];
	while (end > first && end < all->n_busy && fits(all->busy_ns[end - 1], all->busy_ns[end]))
		sum -= all->busy_ns[--end];
	if (end == first)
		return 0;
	all->most_ns = all->busy_ns[first];
	all->least_ns = all->busy_ns[end - 1];
	return sum;
}

void vcpu_quota_choose(struct quota_waits *all, int64_t throttled_ns, uint32_t known, uint32_t n)
{
	int64_t spare = throttled_ns - all->idle_ns;

	/* It is unknown how long the other vCPUs waited. */
	if (n > known)
		spare = spare / n * known;
	if (spare <= 0)
		return;
	spare -= busy_choose(all, spare);
	all->open_ns = spare > 0 ? spare : 0;
	all->open_share_ns = all->open_ns - all->open_idle_ns;
	if (all->open_share_ns > 0 && all->n_open)
		all->open_share_ns /= all->n_open;
}

/* Returns the time that a finished wait is charged with. */
static int64_t quota_due(const struct vcpu_span *span, const struct quota_reading *r,
			 const struct quota_waits *all)
{
	int64_t ns = quota_chargeable(span, r), idle, busy;

	if (ns <= 0)
		return 0;
	idle = quota_idle(span, ns);
	busy = ns - idle;
	return busy < QUOTA_WAIT_NS || (busy >= all->least_ns && busy <= all->most_ns) ? ns : idle;
}

static int64_t charge_ended(struct vcpu *v, const struct quota_reading *r,
			    const struct quota_waits *all, int64_t left)
{
	while (left > 0) {
		struct vcpu_span *most = NULL;
		int64_t ns = 0;

		for (uint32_t i = 0; i < v->held_count; i++) {
			struct vcpu_span *span = &vcpu_held_at(v, i)->span;
			int64_t more = quota_due(span, r, all);

			if (more > ns) {
				ns = more;
				most = span;
			}
		}
		if (!most)
			break;
		ns = ns < left ? ns : left;
		left -= ns;
		vcpu_quota_charge(most, ns, r->cgroup);
	}
	return left;
}

static void charge_open(struct vcpu *v, const struct quota_reading *r,
			const struct quota_waits *all, const struct vcpu_sink *sink, int64_t left)
{
	struct vcpu_span now;
	int64_t ns, idle;

	vcpu_span_closed(v, r->until, sink, &now);
	ns = quota_chargeable(&now, r);
	idle = quota_idle(&now, ns);
	if (ns <= 0)
		return;
	if (!fits(ns - idle, all->open_share_ns))
		ns = idle;
	ns = ns < left ? ns : left;
	ns = ns < all->open_ns ? ns : all->open_ns;
	if (ns <= 0)
		return;
	if (ns > v->throttled_ns)
		v->throttled_by = r->cgroup;
	v->throttled_ns += ns;
}

void vcpu_quota(struct vcpu *v, const struct quota_reading *r, const struct quota_waits *all,
		const struct vcpu_sink *sink)
{
	int64_t left;

	v->quota_until = r->until;
	left = charge_ended(v, r, all, r->throttled_ns);
	if (left > 0 && quota_open_wait(v, r))
		charge_open(v, r, all, sink, left);
	vcpu_release(v, r->until, false, sink);
}
