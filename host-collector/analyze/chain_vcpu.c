/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/chain_vcpu.h"

#include <string.h>

enum { PROGRESS_ENOUGH = 2 };

#define SAME_ACCEPT_NS 1000000ll
#define DELIVERY_NS    10000000ll
#define SHARED_NS      100000ll
#define KEEP_NS        1000000000ll /* a chain is over when nothing has been added for so long */

void chain_vcpu_init(struct chain_vcpu *v, uint32_t vm, uint32_t vcpu, int64_t limit_ns,
		     const struct chain_sink *sink)
{
	memset(v, 0, sizeof(*v));
	v->vm = vm;
	v->vcpu = vcpu;
	v->where = CHAIN_NOWHERE;
	v->limit_ns = limit_ns;
	v->sink = *sink;
}

/* ---- where the vCPU's time goes ---- */

static void clock_read(const struct chain_vcpu *v, struct host_ns t, int64_t *clock_ns)
{
	memcpy(clock_ns, v->clock_ns, sizeof(v->clock_ns));
	if (t.ns > v->since.ns)
		clock_ns[v->where] += t.ns - v->since.ns;
}

/* What has passed since the last count; time in the guest goes to `guest`. */
static void places_count(const struct chain_vcpu *v, struct chain_open *o, struct host_ns t,
			 enum chain_place guest)
{
	const enum chain_place places[CHAIN_WHERE_COUNT] = {
		[CHAIN_IN_GUEST] = guest,
		[CHAIN_IN_EXIT] = CHAIN_PLACE_EXIT_HANDLING,
		[CHAIN_WAITING] = CHAIN_PLACE_NOT_SCHEDULED,
		[CHAIN_SLEEPING] = CHAIN_PLACE_ASLEEP,
		[CHAIN_NOWHERE] = CHAIN_PLACE_UNKNOWN,
	};
	int64_t now_ns[CHAIN_WHERE_COUNT];

	clock_read(v, t, now_ns);
	for (int w = 0; w < CHAIN_WHERE_COUNT; w++) {
		if (now_ns[w] > o->counted_ns[w])
			o->c.place_ns[places[w]] += now_ns[w] - o->counted_ns[w];
		o->counted_ns[w] = now_ns[w];
	}
}

/* The handler's stamp is the guest's: what the clocks disagree about, delivery bears. */
static void places_settle(struct chain *c)
{
	int64_t rest = c->at[CHAIN_HANDLER].ns - c->begin.ns;
	enum chain_place largest = CHAIN_PLACE_DELIVERY;

	if (rest < 0)
		rest = 0;
	for (int p = 0; p < CHAIN_PLACE_COUNT; p++)
		rest -= c->place_ns[p];
	c->place_ns[CHAIN_PLACE_DELIVERY] += rest;
	while (c->place_ns[CHAIN_PLACE_DELIVERY] < 0) {
		int64_t take = -c->place_ns[CHAIN_PLACE_DELIVERY];

		for (int p = 0; p < CHAIN_PLACE_COUNT; p++) {
			if (c->place_ns[p] > c->place_ns[largest])
				largest = (enum chain_place)p;
		}
		if (largest == CHAIN_PLACE_DELIVERY)
			break;
		if (take > c->place_ns[largest])
			take = c->place_ns[largest];
		c->place_ns[largest] -= take;
		c->place_ns[CHAIN_PLACE_DELIVERY] += take;
	}
}

/* ---- open chains ---- */

static void point_set(struct chain_open *o, enum chain_point p, struct host_ns t)
{
	o->c.observed |= 1u << p;
	o->c.at[p] = t;
	if (t.ns > o->last.ns)
		o->last = t;
}

static struct chain_open *slot_of(struct chain_vcpu *v, uint8_t index)
{
	return index ? &v->open[index - 1] : NULL;
}

static uint8_t index_of(const struct chain_vcpu *v, const struct chain_open *o)
{
	return (uint8_t)(o - v->open + 1);
}

