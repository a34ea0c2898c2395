/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "host-collector/analyze/chain/chain_internal.h"

#define SAME_ACCEPT_NS 1000000ll

void chain_vcpu_init(struct chain_vcpu *v, uint32_t vm, uint32_t vcpu,
		     const struct chain_listeners *listeners)
{
	memset(v, 0, sizeof(*v));
	v->vm = vm;
	v->vcpu = vcpu;
	v->where = CHAIN_NOWHERE;
	v->listeners = listeners;
}

/* ---- the host's side ---- */

/* The vCPU leaves the guest while it has accepted interrupts. Not inlined: most changes are no such
 * exit, and would pay for the stack frame. */
__attribute__((noinline)) static void kick(struct chain_vcpu *v, struct host_ns t)
{
	for (uint32_t left = v->in_use; left; left &= left - 1) {
		struct chain_open *o = &v->open[__builtin_ctz(left)];

		if (o->kicked || o->c.posted || chain_saw(&o->c, CHAIN_HANDLER))
			continue;
		chain_places_count(v, o, t, CHAIN_PLACE_DELIVERY);
		o->kicked = true;
	}
}

void chain_vcpu_moved(struct chain_vcpu *v, struct host_ns t, enum chain_where where)
{
	if (v->where == CHAIN_IN_GUEST && where != CHAIN_IN_GUEST && v->n_accepted)
		kick(v, t);
	if (t.ns > v->since.ns) {
		v->moves[v->n_moves++ % CHAIN_MOVES] = (struct chain_move){v->since, v->where};
		v->clock_ns[v->where] += t.ns - v->since.ns;
		v->since = t;
	}
	v->where = where;
	if (where == CHAIN_SLEEPING)
		v->woken_known = false;
}

void chain_vcpu_woken(struct chain_vcpu *v, struct host_ns t)
{
	chain_vcpu_moved(v, t, CHAIN_WAITING);
	v->woken_known = true;
	v->woken_spent = false;
	v->woken = t;
	chain_clock_read(v, t, v->woken_clock_ns);
	for (uint32_t left = v->n_accepted ? v->in_use : 0; left; left &= left - 1) {
		struct chain_open *o = &v->open[__builtin_ctz(left)];

		if (chain_slot(v, v->accepted[o->c.vector]) != o || chain_saw(&o->c, CHAIN_WAKEUP))
			continue;
		chain_point_set(o, CHAIN_WAKEUP, t);
		/* If it got a pCPU before it slept, in an exit, this wake-up was not the reason. */
		o->c.observed &= ~(1u << CHAIN_SCHED_IN);
		v->woken_spent = true;
	}
}

void chain_vcpu_scheduled(struct chain_vcpu *v, struct host_ns t, uint16_t pcpu)
{
	chain_vcpu_moved(v, t, CHAIN_IN_EXIT);
	v->pcpu = pcpu;
	v->scheduled = t;
	for (uint32_t left = v->n_accepted ? v->in_use : 0; left; left &= left - 1) {
		struct chain_open *o = &v->open[__builtin_ctz(left)];

		if (chain_slot(v, v->accepted[o->c.vector]) == o &&
		    !chain_saw(&o->c, CHAIN_SCHED_IN))
			chain_point_set(o, CHAIN_SCHED_IN, t);
	}
}

/* If nothing else woke the sleeping vCPU, the expiry of this timer did. */
static void timer_begin(struct chain_vcpu *v, struct chain_open *o)
{
	if (!v->woken_known || v->woken_spent)
		return;
	v->woken_spent = true;
	chain_point_set(o, CHAIN_WAKEUP, v->woken);
	if (v->scheduled.ns >= v->woken.ns)
		chain_point_set(o, CHAIN_SCHED_IN, v->scheduled);
	o->c.begin = v->woken;
	memcpy(o->counted_ns, v->woken_clock_ns, sizeof(o->counted_ns));
}

