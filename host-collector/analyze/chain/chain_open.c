/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "host-collector/analyze/chain/chain_internal.h"

#define RAISER_NS 100000ll

enum { RAISER_ENOUGH = 4 };

/* ---- where the vCPU's time goes ---- */

void chain_clock_read(const struct chain_vcpu *v, struct host_ns t, int64_t *clock_ns)
{
	struct host_ns until = v->since;

	memcpy(clock_ns, v->clock_ns, sizeof(v->clock_ns));
	if (t.ns >= until.ns) {
		clock_ns[v->where] += t.ns - until.ns;
		return;
	}
	for (uint64_t i = v->n_moves; i && v->n_moves - i < CHAIN_MOVES; i--) {
		const struct chain_move *m = &v->moves[(i - 1) % CHAIN_MOVES];
		struct host_ns from = m->since.ns > t.ns ? m->since : t;

		clock_ns[m->where] -= until.ns - from.ns;
		until = from;
		if (until.ns == t.ns)
			return;
	}
	clock_ns[CHAIN_NOWHERE] -= until.ns - t.ns;
}

void chain_places_add(struct chain_open *o, const int64_t *clock_ns, enum chain_place guest)
{
	const enum chain_place places[CHAIN_WHERE_COUNT] = {
		[CHAIN_IN_GUEST] = guest,
		[CHAIN_IN_EXIT] = CHAIN_PLACE_EXIT_HANDLING,
		[CHAIN_WAITING] = CHAIN_PLACE_NOT_SCHEDULED,
		[CHAIN_SLEEPING] = CHAIN_PLACE_ASLEEP,
		[CHAIN_NOWHERE] = CHAIN_PLACE_UNKNOWN,
	};

	for (int w = 0; w < CHAIN_WHERE_COUNT; w++) {
		if (clock_ns[w] > o->counted_ns[w])
			o->c.place_ns[places[w]] += clock_ns[w] - o->counted_ns[w];
		o->counted_ns[w] = clock_ns[w];
	}
}

/* Counts the time since the last count; time in the guest is added to `guest`. */
void chain_places_count(const struct chain_vcpu *v, struct chain_open *o, struct host_ns t,
			enum chain_place guest)
{
	int64_t clock_ns[CHAIN_WHERE_COUNT];

	chain_clock_read(v, t, clock_ns);
	chain_places_add(o, clock_ns, guest);
}

/* The handler's stamp is the guest's, so the disagreement of the clocks is part of the delivery
 * time. */
void chain_places_settle(struct chain *c)
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

void chain_point_set(struct chain_open *o, enum chain_point p, struct host_ns t)
{
	o->c.observed |= 1u << p;
	o->c.at[p] = t;
	if (t.ns > o->last.ns)
		o->last = t;
}

struct chain_open *chain_slot(struct chain_vcpu *v, uint8_t index)
{
	return index ? &v->open[index - 1] : NULL;
}

uint8_t chain_slot_index(const struct chain_vcpu *v, const struct chain_open *o)
{
	return (uint8_t)(o - v->open + 1);
}

_Static_assert(CHAIN_OPEN_MAX == 32, "in_use has a bit for each chain");

void chain_place_free(struct chain_vcpu *v, const struct chain_open *o)
{
	v->in_use &= ~(1u << (o - v->open));
}

void chain_accepted_clear(struct chain_vcpu *v, uint8_t vector)
{
	if (v->accepted[vector])
		v->n_accepted--;
	v->accepted[vector] = 0;
}

/* Returns true if the guest's events cover this time, so that the chain's handler, had it run,
 * would have been recorded. */
static bool is_covered(const struct chain_vcpu *v, const struct chain *c)
{
	enum chain_point p = chain_saw(c, CHAIN_INJECT) ? CHAIN_INJECT : CHAIN_ACCEPT;

	return v->agent && v->handled[c->vector / 64] >> c->vector % 64 & 1 &&
	       v->guest_first.ns <= c->begin.ns && v->guest_last.ns > c->at[p].ns;
}

/* ---- raisers that no VM is known of ---- */

static struct chain_raiser *raiser_find(struct chain_vcpu *v, int32_t pid, uint8_t vector)
{
	for (size_t i = 0; i < CHAIN_RAISERS; i++) {
		struct chain_raiser *r = &v->raisers[i];

		if (r->pid == pid && r->vector == vector)
			return r;
	}
	return NULL;
}

bool chain_raiser_known(struct chain_vcpu *v, int32_t pid, uint8_t vector)
{
	const struct chain_raiser *r = raiser_find(v, pid, vector);

	return r && r->handled >= RAISER_ENOUGH;
}