static void accepted_clear(struct chain_vcpu *v, uint8_t vector)
{
	if (v->accepted[vector])
		v->n_accepted--;
	v->accepted[vector] = 0;
}

/* Its handler would be here if there had been one: the guest's account covers its time. */
static bool is_covered(const struct chain_vcpu *v, const struct chain *c)
{
	enum chain_point p = chain_saw(c, CHAIN_INJECT) ? CHAIN_INJECT : CHAIN_ACCEPT;

	return v->agent && v->handled[c->vector / 64] >> c->vector % 64 & 1 &&
	       v->guest_first.ns <= c->begin.ns && v->guest_last.ns > c->at[p].ns;
}

static void open_close(struct chain_vcpu *v, struct chain_open *o, bool torn)
{
	struct chain_open **roles[] = {&v->entering, &v->handling, &v->leaving, &v->softirq,
				       &v->newest};
	bool handled = chain_saw(&o->c, CHAIN_HANDLER);

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		if (*roles[i] == o)
			*roles[i] = NULL;
	}
	if (slot_of(v, v->accepted[o->c.vector]) == o)
		accepted_clear(v, o->c.vector);
	if (slot_of(v, v->served[o->c.vector]) == o)
		v->served[o->c.vector] = 0;
	torn |= !handled && is_covered(v, &o->c);
	v->sink.closed(v->sink.context, &o->c,
		       torn      ? CHAIN_END_TORN
		       : handled ? CHAIN_END_HANDLED
				 : CHAIN_END_HALF);
	o->used = false;
}

static struct chain_open *open_new(struct chain_vcpu *v, struct host_ns t, uint8_t vector,
				   uint32_t err_ns)
{
	struct chain_open *o = NULL, *oldest = &v->open[0];

	for (size_t i = 0; i < CHAIN_OPEN_MAX && !o; i++) {
		if (!v->open[i].used)
			o = &v->open[i];
		else if (v->open[i].last.ns < oldest->last.ns)
			oldest = &v->open[i];
	}
	if (!o) {
		o = oldest;
		open_close(v, o, false);
	}
	*o = (struct chain_open){
		.used = true,
		.kicked = v->where != CHAIN_IN_GUEST,
		.handler_missing = t.ns <= v->gap_until.ns,
		.last = t,
		.progress_begun = v->progress,
		.c = {.vm = v->vm,
		      .vcpu = v->vcpu,
		      .vector = vector,
		      .irq = -1,
		      .softirq = -1,
		      .host_err_ns = err_ns,
		      .begin = t},
	};
	clock_read(v, t, o->counted_ns);
	return o;
}

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

/* This irq was seen to come by this vector; one that contradicts what is known must do so often. */
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

/* Injected, and its handler is to come: it cannot any more once the guest has gone on, or after so
 * much time in the guest. An EOI says nothing: KVM may learn late of the one before. */
static bool served_waits(const struct chain_vcpu *v, const struct chain_open *o,
			 struct chain_when w)
{
	int64_t clock_ns[CHAIN_WHERE_COUNT];

	if (!o || chain_saw(&o->c, CHAIN_HANDLER) ||
	    v->progress_since.ns > o->c.at[CHAIN_INJECT].ns + o->c.host_err_ns)
		return false;
	clock_read(v, w.t, clock_ns);
	return clock_ns[CHAIN_IN_GUEST] - o->counted_ns[CHAIN_IN_GUEST] <=
	       DELIVERY_NS + (int64_t)w.err_ns;
}

static struct chain_open *candidate_of_vector(struct chain_vcpu *v, struct chain_when w,
					      uint8_t vector)
{
	struct chain_open *served = slot_of(v, v->served[vector]);

	return served_waits(v, served, w) ? served : slot_of(v, v->accepted[vector]);
}