/* Takes the second tracepoint of an accept. Returns false if it belongs to another accept. */
static bool posted_take(struct chain_vcpu *v, struct host_ns t, const struct chain_accept *a)
{
	struct chain_open *o = chain_slot(v, v->accepted[a->vector]);

	if (!o)
		o = chain_slot(v, v->served[a->vector]);
	if (!a->posted || v->plain.vector != a->vector || v->plain.raiser != a->raiser ||
	    t.ns - v->plain.t.ns > SAME_ACCEPT_NS)
		return false;
	/* `o` may have been marked as incomplete meanwhile */
	if (o && o->c.at[CHAIN_ACCEPT].ns == v->plain.t.ns)
		o->c.posted = true;
	v->plain.raiser = -1; /* a second one would belong to an accept that is missing */
	return true;
}

/* If the event of the source may be lost, the vector may show which source it was. */
static enum chain_source source_of(struct chain_vcpu *v, const struct chain_accept *a)
{
	uint64_t *timers = &v->timers[a->vector / 64], bit = 1ull << a->vector % 64;

	if (a->source_known || !a->own || a->level)
		return a->source;
	if (a->source == CHAIN_SOURCE_TIMER)
		*timers |= bit;
	return *timers & bit ? CHAIN_SOURCE_TIMER : a->source;
}

/* Returns true if this accept may belong to the interrupt whose handler ran last. If the guest
 * takes interrupts without injections, nothing else shows to which it belongs. */
static bool may_be_served(struct chain_vcpu *v, struct host_ns t, const struct chain_accept *a)
{
	const struct chain_open *served = chain_slot(v, v->served[a->vector]);

	return served && !v->injects && chain_saw(&served->c, CHAIN_HANDLER) &&
	       t.ns - served->c.at[CHAIN_HANDLER].ns <= (int64_t)served->c.guest_err_ns + a->err_ns;
}

static void accept_note(struct chain_vcpu *v, struct chain_open *o, struct host_ns t,
			const struct chain_accept *a)
{
	chain_point_set(o, CHAIN_ACCEPT, t);
	o->c.level = a->level;
	o->c.posted = a->posted;
	o->c.certain = a->certain || chain_raiser_known(v, a->raiser, a->vector);
	o->c.source = source_of(v, a);
	o->c.gsi = a->gsi;
	o->c.raiser = a->raiser;
	if (a->source_known) {
		chain_point_set(o, CHAIN_SOURCE, a->source_at);
		o->c.begin = a->source_at;
	}
}

/* Takes an accept on another CPU that, because of the clocks' error, seems to come after the
 * injection that it caused. */
static bool accepted_before(struct chain_vcpu *v, struct host_ns t, const struct chain_accept *a)
{
	struct chain_open *o = chain_slot(v, v->served[a->vector]);

	if (!o || a->own || a->posted || chain_saw(&o->c, CHAIN_ACCEPT) ||
	    !chain_saw(&o->c, CHAIN_INJECT) ||
	    t.ns - o->c.at[CHAIN_INJECT].ns > (int64_t)o->c.host_err_ns + a->err_ns)
		return false;
	accept_note(v, o, t, a);
	if (chain_saw(&o->c, CHAIN_HANDLER))
		chain_places_settle(&o->c);
	return true;
}

void chain_vcpu_accept(struct chain_vcpu *v, struct host_ns t, const struct chain_accept *a)
{
	struct chain_open *o = chain_slot(v, v->accepted[a->vector]);
	bool ambiguous = !o && may_be_served(v, t, a);

	if (posted_take(v, t, a))
		return;
	if (!a->posted)
		v->plain = (struct chain_plain){t, a->raiser, a->vector};
	if (o && (chain_may_be_over(v, o) || chain_is_over(v, o, t))) {
		chain_open_close(v, o, true);
		o = NULL;
	}
	if (o) {
		o->c.coalesced += !a->posted;
		return;
	}
	if (accepted_before(v, t, a))
		return;
	o = chain_open_new(v, t, a->vector, a->err_ns);
	o->ambiguous = ambiguous;
	accept_note(v, o, t, a);
	if (a->source_known)
		chain_clock_read(v, a->source_at, o->counted_ns);
	else if (o->c.source == CHAIN_SOURCE_TIMER)
		timer_begin(v, o);
	v->accepted[a->vector] = chain_slot_index(v, o);
	v->n_accepted++;
	chain_alone_join(v, o);
}

