/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdlib.h>

#include "host-collector/analyze/chain/chain_internal.h"

#define DELIVERY_NS 200000ll
#define UNUSUAL_NS  50000ll
#define SHARED_NS   30000ll

enum { DELIVERED_ENOUGH = 8 };

/* ---- irq numbers ---- */

static struct chain_irq *irq_find(struct chain_vcpu *v, uint32_t irq)
{
	for (size_t i = 0; i < CHAIN_IRQS; i++) {
		if (v->irqs[i].used && v->irqs[i].irq == irq)
			return &v->irqs[i];
	}
	return NULL;
}

static bool vector_is_another_irqs(const struct chain_vcpu *v, uint8_t vector, uint32_t irq)
{
	for (size_t i = 0; i < CHAIN_IRQS; i++) {
		if (v->irqs[i].used && v->irqs[i].vector == vector && v->irqs[i].irq != irq)
			return true;
	}
	return false;
}

/* Takes note that this irq came by this vector. A pair that contradicts what is known replaces it
 * only after it was seen several times. */
static void irq_learn(struct chain_vcpu *v, uint32_t irq, uint8_t vector)
{
	struct chain_irq *known = irq_find(v, irq), *least = &v->irqs[0];

	if (known && known->vector == vector) {
		known->trust = (uint8_t)(known->trust < 4 ? known->trust + 1 : 4);
		return;
	}
	if (known && known->trust > 1) {
		known->trust--;
		return;
	}
	for (size_t i = 0; i < CHAIN_IRQS && !known; i++) {
		if (!v->irqs[i].used || v->irqs[i].trust < least->trust)
			least = &v->irqs[i];
		if (!least->used)
			break;
	}
	if (!known)
		known = least;
	*known = (struct chain_irq){.used = true, .irq = irq, .vector = vector, .trust = 1};
}

/* ---- the guest's handler ---- */

/* Returns true if the time since its injection is longer than a running guest needs to begin the
 * handler. */
static bool is_overdue(const struct chain_vcpu *v, const struct chain_open *o, struct chain_when w)
{
	int64_t clock_ns[CHAIN_WHERE_COUNT];

	if (!chain_saw(&o->c, CHAIN_INJECT))
		return false;
	chain_clock_read(v, w.t, clock_ns);
	return clock_ns[CHAIN_IN_GUEST] - o->counted_ns[CHAIN_IN_GUEST] >
	       DELIVERY_NS + (int64_t)w.err_ns;
}

/* Returns the difference between the usual delay from an injection to its handler and `ns`. The
 * disagreement of the clocks is part of both. 0 while too few delays were seen to know what is
 * usual. */
static int64_t unusual_ns(const struct chain_vcpu *v, int64_t ns)
{
	return v->n_delivered < DELIVERED_ENOUGH ? 0 : llabs(ns - v->delivery_ns);
}

static bool is_unusual(const struct chain_vcpu *v, const struct chain_open *o, struct chain_when w)
{
	int64_t ns = w.t.ns - o->c.at[CHAIN_INJECT].ns;

	return chain_saw(&o->c, CHAIN_INJECT) && ns > v->delivery_ns &&
	       unusual_ns(v, ns) > UNUSUAL_NS + 4 * v->delivery_varies_ns;
}

/* Follows the mean and the variation, as TCP does for the round trip time (RFC 6298). */
void chain_delivery_learn(struct chain_vcpu *v, const struct chain_open *o)
{
	int64_t ns = o->c.at[CHAIN_HANDLER].ns - o->c.at[CHAIN_INJECT].ns;

	if (!v->n_delivered++) {
		v->delivery_ns = ns;
		return;
	}
	v->delivery_varies_ns += (llabs(ns - v->delivery_ns) - v->delivery_varies_ns) / 4;
	v->delivery_ns += (ns - v->delivery_ns) / 8;
}

/* Returns true if the chain was injected and its handler can still come, which is no longer
 * possible after the guest has gone on. An EOI proves nothing, because KVM may report the EOI of
 * the interrupt before this one late. */