static bool is_device(uint8_t vector)
{
	return vector >= 0x20 && vector < CHAIN_SYSTEM_VECTOR;
}

/* The chain that this irq's handler serves: of its vector if known, else what was injected last;
 * else what alone waits. */
static struct chain_open *candidate_of_irq(struct chain_vcpu *v, struct chain_when w, uint32_t irq)
{
	const struct chain_irq *known = irq_find(v, irq);
	struct chain_open *found = known ? candidate_of_vector(v, w, known->vector) : NULL;
	struct chain_open *sole = NULL;
	bool several = false;

	if (found)
		return found;
	for (size_t i = 0; i < CHAIN_OPEN_MAX; i++) {
		struct chain_open *o = &v->open[i];

		if (!o->used || !is_device(o->c.vector) || chain_saw(&o->c, CHAIN_HANDLER) ||
		    vector_is_another_irqs(v, o->c.vector, irq) ||
		    (chain_saw(&o->c, CHAIN_INJECT) && !served_waits(v, o, w)))
			continue;
		if (chain_saw(&o->c, CHAIN_INJECT) &&
		    (!found || o->c.at[CHAIN_INJECT].ns > found->c.at[CHAIN_INJECT].ns))
			found = o;
		several |= sole != NULL;
		sole = o;
	}
	return found ? found : several ? NULL : sole;
}

static void handle(struct chain_vcpu *v, struct chain_open *o, struct chain_when w, bool vector,
		   uint32_t number)
{
	struct chain_open *served = slot_of(v, v->served[o->c.vector]);
	bool injected = chain_saw(&o->c, CHAIN_INJECT) || (v->injects && !o->c.posted);

	if (served && served != o)
		open_close(v, served, false);
	if (slot_of(v, v->accepted[o->c.vector]) == o)
		accepted_clear(v, o->c.vector);
	v->served[o->c.vector] = index_of(v, o);
	if (!vector) {
		irq_learn(v, number, o->c.vector);
		o->c.irq = (int32_t)number;
	}
	v->handled[o->c.vector / 64] |= 1ull << o->c.vector % 64;
	point_set(o, CHAIN_HANDLER, w.t);
	o->c.guest_err_ns = w.err_ns;
	places_count(v, o, w.t, injected ? CHAIN_PLACE_DELIVERY : CHAIN_PLACE_INTERRUPTS_OFF);
	places_settle(&o->c);
	v->handling = v->newest = o;
	if (o->c.source == CHAIN_SOURCE_TIMER) {
		if (w.t.ns - v->tick.ns >= v->limit_ns)
			v->sink.tick(v->sink.context, &o->c);
		v->tick = w.t;
	}
	if (o->c.lost)
		v->sink.found(v->sink.context, &o->c);
	else if (w.t.ns - o->c.begin.ns - w.err_ns >= v->limit_ns)
		v->sink.late(v->sink.context, &o->c);
}

static void handled_exit(struct chain_vcpu *v, struct chain_open *o, struct host_ns t)
{
	point_set(o, CHAIN_HANDLER_EXIT, t);
	v->handling = NULL;
	v->leaving = o;
}

/* Whether the pending `o` may have been handled unseen, so that the next accept is another's. */
static bool may_be_over(const struct chain_vcpu *v, const struct chain_open *o)
{
	if (o->ambiguous && v->progress_since.ns > o->c.at[CHAIN_ACCEPT].ns + o->c.host_err_ns)
		return true;
	return o->handler_missing && (o->inject_missing || o->c.posted || !v->injects);
}

/* Events may be missing that would show it handled before now, and the guest has gone on since. */
static bool is_doubtful(struct chain_vcpu *v, const struct chain_open *o)
{
	return slot_of(v, v->accepted[o->c.vector]) == o && may_be_over(v, o) && !o->c.lost &&
	       v->progress_since.ns > o->c.at[CHAIN_ACCEPT].ns + o->c.host_err_ns;
}