/* Returns true if this injection caused the handler of `served`, which because of the clocks' error
 * seems to have run before. */
static bool injected_before(const struct chain_open *served, struct chain_when w)
{
	return served && chain_saw(&served->c, CHAIN_HANDLER) &&
	       !chain_saw(&served->c, CHAIN_INJECT) &&
	       w.t.ns - served->c.at[CHAIN_HANDLER].ns <=
		       (int64_t)w.err_ns + served->c.guest_err_ns;
}

void chain_vcpu_inject(struct chain_vcpu *v, struct chain_when w, uint8_t vector, bool again)
{
	struct chain_open *o = chain_slot(v, v->accepted[vector]);
	struct chain_open *served = chain_slot(v, v->served[vector]);

	if (served && !again)
		chain_deferred_decide(v, served, w.t);
	v->injects = true;
	if (o && chain_is_over(v, o, w.t)) {
		chain_open_close(v, o, true);
		o = NULL;
	}
	if (o && injected_before(served, w) && !served->c.posted && !served->inject_missing &&
	    !v->takes_uninjected) {
		/* it was accepted before the handler, too */
		served->c.coalesced += 1 + o->c.coalesced;
		chain_accepted_clear(v, vector);
		chain_place_free(v, o);
		o = NULL;
	}
	if (!o && injected_before(served, w)) {
		chain_point_set(served, CHAIN_INJECT, w.t);
		chain_delivery_learn(v, served);
		v->entering = served;
		return;
	}
	if (again)
		/* a VM-exit came between the injection and the delivery; KVM injects again */
		return;
	if (served)
		chain_open_close(v, served, false);
	if (!o)
		o = chain_open_new(v, w.t, vector, w.err_ns);
	chain_accepted_clear(v, vector);
	v->served[vector] = chain_slot_index(v, o);
	chain_places_count(v, o, w.t, CHAIN_PLACE_INTERRUPTS_OFF);
	chain_point_set(o, CHAIN_INJECT, w.t);
	v->entering = o;
	chain_alone_join(v, o);
}

void chain_vcpu_entry(struct chain_vcpu *v, struct host_ns t)
{
	chain_vcpu_moved(v, t, CHAIN_IN_GUEST);
	v->woken_known = false;
	if (v->entering)
		chain_point_set(v->entering, CHAIN_ENTRY, t);
	v->entering = NULL;
}

void chain_vcpu_eoi(struct chain_vcpu *v, struct host_ns t, int vector)
{
	struct chain_open *o = v->newest;

	if (vector >= 0 && vector < CHAIN_VECTORS) {
		o = chain_slot(v, v->served[vector]);
		if ((!o || chain_saw(&o->c, CHAIN_EOI)) && v->accepted[vector] && !v->injects) {
			/* If the guest takes interrupts without KVM (APICv, AVIC), KVM reports
			 * it with this event. */
			o = chain_slot(v, v->accepted[vector]);
			chain_accepted_clear(v, (uint8_t)vector);
			v->served[vector] = chain_slot_index(v, o);
			chain_places_count(v, o, t, CHAIN_PLACE_INTERRUPTS_OFF);
			chain_point_set(o, CHAIN_INJECT, t);
			return;
		}
	}
	if (o && !chain_saw(&o->c, CHAIN_EOI))
		chain_point_set(o, CHAIN_EOI, t);
}

void chain_vcpu_host_gap(struct chain_vcpu *v, struct host_ns from, uint16_t cpu)
{
	bool elsewhere =
		(v->where == CHAIN_IN_GUEST || v->where == CHAIN_IN_EXIT) && v->pcpu != cpu;

	if (elsewhere)
		return;
	chain_vcpu_moved(v, from, CHAIN_NOWHERE);
	v->entering = NULL;
	v->woken_known = false;
	for (size_t i = 0; i < CHAIN_OPEN_MAX; i++)
		v->open[i].inject_missing |= !chain_is_settled(v, &v->open[i]);
}