static bool served_waits(const struct chain_vcpu *v, const struct chain_open *o)
{
	return o && !o->torn && !chain_saw(&o->c, CHAIN_HANDLER) &&
	       v->progress_since.ns <= o->c.at[CHAIN_INJECT].ns + o->c.host_err_ns;
}

static struct chain_open *candidate_of_vector(struct chain_vcpu *v, uint8_t vector)
{
	struct chain_open *served = chain_slot(v, v->served[vector]);
	struct chain_open *accepted = chain_slot(v, v->accepted[vector]);

	if (served_waits(v, served))
		return served;
	return accepted && !accepted->torn ? accepted : NULL;
}

static bool is_device(uint8_t vector)
{
	return vector >= 0x20 && vector < CHAIN_SYSTEM_VECTOR;
}

/* Returns the chain that this irq's handler serves. If the irq's vector is known, it is the chain
 * of that vector; else the one that was injected last; else the only one that waits. */
static struct chain_open *candidate_of_irq(struct chain_vcpu *v, uint32_t irq)
{
	const struct chain_irq *known = irq_find(v, irq);
	struct chain_open *found = known ? candidate_of_vector(v, known->vector) : NULL;
	struct chain_open *sole = NULL;
	bool several = false;

	if (found)
		return found;
	for (uint32_t left = v->in_use; left; left &= left - 1) {
		struct chain_open *o = &v->open[__builtin_ctz(left)];

		if (o->torn || !is_device(o->c.vector) || chain_saw(&o->c, CHAIN_HANDLER) ||
		    vector_is_another_irqs(v, o->c.vector, irq) ||
		    (chain_saw(&o->c, CHAIN_INJECT) && !served_waits(v, o)))
			continue;
		if (chain_saw(&o->c, CHAIN_INJECT) &&
		    (!found || o->c.at[CHAIN_INJECT].ns > found->c.at[CHAIN_INJECT].ns))
			found = o;
		several |= sole != NULL;
		sole = o;
	}
	return found ? found : several ? NULL : sole;
}

/* Returns true if the chain was not yet accepted when the previous handler ended. Then the guest
 * had interrupts on in between, and every interrupt that was pending at that time was taken before
 * this one. */
static bool shows_progress(const struct chain_vcpu *v, const struct chain_open *o,
			   struct chain_when w)
{
	return v->exit_before.ns && w.err_ns < CHAIN_ORDER_NS && chain_saw(&o->c, CHAIN_ACCEPT) &&
	       o->c.at[CHAIN_ACCEPT].ns - v->exit_before.ns > (int64_t)w.err_ns + o->c.host_err_ns;
}

/* Passes a listener what it asked for about a chain that is handled. */
static void handled_report(struct chain_vcpu *v, struct chain_open *o, struct chain_when w,
			   size_t listener)
{
	const int64_t limit_ns = v->listeners->of[listener].limit_ns;
	const struct chain_sink *sink = chain_listener_sink(v, o, listener);

	if (o->c.source == CHAIN_SOURCE_TIMER && w.t.ns - v->tick.ns >= limit_ns)
		sink->tick(sink->context, &o->c);
	if (o->c.lost)
		sink->found(sink->context, &o->c);
	else if (w.t.ns - o->c.begin.ns - w.err_ns >= limit_ns)
		sink->late(sink->context, &o->c);
}

/* Joins the handler to the chain. clock_ns: the vCPU's clocks at that time. */
static void handle(struct chain_vcpu *v, struct chain_open *o, struct chain_when w,
		   const int64_t *clock_ns, bool vector, uint32_t number)
{
	struct chain_open *served = chain_slot(v, v->served[o->c.vector]);
	bool injected = chain_saw(&o->c, CHAIN_INJECT) || (v->injects && !o->c.posted);

	if (served && served != o)
		chain_open_close(v, served, false);
	if (chain_slot(v, v->accepted[o->c.vector]) == o)
		chain_accepted_clear(v, o->c.vector);
	v->served[o->c.vector] = chain_slot_index(v, o);
	if (!vector) {
		irq_learn(v, number, o->c.vector);
		o->c.irq = (int32_t)number;
	}
	v->handled[o->c.vector / 64] |= 1ull << o->c.vector % 64;
	chain_point_set(o, CHAIN_HANDLER, w.t);
	o->c.guest_err_ns = w.err_ns;
	chain_places_add(o, clock_ns, injected ? CHAIN_PLACE_DELIVERY : CHAIN_PLACE_INTERRUPTS_OFF);
	chain_places_settle(&o->c);
	v->progress += shows_progress(v, o, w);
	if (chain_saw(&o->c, CHAIN_INJECT))
		chain_delivery_learn(v, o);
	v->handling = v->newest = o;
	for (size_t i = 0; i < v->listeners->n; i++)
		handled_report(v, o, w, i);
	if (o->c.source == CHAIN_SOURCE_TIMER)
		v->tick = w.t;
}