static void alone_add(struct chain_vcpu *v, struct chain_when w, bool vector, uint32_t number)
{
	v->alone[v->n_alone++ % CHAIN_ALONE] = (struct chain_alone){
		.used = true, .vector = vector, .number = number, .t = w.t, .err_ns = w.err_ns};
	v->handlers_alone++;
}

static void guest_note(struct chain_vcpu *v, struct host_ns t)
{
	if (!v->agent)
		v->guest_first = t;
	v->agent = true;
	v->guest_last = t;
	v->guest_seen++;
}

void chain_vcpu_handler(struct chain_vcpu *v, struct chain_when w, bool vector, uint32_t number)
{
	struct chain_open *o, *last = v->handling;

	guest_note(v, w.t);
	v->guest_err_ns = w.err_ns;
	v->leaving = NULL;
	/* One line that several devices share: a handler each. */
	if (!vector && !last && v->newest && v->newest->c.irq == (int32_t)number &&
	    w.t.ns - v->newest->c.at[CHAIN_HANDLER_EXIT].ns < SHARED_NS &&
	    !chain_saw(&v->newest->c, CHAIN_EOI) && !candidate_of_irq(v, w, number))
		return;
	v->handling = NULL;
	o = vector ? candidate_of_vector(v, w, (uint8_t)number) : candidate_of_irq(v, w, number);
	if (o && w.err_ns >= v->limit_ns)
		open_close(v, o, true); /* when that was is not known */
	else if (o && !is_doubtful(v, o))
		handle(v, o, w, vector, number);
	else
		alone_add(v, w, vector, number);
}

/* No other device's interrupt waits for its handler. */
static bool is_sole(const struct chain_vcpu *v, const struct chain_open *o)
{
	for (size_t i = 0; i < CHAIN_OPEN_MAX; i++) {
		const struct chain_open *other = &v->open[i];

		if (other != o && other->used && is_device(other->c.vector) &&
		    !chain_saw(&other->c, CHAIN_HANDLER))
			return false;
	}
	return true;
}

/* Whether this handler, seen before any interrupt of its, may be that of `o`. */
static bool alone_fits(struct chain_vcpu *v, const struct chain_alone *a,
		       const struct chain_open *o)
{
	const struct chain_irq *known = a->vector ? NULL : irq_find(v, a->number);

	if (o->c.begin.ns - a->t.ns > (int64_t)a->err_ns + o->c.host_err_ns)
		return false;
	if (a->vector)
		return a->number == o->c.vector;
	if (known)
		return known->vector == o->c.vector;
	return a->t.ns <= o->c.begin.ns && is_device(o->c.vector) &&
	       !vector_is_another_irqs(v, o->c.vector, a->number) && is_sole(v, o);
}

/* A handler that the clocks put before what caused it: `o` has just begun or been injected. */
static void alone_join(struct chain_vcpu *v, struct chain_open *o)
{
	struct chain_alone *found = NULL;

	for (unsigned i = 0; i < CHAIN_ALONE; i++) {
		struct chain_alone *a = &v->alone[i];

		if (a->used && alone_fits(v, a, o) && (!found || a->t.ns < found->t.ns))
			found = a;
	}
	if (!found)
		return;
	found->used = false;
	if (found->torn) {
		open_close(v, o, true);
		return;
	}
	v->handlers_alone--;
	handle(v, o, (struct chain_when){found->t, found->err_ns}, found->vector, found->number);
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
	/* Its entry is missing, so whatever waits, or is to come yet by the clocks, was handled
	 * unseen. */
	known = vector ? NULL : irq_find(v, number);
	if (v->guest_gap == 0 || (!vector && !known))
		return;
	o = candidate_of_vector(v, w, vector ? (uint8_t)number : known->vector);
	if (o) {
		open_close(v, o, true);
	} else {
		alone_add(v, w, vector, number);
		v->alone[(v->n_alone - 1) % CHAIN_ALONE].torn = true;
	}
}

