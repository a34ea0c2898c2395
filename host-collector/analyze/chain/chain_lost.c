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

static void lost_check(struct chain_vcpu *v, struct chain_open *o, struct host_ns now, bool idle)
{
	int64_t age_ns = now.ns - o->c.at[CHAIN_ACCEPT].ns;

	if (!o->progress_known && age_ns > v->limit_ns / 4) {
		o->progress_known = true;
		o->progress = v->progress;
	}
	if (v->where == CHAIN_SLEEPING && !idle)
		o->masked = true;
	if (o->c.lost || !o->c.certain || o->ambiguous || age_ns < v->limit_ns ||
	    may_be_handled(v, o) || v->progress - o->progress < CHAIN_PROGRESS_ENOUGH)
		return;
	o->c.lost = true;
	v->sink.lost(v->sink.context, &o->c, false, (uint32_t)(v->progress - o->progress));
}

void chain_vcpu_halted(struct chain_vcpu *v, struct host_ns from, struct host_ns to)
{
	for (size_t i = 0; i < CHAIN_OPEN_MAX; i++) {
		struct chain_open *o = &v->open[i];
		struct host_ns end = to, begin = from;

		if (!o->used || o->c.lost || !o->c.certain || o->masked || o->ambiguous ||
		    !chain_saw(&o->c, CHAIN_ACCEPT) || may_be_handled(v, o))
			continue;
		if (o->c.at[CHAIN_ACCEPT].ns > begin.ns)
			begin = o->c.at[CHAIN_ACCEPT];
		if (chain_saw(&o->c, CHAIN_INJECT) && o->c.at[CHAIN_INJECT].ns < end.ns)
			end = o->c.at[CHAIN_INJECT];
		if (chain_saw(&o->c, CHAIN_HANDLER) && o->c.at[CHAIN_HANDLER].ns < end.ns)
			end = o->c.at[CHAIN_HANDLER];
		if (end.ns - begin.ns < v->limit_ns)
			continue;
		o->c.lost = o->halted = true;
		v->sink.lost(v->sink.context, &o->c, true, 0);
	}
}

void chain_vcpu_sweep(struct chain_vcpu *v, struct host_ns now, bool idle)
{
	chain_vcpu_now(v, now);
	for (size_t i = 0; i < CHAIN_OPEN_MAX; i++) {
		struct chain_open *o = &v->open[i];

		if (!o->used)
			continue;
		if (chain_slot(v, v->accepted[o->c.vector]) == o && !o->torn)
			lost_check(v, o, now, idle);
		else if (now.ns - o->last.ns > KEEP_NS)
			chain_open_close(v, o, false);
	}
}

void chain_vcpu_finish(struct chain_vcpu *v, struct host_ns now)
{
	chain_vcpu_now(v, (struct host_ns){INT64_MAX});
	for (size_t i = 0; i < CHAIN_OPEN_MAX; i++) {
		struct chain_open *o = &v->open[i];

		if (!o->used)
			continue;
		/* A chain that is still pending is neither handled nor lost. */
		if (o->torn || chain_slot(v, v->accepted[o->c.vector]) != o) {
			chain_open_close(v, o, false);
		} else if (o->c.lost) {
			chain_places_count(v, o, now, CHAIN_PLACE_DELIVERY);
			v->sink.lost(v->sink.context, &o->c, o->halted,
				     (uint32_t)(v->progress - o->progress));
		}
	}
}