static void handled_exit(struct chain_vcpu *v, struct chain_open *o, struct host_ns t)
{
	chain_point_set(o, CHAIN_HANDLER_EXIT, t);
	v->exit_seen = v->guest_seen;
	v->handling = NULL;
	/* The next softirq event may belong to a handler whose event is missing. */
	v->leaving = v->handlers_counted ? NULL : o;
}

/* Returns true if the chain may have been handled before, by a handler whose events are missing,
 * and the guest has gone on since. */
static bool is_doubtful(struct chain_vcpu *v, const struct chain_open *o)
{
	return chain_slot(v, v->accepted[o->c.vector]) == o && chain_may_be_over(v, o) &&
	       v->progress_since.ns > o->c.at[CHAIN_ACCEPT].ns + o->c.host_err_ns;
}

static struct chain_alone *alone_add(struct chain_vcpu *v, struct chain_when w, bool vector,
				     uint32_t number)
{
	struct chain_alone *a = &v->alone[v->n_alone++ % CHAIN_ALONE];

	v->n_deferred -= a->used && a->deferred;
	*a = (struct chain_alone){
		.used = true, .vector = vector, .number = number, .t = w.t, .err_ns = w.err_ns};
	chain_clock_read(v, w.t, a->clock_ns);
	v->handlers_alone++;
	return a;
}

static void alone_take(struct chain_vcpu *v, struct chain_alone *a)
{
	a->used = false;
	v->n_deferred -= a->deferred != NULL;
}

/* No other interrupt came that this handler fits better: it belongs to the overdue one. */
static void deferred_join(struct chain_vcpu *v, struct chain_alone *a)
{
	struct chain_open *o = a->deferred, *handling = v->handling;
	uint64_t exit_seen = v->exit_seen;

	alone_take(v, a);
	if (!(v->in_use >> (o - v->open) & 1) || o->torn || chain_saw(&o->c, CHAIN_HANDLER) ||
	    !chain_saw(&o->c, CHAIN_INJECT) || o->c.at[CHAIN_INJECT].ns != a->injected.ns)
		return;
	v->handlers_alone--;
	handle(v, o, (struct chain_when){a->t, a->err_ns}, a->clock_ns, a->vector, a->number);
	if (!a->exited)
		return;
	handled_exit(v, o, a->exit);
	v->handling = handling;
	v->leaving = NULL; /* later events belong to another chain */
	v->exit_seen = exit_seen;
}

void chain_deferred_decide(struct chain_vcpu *v, const struct chain_open *served,
			   struct host_ns injected)
{
	for (unsigned i = 0; v->n_deferred && i < CHAIN_ALONE; i++) {
		struct chain_alone *a = &v->alone[i];

		if (a->used && a->deferred && a->deferred == served &&
		    v->n_delivered >= DELIVERED_ENOUGH &&
		    unusual_ns(v, a->t.ns - a->injected.ns) <= unusual_ns(v, a->t.ns - injected.ns))
			deferred_join(v, a);
	}
}

void chain_deferred_check(struct chain_vcpu *v, struct host_ns now)
{
	for (unsigned i = 0; v->n_deferred && i < CHAIN_ALONE; i++) {
		struct chain_alone *a = &v->alone[i];

		if (a->used && a->deferred &&
		    now.ns - a->t.ns > (int64_t)a->err_ns + a->deferred->c.host_err_ns)
			deferred_join(v, a);
	}
}