/* The guest does this only with interrupts on; but when it did must be known. */
static void progress_count(struct chain_vcpu *v, struct chain_when w)
{
	v->guest_err_ns = w.err_ns;
	v->progress += w.err_ns < v->limit_ns / 4;
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
	point_set(v->softirq, CHAIN_SOFTIRQ, w.t);
	v->softirq->c.softirq = (int32_t)number;
}

void chain_vcpu_softirq_exit(struct chain_vcpu *v, struct host_ns t, uint32_t number)
{
	guest_note(v, t);
	v->leaving = NULL; /* an interrupt inside this softirq: what follows is not its */
	if (v->softirq && v->softirq->c.softirq == (int32_t)number)
		point_set(v->softirq, CHAIN_SOFTIRQ_EXIT, t);
	v->softirq = NULL;
}

void chain_vcpu_switch(struct chain_vcpu *v, struct chain_when w)
{
	guest_note(v, w.t);
	progress_count(v, w);
	v->leaving = v->softirq = v->handling = NULL;
}

/* The guest has had interrupts on since this one came, so that it is handled by now, or never: what
 * is missing from here on does not hide it. One more than lost_check wants, for the clocks. */
static bool is_settled(const struct chain_vcpu *v, const struct chain_open *o)
{
	return v->progress - o->progress_begun > PROGRESS_ENOUGH;
}

void chain_vcpu_guest_gap(struct chain_vcpu *v, struct chain_when w, uint64_t lost)
{
	/* A handler's entry and its exit are next to each other, or something nests in it. */
	bool both = lost != 1 || (v->guest_gap && v->guest_seen + 1 - v->guest_gap <= 2);

	v->guest_gap = v->guest_seen + 1;
	v->leaving = v->softirq = NULL;
	if (!both)
		return;
	v->handling = NULL;
	/* By the clocks, their accept may be still to come. */
	v->gap_until.ns = w.t.ns + w.err_ns;
	for (size_t i = 0; i < CHAIN_OPEN_MAX; i++)
		v->open[i].handler_missing |= !is_settled(v, &v->open[i]);
}

/* ---- the host's side ---- */

