// SPDX-License-Identifier: GPL-2.0-only
/*
 * A pair between whose events others were lost may be none: its true partners may be among the lost
 * ones. For A and B to be no pair although each A has one B, an end and then a begin must have been
 * lost between them: this pair is torn. A loss that can only have been one of them makes a wrong
 * pair only if some events have no partner. pair_rows_decide() looks whether such events exist
 * where nothing was lost, and how often an end and the next begin are lost in separate losses.
 */
#include <stdlib.h>

#include "host-collector/analyze/event/pairs_internal.h"

static struct pair_losses *losses_get(struct pairs *p, uint32_t source)
{
	struct pair_losses *l;

	for (size_t i = 0; i < p->n_losses; i++) {
		if (p->losses[i].source == source)
			return &p->losses[i];
	}
	if (p->n_losses == MODEL_VMS_MAX + 1)
		return NULL;
	l = &p->losses[p->n_losses];
	*l = (struct pair_losses){.source = source};
	l->newest = calloc(PAIR_LOSSES_MAX, sizeof(*l->newest));
	if (!l->newest)
		return NULL;
	p->n_losses++;
	return l;
}

/* The part of a loss that lies between the events of a pair. */
struct loss_between {
	const struct event_loss *loss;
	int64_t since_ns, until_ns;
	bool may_end, may_begin;
};

enum {
	BETWEEN_MAX = 32,
	/* Larger losses are bursts: events that follow each other are lost together. */
	LOSS_FEW_MAX = 4,
};

struct losses_between {
	size_t n;
	bool too_many; /* or the loss is too old to be remembered */
	struct loss_between items[BETWEEN_MAX];
};

/* Returns true if the lost event may have had the key of this end. */
static bool concerns(const struct pairs *p, const struct pair_end *end,
		     const struct event_loss *loss)
{
	return end->source == loss->source && (!p->bound[end->choice] || end->cpu == loss->cpu);
}

static void loss_add(const struct pairs *p, const struct pair *pair, const struct event_loss *loss,
		     struct losses_between *out)
{
	const int64_t doubt_ns = pairs_doubt_ns(&pair->from, &pair->to);
	const int64_t from_ns = pair->from.t.ns, to_ns = pair->to.t.ns;
	struct loss_between between = {
		.loss = loss,
		.since_ns = loss->since.ns > from_ns ? loss->since.ns : from_ns,
		.until_ns = loss->until.ns < to_ns ? loss->until.ns : to_ns,
		.may_end = concerns(p, &pair->to, loss),
		.may_begin = concerns(p, &pair->from, loss),
	};

	if (loss->until.ns <= from_ns - doubt_ns || loss->since.ns >= to_ns + doubt_ns ||
	    (!between.may_end && !between.may_begin))
		return;
	out->too_many |= out->n == BETWEEN_MAX;
	if (out->n < BETWEEN_MAX)
		out->items[out->n++] = between;
}

static void losses_collect(const struct pairs *p, const struct pair *pair,
			   const struct pair_losses *l, struct losses_between *out, bool *near_loss)
{
	/* The times of the other clock may be wrong by this error, even if both events have the
	 * same clock. */
	const int64_t slack_ns = 2ll * p->worst_err_ns;
	const int64_t from_ns = pair->from.t.ns - slack_ns, to_ns = pair->to.t.ns + slack_ns;
	const uint64_t first = l->n > PAIR_LOSSES_MAX ? l->n - PAIR_LOSSES_MAX : 0;

	for (uint64_t i = l->n; i-- > first && !out->too_many;) {
		const struct event_loss *loss = &l->newest[i % PAIR_LOSSES_MAX];

		if (!l->n_open && loss->t.ns + l->longest_ahead_ns < from_ns)
			return;
		*near_loss |= loss->until.ns >= from_ns && loss->since.ns <= to_ns;
		if (l->source == pair->from.source || l->source == pair->to.source)
			loss_add(p, pair, loss, out);
	}
	out->too_many |= first > 0;
}

static bool is_few(const struct event_loss *loss)
{
	return loss->count && loss->count <= LOSS_FEW_MAX;
}

/* Returns true if an end, and then a begin, may have been lost. */
static enum pair_doubt doubt_of(const struct losses_between *b, int64_t doubt_ns)
{
	enum pair_doubt doubt = b->n ? PAIR_PAST : PAIR_CERTAIN;

	for (size_t i = 0; i < b->n; i++) {
		for (size_t k = 0; k < b->n; k++) {
			const struct loss_between *end = &b->items[i], *begin = &b->items[k];

			if (!end->may_end || !begin->may_begin ||
			    (i == k && end->loss->count == 1) ||
			    end->since_ns > begin->until_ns + doubt_ns)
				continue;
			if (i == k || !is_few(end->loss) || !is_few(begin->loss))
				return PAIR_TORN;
			doubt = PAIR_PAST_BOTH;
		}
	}
	return doubt;
}

void pairs_losses_apply(const struct pairs *p, struct pair_pending *w)
{
	struct losses_between between;

	between.n = 0;
	between.too_many = w->near_loss = false;
	for (size_t i = 0; i < p->n_losses; i++)
		losses_collect(p, &w->pair, &p->losses[i], &between, &w->near_loss);
	w->near_loss |= between.too_many;
	w->past_many = false;
	for (size_t i = 0; i < between.n; i++)
		w->past_many |= !is_few(between.items[i].loss);
	if (between.too_many || (between.n && p->same[w->pair.stage]))
		w->doubt = PAIR_TORN;
	else
		w->doubt = doubt_of(&between, pairs_doubt_ns(&w->pair.from, &w->pair.to));
}

static bool is_open(const struct event_loss *loss)
{
	return loss->until.ns == INT64_MAX;
}

void pairs_lost_over(void *context, uint32_t source, uint16_t cpu, struct host_ns t)
{
	struct pairs *p = context;
	struct pair_losses *l = losses_get(p, source);
	const uint64_t first = l && l->n > PAIR_LOSSES_MAX ? l->n - PAIR_LOSSES_MAX : 0;

	for (uint64_t i = l ? l->n : 0; i-- > first && l->n_open;) {
		struct event_loss *loss = &l->newest[i % PAIR_LOSSES_MAX];

		if (loss->cpu != cpu)
			continue;
		if (!is_open(loss))
			return;
		loss->until = t;
		l->n_open--;
		if (t.ns - loss->t.ns > l->longest_ahead_ns)
			l->longest_ahead_ns = t.ns - loss->t.ns;
	}
}

void pairs_lost(void *context, const struct event_loss *loss)
{
	struct pairs *p = context;
	struct pair_losses *l = losses_get(p, loss->source);

	if (!l) {
		p->rows.out_of_memory = true;
		return;
	}
	if (l->n >= PAIR_LOSSES_MAX)
		l->n_open -= is_open(&l->newest[l->n % PAIR_LOSSES_MAX]);
	l->newest[l->n++ % PAIR_LOSSES_MAX] = *loss;
	l->n_open += is_open(loss);
	if (!is_open(loss) && loss->until.ns - loss->t.ns > l->longest_ahead_ns)
		l->longest_ahead_ns = loss->until.ns - loss->t.ns;
	for (uint64_t i = p->pending_end; i-- > p->pending_first;) {
		struct pair_pending *w = pending_at(p, i);

		if (w->since.ns + 2ll * p->worst_err_ns < loss->since.ns)
			break;
		pairs_losses_apply(p, w);
	}
}