static void raiser_learn(struct chain_vcpu *v, const struct chain *c, bool handled)
{
	struct chain_raiser *r = raiser_find(v, c->raiser, c->vector);
	bool at_once = handled && c->at[CHAIN_HANDLER].ns - c->at[CHAIN_ACCEPT].ns <=
					  RAISER_NS + c->guest_err_ns + c->host_err_ns;

	if (!r) {
		r = &v->raisers[v->n_raisers++ % CHAIN_RAISERS];
		*r = (struct chain_raiser){.pid = c->raiser, .vector = c->vector};
	}
	if (!at_once)
		r->handled = 0;
	else if (r->handled < RAISER_ENOUGH)
		r->handled++;
}

const struct chain_sink *chain_listener_sink(const struct chain_vcpu *v, struct chain_open *o,
					     size_t listener)
{
	o->c.lost = o->pending[listener].lost;
	return &v->listeners->of[listener].sink;
}

void chain_open_close(struct chain_vcpu *v, struct chain_open *o, bool torn)
{
	struct chain_open **roles[] = {&v->entering, &v->handling, &v->leaving, &v->softirq,
				       &v->newest};
	bool handled = chain_saw(&o->c, CHAIN_HANDLER);

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		if (*roles[i] == o)
			*roles[i] = NULL;
	}
	if (chain_slot(v, v->accepted[o->c.vector]) == o)
		chain_accepted_clear(v, o->c.vector);
	if (chain_slot(v, v->served[o->c.vector]) == o)
		v->served[o->c.vector] = 0;
	torn |= o->torn || (!handled && is_covered(v, &o->c));
	v->takes_uninjected |= handled && !torn && !chain_saw(&o->c, CHAIN_INJECT) &&
			       !o->c.posted && !o->inject_missing;
	if (chain_saw(&o->c, CHAIN_ACCEPT) && !o->c.certain && !torn)
		raiser_learn(v, &o->c, handled);
	for (size_t i = 0; i < v->listeners->n; i++) {
		const struct chain_sink *sink = chain_listener_sink(v, o, i);

		sink->closed(sink->context, &o->c,
			     torn      ? CHAIN_END_TORN
			     : handled ? CHAIN_END_HANDLED
				       : CHAIN_END_HALF);
	}
	chain_place_free(v, o);
}

/* Returns true if handlers of this vector may be counted instead of sent. At the guest's level
 * summary (bpf/capture/handler_summary.h) these are the handlers of devices and of reschedule
 * interrupts. */
static bool may_be_aggregated(const struct chain_vcpu *v, uint8_t vector)
{
	return v->handlers_counted &&
	       (vector < CHAIN_SYSTEM_VECTOR || vector == CHAIN_RESCHEDULE_VECTOR);
}

struct chain_open *chain_open_new(struct chain_vcpu *v, struct host_ns t, uint8_t vector,
				  uint32_t err_ns)
{
	struct chain_open *o, *oldest = &v->open[0];

	if (v->in_use == UINT32_MAX) {
		for (size_t i = 1; i < CHAIN_OPEN_MAX; i++) {
			if (v->open[i].last.ns < oldest->last.ns)
				oldest = &v->open[i];
		}
		chain_open_close(v, oldest, false);
	}
	o = &v->open[__builtin_ctz(~v->in_use)];
	v->in_use |= 1u << (o - v->open);
	*o = (struct chain_open){
		.kicked = v->where != CHAIN_IN_GUEST,
		.handler_missing = t.ns <= v->gap_until.ns || may_be_aggregated(v, vector),
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
	chain_clock_read(v, t, o->counted_ns);
	return o;
}

/* ---- what may have been missed ---- */

/* Returns true if the pending `o` may have been handled unseen, so that the next accept belongs to
 * another chain. */
bool chain_may_be_over(const struct chain_vcpu *v, const struct chain_open *o)
{
	if (o->ambiguous && v->progress_since.ns > o->c.at[CHAIN_ACCEPT].ns + o->c.host_err_ns)
		return true;
	return o->handler_missing && (o->inject_missing || o->c.posted || !v->injects);
}

bool chain_is_over(const struct chain_vcpu *v, const struct chain_open *o, struct host_ns now)
{
	return o->torn &&
	       (now.ns > o->torn_until.ns || !v->injects || o->c.posted || o->inject_missing);
}

/* Returns true if the guest has had interrupts on since this interrupt came. So it was handled by
 * now, or never will be, and events that go missing from here on do not matter. Requires one action
 * more than lost_check does, because of the clocks' error. */
bool chain_is_settled(const struct chain_vcpu *v, const struct chain_open *o)
{
	return v->progress - o->progress_begun > CHAIN_PROGRESS_ENOUGH;
}