void chain_vcpu_moved(struct chain_vcpu *v, struct host_ns t, enum chain_where where)
{
	bool leaves = v->where == CHAIN_IN_GUEST && where != CHAIN_IN_GUEST && v->n_accepted;

	for (size_t i = 0; leaves && i < CHAIN_OPEN_MAX; i++) {
		struct chain_open *o = &v->open[i];

		if (!o->used || o->kicked || o->c.posted)
			continue;
		places_count(v, o, t, CHAIN_PLACE_DELIVERY);
		o->kicked = true;
	}
	if (t.ns > v->since.ns) {
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
	clock_read(v, t, v->woken_clock_ns);
	for (size_t i = 0; v->n_accepted && i < CHAIN_OPEN_MAX; i++) {
		struct chain_open *o = &v->open[i];

		if (!o->used || slot_of(v, v->accepted[o->c.vector]) != o ||
		    chain_saw(&o->c, CHAIN_WAKEUP))
			continue;
		point_set(o, CHAIN_WAKEUP, t);
		/* It may have got a pCPU before it slept, in an exit: that was not for this
		 * wake-up. */
		o->c.observed &= ~(1u << CHAIN_SCHED_IN);
		v->woken_spent = true;
	}
}

void chain_vcpu_scheduled(struct chain_vcpu *v, struct host_ns t, uint16_t pcpu)
{
	chain_vcpu_moved(v, t, CHAIN_IN_EXIT);
	v->pcpu = pcpu;
	v->scheduled = t;
	for (size_t i = 0; v->n_accepted && i < CHAIN_OPEN_MAX; i++) {
		struct chain_open *o = &v->open[i];

		if (o->used && slot_of(v, v->accepted[o->c.vector]) == o &&
		    !chain_saw(&o->c, CHAIN_SCHED_IN))
			point_set(o, CHAIN_SCHED_IN, t);
	}
}

/* What woke the sleeping vCPU, if nothing else did, was this timer's expiry. */
static void timer_begin(struct chain_vcpu *v, struct chain_open *o)
{
	if (!v->woken_known || v->woken_spent)
		return;
	v->woken_spent = true;
	point_set(o, CHAIN_WAKEUP, v->woken);
	if (v->scheduled.ns >= v->woken.ns)
		point_set(o, CHAIN_SCHED_IN, v->scheduled);
	o->c.begin = v->woken;
	memcpy(o->counted_ns, v->woken_clock_ns, sizeof(o->counted_ns));
}

/* The second tracepoint of an accept. False: of another one. */
static bool posted_take(struct chain_vcpu *v, struct host_ns t, const struct chain_accept *a)
{
	struct chain_open *o = slot_of(v, v->accepted[a->vector]);

	if (!o)
		o = slot_of(v, v->served[a->vector]);
	if (!a->posted || v->plain.vector != a->vector || v->plain.raiser != a->raiser ||
	    t.ns - v->plain.t.ns > SAME_ACCEPT_NS)
		return false;
	/* It may be torn already. */
	if (o && o->c.at[CHAIN_ACCEPT].ns == v->plain.t.ns)
		o->c.posted = true;
	return true;
}

/* Where a loss may hide what raised it, its vector may say. */
static enum chain_source source_of(struct chain_vcpu *v, const struct chain_accept *a)
{
	uint64_t *timers = &v->timers[a->vector / 64], bit = 1ull << a->vector % 64;

	if (a->source_known || !a->own || a->level)
		return a->source;
	if (a->source == CHAIN_SOURCE_TIMER)
		*timers |= bit;
	return *timers & bit ? CHAIN_SOURCE_TIMER : a->source;
}

/* Had it come before the newest handler of its vector, it would have coalesced. Injections would
 * show which it is. */
static bool may_be_served(struct chain_vcpu *v, struct host_ns t, const struct chain_accept *a)
{
	const struct chain_open *served = slot_of(v, v->served[a->vector]);

	return served && !v->injects && chain_saw(&served->c, CHAIN_HANDLER) &&
	       t.ns - served->c.at[CHAIN_HANDLER].ns <= (int64_t)served->c.guest_err_ns + a->err_ns;
}

void chain_vcpu_accept(struct chain_vcpu *v, struct host_ns t, const struct chain_accept *a)
{
	struct chain_open *o = slot_of(v, v->accepted[a->vector]);
	bool ambiguous = !o && may_be_served(v, t, a);

	if (posted_take(v, t, a))
		return;
	if (!a->posted)
		v->plain = (struct chain_plain){t, a->raiser, a->vector};
	if (o && may_be_over(v, o)) {
		open_close(v, o, true);
		o = NULL;
	}
	if (o) {
		o->c.coalesced += !a->posted;
		return;
	}
	o = open_new(v, t, a->vector, a->err_ns);
	o->ambiguous = ambiguous;
	point_set(o, CHAIN_ACCEPT, t);
	o->c.level = a->level;
	o->c.posted = a->posted;
	o->c.certain = a->certain;
	o->c.source = source_of(v, a);
	o->c.gsi = a->gsi;
	o->c.raiser = a->raiser;
	if (a->source_known) {
		point_set(o, CHAIN_SOURCE, a->source_at);
		o->c.begin = a->source_at;
		o->counted_ns[v->where] -= t.ns - a->source_at.ns;
	} else if (o->c.source == CHAIN_SOURCE_TIMER) {
		timer_begin(v, o);
	}
	v->accepted[a->vector] = index_of(v, o);
	v->n_accepted++;
	alone_join(v, o);
}

void chain_vcpu_inject(struct chain_vcpu *v, struct chain_when w, uint8_t vector, bool again)
{
	struct chain_open *o = slot_of(v, v->accepted[vector]);
	struct chain_open *served = slot_of(v, v->served[vector]);

	v->injects = true;
	if (!o && served && chain_saw(&served->c, CHAIN_HANDLER) &&
	    !chain_saw(&served->c, CHAIN_INJECT) &&
	    w.t.ns - served->c.at[CHAIN_HANDLER].ns <= (int64_t)w.err_ns + served->c.guest_err_ns) {
		point_set(served, CHAIN_INJECT, w.t); /* the clocks put the handler before it */
		v->entering = served;
		return;
	}
	if (again)
		return; /* an exit came between its injection and its delivery */
	if (served)
		open_close(v, served, false);
	if (!o)
		o = open_new(v, w.t, vector, w.err_ns);
	accepted_clear(v, vector);
	v->served[vector] = index_of(v, o);
	places_count(v, o, w.t, CHAIN_PLACE_INTERRUPTS_OFF);
	point_set(o, CHAIN_INJECT, w.t);
	v->entering = o;
	alone_join(v, o);
}

void chain_vcpu_entry(struct chain_vcpu *v, struct host_ns t)
{
	chain_vcpu_moved(v, t, CHAIN_IN_GUEST);
	v->woken_known = false;
	if (v->entering)
		point_set(v->entering, CHAIN_ENTRY, t);
	v->entering = NULL;
}

void chain_vcpu_eoi(struct chain_vcpu *v, struct host_ns t, int vector)
{
	struct chain_open *o = v->newest;

	if (vector >= 0 && vector < CHAIN_VECTORS) {
		o = slot_of(v, v->served[vector]);
		if ((!o || chain_saw(&o->c, CHAIN_EOI)) && v->accepted[vector] && !v->injects) {
			/* A KVM whose guest takes interrupts without it tells of the taking so. */
			o = slot_of(v, v->accepted[vector]);
			accepted_clear(v, (uint8_t)vector);
			v->served[vector] = index_of(v, o);
			places_count(v, o, t, CHAIN_PLACE_INTERRUPTS_OFF);
			point_set(o, CHAIN_INJECT, t);
			return;
		}
	}
	if (o && !chain_saw(&o->c, CHAIN_EOI))
		point_set(o, CHAIN_EOI, t);
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
		v->open[i].inject_missing |= !is_settled(v, &v->open[i]);
}

/* ---- lost, over ---- */

/* Could it be that this was handled, and that is what is missing? */
static bool may_be_handled(const struct chain_vcpu *v, const struct chain_open *o)
{
	bool has_handlers = v->handled[o->c.vector / 64] >> o->c.vector % 64 & 1;

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
	    may_be_handled(v, o) || v->progress - o->progress < PROGRESS_ENOUGH)
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
	for (size_t i = 0; i < CHAIN_OPEN_MAX; i++) {
		struct chain_open *o = &v->open[i];

		if (!o->used)
			continue;
		if (slot_of(v, v->accepted[o->c.vector]) == o)
			lost_check(v, o, now, idle);
		else if (now.ns - o->last.ns > KEEP_NS)
			open_close(v, o, false);
	}
}

void chain_vcpu_finish(struct chain_vcpu *v, struct host_ns now)
{
	for (size_t i = 0; i < CHAIN_OPEN_MAX; i++) {
		struct chain_open *o = &v->open[i];

		if (!o->used)
			continue;
		/* What is still pending has not had its time, or never gets it. */
		if (slot_of(v, v->accepted[o->c.vector]) != o) {
			open_close(v, o, false);
		} else if (o->c.lost) {
			places_count(v, o, now, CHAIN_PLACE_DELIVERY);
			v->sink.lost(v->sink.context, &o->c, o->halted,
				     (uint32_t)(v->progress - o->progress));
		}
	}
}
