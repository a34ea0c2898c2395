/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/chain/chain_internal.h"

#define KEEP_NS 1000000000ll /* a chain ends when nothing was added to it for this long */

/* ---- lost, over ---- */

/* Returns true if this interrupt may have been handled by a handler whose events are missing. */
static bool may_be_handled(const struct chain_vcpu *v, const struct chain_open *o)
{
	bool has_handlers = v->handled[o->c.vector / 64] >> o->c.vector % 64 & 1;

	if (o->torn)
		return true;
	if (chain_saw(&o->c, CHAIN_HANDLER) || chain_saw(&o->c, CHAIN_INJECT))
		return false;
	if (v->injects && !o->c.posted)
		return o->inject_missing && o->handler_missing;
	return !v->agent || !has_handlers || o->handler_missing;
}

static void lost_report(struct chain_vcpu *v, struct chain_open *o, size_t listener)
{
	const struct chain_pending *p = &o->pending[listener];
	const struct chain_sink *sink = chain_listener_sink(v, o, listener);

	sink->lost(sink->context, &o->c, p->halted,
		   p->halted ? 0 : (uint32_t)(v->progress - p->progress));
}

static void lost_check(struct chain_vcpu *v, struct chain_open *o, struct host_ns now, bool idle)
{
	int64_t age_ns = now.ns - o->c.at[CHAIN_ACCEPT].ns;

	if (v->where == CHAIN_SLEEPING && !idle)
		o->masked = true;
	for (size_t i = 0; i < v->listeners->n; i++) {
		const int64_t limit_ns = v->listeners->of[i].limit_ns;
		struct chain_pending *p = &o->pending[i];

		if (!p->progress_known && age_ns > limit_ns / 4) {
			p->progress_known = true;
			p->progress = v->progress;
		}
		if (p->lost || !o->c.certain || o->ambiguous || age_ns < limit_ns ||
		    may_be_handled(v, o) || v->progress - p->progress < CHAIN_PROGRESS_ENOUGH)
			continue;
		p->lost = true;
		lost_report(v, o, i);
	}
}

void chain_vcpu_halted(struct chain_vcpu *v, struct host_ns from, struct host_ns to)
{
	for (uint32_t left = v->in_use; left; left &= left - 1) {
		struct chain_open *o = &v->open[__builtin_ctz(left)];
		struct host_ns end = to, begin = from;

		if (!o->c.certain || o->masked || o->ambiguous || !chain_saw(&o->c, CHAIN_ACCEPT) ||
		    may_be_handled(v, o))
			continue;
		if (o->c.at[CHAIN_ACCEPT].ns > begin.ns)
			begin = o->c.at[CHAIN_ACCEPT];
		if (chain_saw(&o->c, CHAIN_INJECT) && o->c.at[CHAIN_INJECT].ns < end.ns)
			end = o->c.at[CHAIN_INJECT];
		if (chain_saw(&o->c, CHAIN_HANDLER) && o->c.at[CHAIN_HANDLER].ns < end.ns)
			end = o->c.at[CHAIN_HANDLER];
		for (size_t k = 0; k < v->listeners->n; k++) {
			if (o->pending[k].lost || end.ns - begin.ns < v->listeners->of[k].limit_ns)
				continue;
			o->pending[k].lost = o->pending[k].halted = true;
			lost_report(v, o, k);
		}
	}
}

void chain_vcpu_sweep(struct chain_vcpu *v, struct host_ns now, bool idle)
{
	struct host_ns oldest = now;

	chain_vcpu_now(v, now);
	/* Most vCPUs have no pending interrupt. Their open chains are rarely in a cache, and need
	 * no look until one of them is too old. */
	if (!v->n_accepted && now.ns <= v->none_old_until.ns)
		return;
	for (uint32_t left = v->in_use; left; left &= left - 1) {
		struct chain_open *o = &v->open[__builtin_ctz(left)];

		if (chain_slot(v, v->accepted[o->c.vector]) == o && !o->torn) {
			lost_check(v, o, now, idle);
		} else if (now.ns - o->last.ns > KEEP_NS) {
			chain_open_close(v, o, false);
			continue;
		}
		if (o->last.ns < oldest.ns)
			oldest = o->last;
	}
	v->none_old_until.ns = oldest.ns + KEEP_NS;
}

/* A chain that is still pending is neither handled nor closed. If it is lost, it is reported up to
 * now. */
static void pending_finish(struct chain_vcpu *v, struct chain_open *o, struct host_ns now)
{
	bool counted = false;

	for (size_t i = 0; i < v->listeners->n; i++) {
		const struct chain_sink *sink = chain_listener_sink(v, o, i);

		if (!o->c.lost)
			continue;
		if (!counted)
			chain_places_count(v, o, now, CHAIN_PLACE_DELIVERY);
		counted = true;
		sink->lost(sink->context, &o->c, o->pending[i].halted,
			   (uint32_t)(v->progress - o->pending[i].progress));
	}
}

void chain_vcpu_finish(struct chain_vcpu *v, struct host_ns now)
{
	chain_vcpu_now(v, (struct host_ns){INT64_MAX});
	for (uint32_t left = v->in_use; left; left &= left - 1) {
		struct chain_open *o = &v->open[__builtin_ctz(left)];

		if (o->torn || chain_slot(v, v->accepted[o->c.vector]) != o) {
			chain_open_close(v, o, false);
		} else {
			pending_finish(v, o, now);
		}
	}
}