static void guest_note(struct chain_vcpu *v, struct host_ns t)
{
	if (!v->agent)
		v->guest_first = t;
	v->agent = true;
	v->guest_last = t;
	v->guest_seen++;
	if (v->gap_until.ns == INT64_MAX)
		v->gap_until = t;
}

void chain_vcpu_handler(struct chain_vcpu *v, struct chain_when w, bool vector, uint32_t number)
{
	struct chain_open *o, *last = v->handling;
	struct chain_alone *alone;
	int64_t clock_ns[CHAIN_WHERE_COUNT];
	bool late;

	guest_note(v, w.t);
	v->guest_err_ns = w.err_ns;
	v->leaving = NULL;
	/* Devices that share an irq: Linux calls the handler of each, one right after another. */
	if (!vector && !last && v->guest_seen == v->exit_seen + 1 && v->newest &&
	    v->newest->c.irq == (int32_t)number &&
	    w.t.ns - v->newest->c.at[CHAIN_HANDLER_EXIT].ns < SHARED_NS &&
	    !chain_saw(&v->newest->c, CHAIN_EOI) && !candidate_of_irq(v, number))
		return;
	v->exit_before = v->exit_last;
	v->handling = NULL;
	o = vector ? candidate_of_vector(v, (uint8_t)number) : candidate_of_irq(v, number);
	if (o && w.err_ns >= CHAIN_UNSURE_NS) {
		chain_open_close(v, o, true); /* the time of the handler is unknown */
		return;
	}
	late = o && (is_overdue(v, o, w) || is_unusual(v, o, w));
	if (o && !late && !is_doubtful(v, o)) {
		chain_clock_read(v, w.t, clock_ns);
		handle(v, o, w, clock_ns, vector, number);
		return;
	}
	alone = alone_add(v, w, vector, number);
	if (!late || is_doubtful(v, o))
		return;
	/* The handler more likely belongs to an interrupt that, because of the clocks' error, only
	 * seems to come later. But if the host is a virtual machine itself, it may stand still for
	 * any time. What comes next decides. */
	alone->deferred = o;
	alone->injected = o->c.at[CHAIN_INJECT];
	v->n_deferred++;
}

/* Returns true if no other device's interrupt waits for its handler. */
static bool is_sole(const struct chain_vcpu *v, const struct chain_open *o)
{
	for (uint32_t left = v->in_use; left; left &= left - 1) {
		const struct chain_open *other = &v->open[__builtin_ctz(left)];

		if (other != o && !other->torn && is_device(other->c.vector) &&
		    !chain_saw(&other->c, CHAIN_HANDLER))
			return false;
	}
	return true;
}

/* Returns true if this handler, which was seen before any interrupt that it could serve, may belong
 * to `o`. */
static bool alone_fits(struct chain_vcpu *v, const struct chain_alone *a,
		       const struct chain_open *o)
{
	const struct chain_irq *known = a->vector ? NULL : irq_find(v, a->number);

	if (o->c.begin.ns - a->t.ns > (int64_t)a->err_ns + o->c.host_err_ns ||
	    (a->deferred && !chain_saw(&o->c, CHAIN_INJECT)))
		return false;
	if (a->vector)
		return a->number == o->c.vector;
	if (known)
		return known->vector == o->c.vector;
	return a->t.ns <= o->c.begin.ns && is_device(o->c.vector) &&
	       !vector_is_another_irqs(v, o->c.vector, a->number) && is_sole(v, o);
}

/* Marks the chain as incomplete: its handler was not seen, and ended by `ended`. */
static void tear(struct chain_vcpu *v, struct chain_open *o, struct chain_when ended)
{
	o->torn = true;
	o->torn_until.ns = ended.t.ns + ended.err_ns + o->c.host_err_ns;
	if (chain_saw(&o->c, CHAIN_INJECT) || chain_is_over(v, o, v->since))
		chain_open_close(v, o, true);
}

/* `o` has just begun or been injected. Joins a handler to it that, because of the clocks' error,
 * seems to have run before. */
void chain_alone_join(struct chain_vcpu *v, struct chain_open *o)
{
	struct chain_alone *found = NULL;

	if (o->torn)
		return;
	for (unsigned i = 0; i < CHAIN_ALONE; i++) {
		struct chain_alone *a = &v->alone[i];

		if (a->used && alone_fits(v, a, o) && (!found || a->t.ns < found->t.ns))
			found = a;
	}
	if (!found)
		return;
	alone_take(v, found);
	if (found->torn) {
		tear(v, o, (struct chain_when){found->t, found->err_ns});
		return;
	}
	v->handlers_alone--;
	handle(v, o, (struct chain_when){found->t, found->err_ns}, found->clock_ns, found->vector,
	       found->number);
	if (found->exited)
		handled_exit(v, o, found->exit);
}

void chain_vcpu_handler_exit(struct chain_vcpu *v, struct host_ns t, bool vector, uint32_t number)
{
	struct chain_open *o = v->handling;
	const struct chain_when w = {t, v->guest_err_ns};
	struct chain_alone *a;
	const struct chain_irq *known;

	guest_note(v, t);
	v->exit_last = t;
	if (o && (vector ? o->c.vector == (uint8_t)number : o->c.irq == (int32_t)number)) {
		handled_exit(v, o, t);
		return;
	}
	a = &v->alone[(v->n_alone - 1) % CHAIN_ALONE];
	if (v->n_alone && a->used && a->vector == vector && a->number == number && !a->exited) {
		a->exited = true;
		a->exit = t;
		return;
	}
	/* The handler's entry is missing. So it served the interrupt that waits, or one that,
	 * because of the clocks' error, seems to come only later. */
	known = vector ? NULL : irq_find(v, number);
	if (v->guest_gap == 0 || (!vector && !known))
		return;
	o = candidate_of_vector(v, vector ? (uint8_t)number : known->vector);
	if (o) {
		tear(v, o, w);
	} else {
		alone_add(v, w, vector, number)->torn = true;
	}
}

/* Counts an action that the guest takes only with interrupts on, if its time is known well enough.
 */
static void progress_count(struct chain_vcpu *v, struct chain_when w)
{
	v->guest_err_ns = w.err_ns;
	v->progress += w.err_ns < CHAIN_ORDER_NS;
	v->progress_since.ns = w.t.ns - w.err_ns;
}

void chain_vcpu_softirq(struct chain_vcpu *v, struct chain_when w, uint32_t number)
{
	guest_note(v, w.t);
	progress_count(v, w);
	v->softirq = v->leaving;
	v->leaving = NULL;
	if (!v->softirq)
		return;
	chain_point_set(v->softirq, CHAIN_SOFTIRQ, w.t);
	v->softirq->c.softirq = (int32_t)number;
}

void chain_vcpu_softirq_exit(struct chain_vcpu *v, struct host_ns t, uint32_t number)
{
	guest_note(v, t);
	/* if there was an interrupt during this softirq, later events do not belong to the chain */
	v->leaving = NULL;
	if (v->softirq && v->softirq->c.softirq == (int32_t)number)
		chain_point_set(v->softirq, CHAIN_SOFTIRQ_EXIT, t);
	v->softirq = NULL;
}

void chain_vcpu_switch(struct chain_vcpu *v, struct chain_when w)
{
	guest_note(v, w.t);
	progress_count(v, w);
	v->leaving = v->softirq = v->handling = NULL;
}

void chain_vcpu_guest_gap(struct chain_vcpu *v, struct chain_when w, uint64_t lost,
			  int64_t length_ns)
{
	/* A single lost event cannot be both the entry and the exit of a handler. */
	bool both = lost != 1 || (v->guest_gap && v->guest_seen + 1 - v->guest_gap <= 2);

	v->guest_gap = v->guest_seen + 1;
	v->leaving = v->softirq = NULL;
	if (!both)
		return;
	v->handling = NULL;
	/* Because of the clocks' error, the accept of an interrupt whose handler is missing may
	 * seem to come only later. */
	v->gap_until.ns = lost ? w.t.ns + w.err_ns + length_ns : INT64_MAX;
	for (size_t i = 0; i < CHAIN_OPEN_MAX; i++)
		v->open[i].handler_missing |= !chain_is_settled(v, &v->open[i]);
}
