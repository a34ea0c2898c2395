// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts pairs and decides which of those with losses between their events are calls.
 *
 * The pair of A and the B after the next is wrong if the end of A and the next begin were lost. If
 * each event is lost independently of the others, then of n pairs (ends lost) * (begins lost) / n
 * are wrong in this way. An end that was lost leaves a begin without an end, so both
 * factors are counted. Losses may be denser at some times than at others: the product is summed
 * over windows of few pairs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/event/pairs_internal.h"

enum { WINDOW_PAIRS = 64 };

int pair_rows_init(struct pairs *p)
{
	struct pair_rows *r = &p->rows;

	for (unsigned i = 0; i < EVENT_GROUPS_MAX; i++)
		r->stages[i] = (struct pair_row){.stage = i,
						 .interval = p->triggers ? PAIR_INTERVALS_MAX : 0};
	if (!p->options.per_key && !p->triggers)
		return 0;
	r->rows = calloc(PAIR_ROWS_MAX, sizeof(*r->rows));
	return r->rows && !lru_init(&r->index, PAIR_ROWS_MAX) ? 0 : -ENOMEM;
}

static void row_fini(struct pair_row *row)
{
	histogram_fini(&row->calls.times);
	histogram_fini(&row->past_losses.times);
	histogram_fini(&row->past_both.times);
}

void pair_rows_fini(struct pairs *p)
{
	struct pair_rows *r = &p->rows;

	for (size_t i = 0; i < r->n; i++)
		row_fini(&r->rows[i]);
	for (size_t i = 0; i < EVENT_GROUPS_MAX; i++)
		row_fini(&r->stages[i]);
	lru_fini(&r->index);
	free(r->rows);
}

void pair_rows_trigger(struct pairs *p, struct host_ns t)
{
	const size_t n = p->n_triggers;

	if (!p->triggers)
		return;
	/* A hit whose further values are missing comes late. */
	if (n && t.ns < p->trigger_t[n - 1].ns)
		t = p->trigger_t[n - 1];
	if (n < PAIR_INTERVALS_MAX - 1)
		p->trigger_t[p->n_triggers++] = t;
	else
		p->limits.intervals_joined++;
}

/* Returns the number of triggers before `t`. */
static unsigned interval_of(const struct pairs *p, struct host_ns t)
{
	size_t low = 0, high = p->n_triggers;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (p->trigger_t[middle].ns < t.ns)
			low = middle + 1;
		else
			high = middle;
	}
	return (unsigned)low;
}

static struct pair_row *row_of(struct pairs *p, unsigned interval, unsigned stage,
			       const struct pair_key *key)
{
	struct pair_rows *r = &p->rows;
	const uint64_t hash = pair_key_hash(interval * EVENT_GROUPS_MAX + stage, key);
	uint32_t slot;
	bool fresh;

	slot = lru_find(&r->index, hash);
	if (slot != LRU_NONE)
		return &r->rows[slot];
	if (r->n == PAIR_ROWS_MAX) {
		p->limits.keys_joined++;
		return &r->stages[stage];
	}
	slot = lru_put(&r->index, hash, &fresh);
	r->rows[slot] = (struct pair_row){.interval = interval, .stage = stage, .key = *key};
	r->n++;
	return &r->rows[slot];
}

static const struct pair_key all_keys;

struct pair_row *pair_row_of(struct pairs *p, unsigned stage, const struct pair_key *key,
			     struct host_ns t)
{
	if (!p->options.per_key && !p->triggers)
		return &p->rows.stages[stage];
	return row_of(p, interval_of(p, t), stage, p->options.per_key ? key : &all_keys);
}

void pair_rows_complete(struct pairs *p)
{
	if (!p->triggers || p->options.per_key)
		return;
	for (unsigned interval = 0; interval <= p->n_triggers; interval++) {
		for (unsigned stage = 0; stage < p->n_stages; stage++)
			row_of(p, interval, stage, &all_keys);
	}
}

static void window_end(struct pair_evidence *e)
{
	if (e->window.pairs)
		e->both_lost +=
			(double)e->window.from * (double)e->window.to / (double)e->window.pairs;
	e->window.pairs = e->window.from = e->window.to = 0;
}

/* ---- pairs past losses ---- */

/* The share of all pairs that may be wrong calls, as expected from the losses. */
#define WRONG_SHARE_MAX 0.0005

/* Returns the expected number of wrong pairs among those with losses between their events. If none
 * of n cases is an exception, the share of exceptions is below 3 / n (the rule of three, 95 %). */
static double wrong_expected(const struct pair_evidence *e)
{
	const uint64_t lost = e->past_many + e->unpaired_from + e->unpaired_to;
	/* A single loss makes a wrong pair if the next event has no partner. */
	const double past = (double)(lost < e->past_losses ? lost : e->past_losses) *
			    (double)(e->alone + 3) / (double)(e->clean ? e->clean : 1);
	const double both = (double)(e->unpaired_from + 3) * (double)(e->unpaired_to + 3) /
			    (double)(e->pairs ? e->pairs : 1);

	return past + (both > e->both_lost ? both : e->both_lost);
}

/* Returns what a round and the one before it show. */
static struct pair_evidence evidence_of(const struct pairs *p, unsigned stage, uint64_t round)
{
	static const struct pair_evidence none;
	const struct pair_evidence *rounds = p->rows.evidence[stage];
	const struct pair_evidence *before = round ? &rounds[(round - 1) % PAIR_ROUNDS] : &none;
	struct pair_evidence sum = rounds[round % PAIR_ROUNDS];

	window_end(&sum);
	sum.clean += before->clean;
	sum.alone += before->alone;
	sum.pairs += before->pairs;
	sum.past_losses += before->past_losses;
	sum.past_both += before->past_both;
	sum.past_many += before->past_many;
	sum.unpaired_from += before->unpaired_from;
	sum.unpaired_to += before->unpaired_to;
	sum.both_lost += before->both_lost;
	return sum;
}

/* Returns the largest doubt at which the pairs of this stage still are calls. */
static enum pair_doubt doubt_accepted(const struct pair_evidence *e)
{
	if (wrong_expected(e) <= WRONG_SHARE_MAX * (double)e->pairs)
		return PAIR_PAST_BOTH;
	/* Fewer than one of the pairs past losses is expected to be wrong. */
	return !e->alone && 3 * e->past_losses <= e->clean ? PAIR_PAST : PAIR_CERTAIN;
}

static int calls_take(struct pair_calls *calls, const struct pair_calls *more)
{
	calls->beyond += more->beyond;
	if (more->error_ns > calls->error_ns)
		calls->error_ns = more->error_ns;
	calls->with_states += more->with_states;
	for (size_t i = 0; i < SHARE_COUNT; i++)
		calls->states.ns[i] += more->states.ns[i];
	return histogram_merge(&calls->times, &more->times);
}

static int row_decide(const struct pairs *p, struct pair_row *row)
{
	const struct pair_evidence evidence =
		evidence_of(p, row->stage, p->rows.rounds[row->stage].deciding);
	const enum pair_doubt accepted = doubt_accepted(&evidence);
	int err = 0;

	if (accepted >= PAIR_PAST) {
		row->calls_past_losses += row->past_losses.times.count;
		err = calls_take(&row->calls, &row->past_losses);
	} else {
		row->incomplete += row->past_losses.times.count;
	}
	if (accepted >= PAIR_PAST_BOTH) {
		row->calls_past_both += row->past_both.times.count;
		row->calls_past_losses += row->past_both.times.count;
		row->wrong_expected = row->calls_past_losses ? wrong_expected(&evidence) : 0;
		err = err ? err : calls_take(&row->calls, &row->past_both);
	} else {
		row->incomplete += row->past_both.times.count;
	}
	return err;
}

/* Counts the pairs of a round that were not calls at once. */
static void round_end(struct pairs *p, unsigned stage)
{
	struct pair_row *row = &p->rows.stages[stage];

	if (row_decide(p, row))
		p->rows.out_of_memory = true;
	histogram_fini(&row->past_losses.times);
	histogram_fini(&row->past_both.times);
	row->past_losses = row->past_both = (struct pair_calls){0};
	p->rows.rounds[stage].deciding++;
}

static void round_begin(struct pairs *p, unsigned stage)
{
	struct pair_round *r = &p->rows.rounds[stage];

	window_end(pair_evidence_at(p, stage, r->newest));
	r->newest++;
	r->found = 0;
	r->began = p->now;
	*pair_evidence_at(p, stage, r->newest) = (struct pair_evidence){0};
}

/* ---- single pairs ---- */

static bool is_selected(const struct pairs_options *o, int64_t duration_ns)
{
	return duration_ns >= o->than_ns && (!o->lower_ns || duration_ns < o->lower_ns);
}

/* Returns true if `a` comes before `b` among the pairs that are kept. */
static bool stands_before(const struct pairs_options *o, const struct pair *a, const struct pair *b)
{
	return o->lower_ns ? a->duration_ns < b->duration_ns : a->duration_ns > b->duration_ns;
}

static void keep(struct pairs *p, const struct pair *pair, enum pair_doubt doubt)
{
	struct pair *kept = p->rows.kept[doubt];
	size_t *n = &p->rows.n_kept[doubt];
	const struct pairs_options *o = &p->options;
	size_t at = *n;

	if (!o->kept || !is_selected(o, pair->duration_ns))
		return;
	while (at > 0 && stands_before(o, pair, &kept[at - 1]))
		at--;
	if (at == o->kept)
		return;
	if (*n < o->kept)
		++*n;
	memmove(&kept[at + 1], &kept[at], (*n - at - 1) * sizeof(*kept));
	kept[at] = *pair;
}

/* Sets what is known of the losses between its events. Returns false if it cannot be a call. */
static bool doubt_apply(struct pair_pending *done)
{
	if (done->order_unsure && done->doubt != PAIR_CERTAIN)
		done->doubt = PAIR_TORN;
	done->pair.past_losses = done->doubt != PAIR_CERTAIN;
	done->pair.past_both = done->doubt == PAIR_PAST_BOTH;
	return !done->ambiguous && done->doubt != PAIR_TORN;
}

void pairs_pending_each(const struct pairs *p, void (*take)(void *context, const struct pair *pair),
			void *context)
{
	for (uint64_t i = p->pending_first; i < p->pending_end; i++) {
		struct pair_pending w = *pending_at(p, i);

		if (!w.alone && doubt_apply(&w))
			take(context, &w.pair);
	}
}

void pair_rows_found(struct pairs *p, unsigned stage)
{
	struct pair_round *r = &p->rows.rounds[stage];
	struct pair_evidence *e;

	if (!r->newest && !r->found)
		r->began = p->now;
	if (p->options.round_pairs && r->newest < r->deciding + 2 &&
	    (r->found >= p->options.round_pairs || p->now.ns - r->began.ns >= PAIR_ROUND_NS))
		round_begin(p, stage);
	r->found++;
	e = pair_evidence_at(p, stage, r->newest);
	if (++e->window.pairs == WINDOW_PAIRS)
		window_end(e);
}

void pair_rows_unpaired(struct pairs *p, const struct pair_open *o, bool is_from, bool now)
{
	struct pair_row *row = pair_row_of(p, o->stage, &o->key, is_from ? o->from.t : o->to.t);
	struct pair_evidence *e = pair_evidence_at(p, o->stage, p->rows.rounds[o->stage].newest);

	row->unpaired_from += is_from;
	row->unpaired_to += !is_from;
	e->unpaired_from += is_from;
	e->unpaired_to += !is_from;
	e->window.from += is_from && now;
	e->window.to += !is_from && now;
}

/* Returns whether a pair is a call, as far as that is known before all pairs are. */
static bool is_call(const struct pairs *p, const struct pair_pending *w)
{
	struct pair_evidence evidence;

	if (w->doubt == PAIR_CERTAIN || !p->options.round_pairs)
		return w->doubt == PAIR_CERTAIN;
	if (!w->round)
		return false;
	evidence = evidence_of(p, w->pair.stage, w->round);
	return w->doubt <= doubt_accepted(&evidence);
}

void pair_rows_count(struct pairs *p, struct pair_pending *done)
{
	struct pair *pair = &done->pair;
	struct pair_row *row = pair_row_of(p, pair->stage, &pair->key, pair->to.t);
	struct pair_evidence *evidence = pair_evidence_at(p, pair->stage, done->round);
	struct pair_calls *calls = &row->calls;

	while (p->rows.rounds[pair->stage].deciding < done->round)
		round_end(p, pair->stage);
	evidence->pairs += !done->ambiguous;
	if (!doubt_apply(done)) {
		row->ambiguous += done->ambiguous;
		row->incomplete += !done->ambiguous;
		return;
	}
	evidence->clean += !done->near_loss;
	evidence->past_both += pair->past_both;
	evidence->past_losses += pair->past_losses && !pair->past_both;
	evidence->past_many += pair->past_losses && !pair->past_both && done->past_many;
	pair->is_call = is_call(p, done);
	if (!pair->is_call)
		calls = pair->past_both ? &row->past_both : &row->past_losses;
	row->calls_past_losses += pair->is_call && pair->past_losses;
	row->calls_past_both += pair->is_call && pair->past_both;
	if (histogram_add(&calls->times, (uint64_t)pair->duration_ns))
		p->rows.out_of_memory = true;
	if (p->options.than_ns || p->options.lower_ns)
		calls->beyond += is_selected(&p->options, pair->duration_ns);
	if (pair->error_ns > calls->error_ns)
		calls->error_ns = pair->error_ns;
	calls->with_states += pair->states_known;
	for (size_t i = 0; i < SHARE_COUNT; i++)
		calls->states.ns[i] += pair->states.ns[i];
	keep(p, pair, done->doubt);
	pair->from_fields = done->from_fields;
	pair->to_fields = done->to_fields;
	if (p->options.settled)
		p->options.settled(p->options.context, pair);
}

/* ---- the end of all pairs ---- */

int pair_rows_decide(struct pairs *p)
{
	struct pair_rows *r = &p->rows;
	int err = 0;

	for (size_t i = 0; i < r->n && !err; i++)
		err = row_decide(p, &r->rows[i]);
	for (unsigned i = 0; i < p->n_stages && !err; i++)
		err = row_decide(p, &r->stages[i]);
	for (enum pair_doubt doubt = PAIR_PAST; doubt <= PAIR_PAST_BOTH; doubt++) {
		for (size_t i = 0; i < r->n_kept[doubt]; i++) {
			const struct pair *pair = &r->kept[doubt][i];
			const struct pair_evidence evidence =
				evidence_of(p, pair->stage, r->rounds[pair->stage].deciding);

			if (doubt <= doubt_accepted(&evidence))
				keep(p, pair, PAIR_CERTAIN);
		}
	}
	return err;
}

static bool is_empty(const struct pair_row *row)
{
	return !row->calls.times.count && !row->unpaired_from && !row->unpaired_to &&
	       !row->incomplete && !row->ambiguous;
}

static int row_compare(const void *a, const void *b)
{
	const struct pair_row *x = a, *y = b;

	if (x->interval != y->interval)
		return x->interval < y->interval ? -1 : 1;
	if (x->stage != y->stage)
		return x->stage < y->stage ? -1 : 1;
	if (x->calls.times.sum_ns != y->calls.times.sum_ns)
		return x->calls.times.sum_ns > y->calls.times.sum_ns ? -1 : 1;
	return x->key.number < y->key.number ? -1 : x->key.number > y->key.number;
}

void pair_rows_sort(struct pairs *p)
{
	if (p->rows.n)
		qsort(p->rows.rows, p->rows.n, sizeof(*p->rows.rows), row_compare);
}

const struct pair_row *pairs_row(const struct pairs *p, size_t i)
{
	const struct pair_rows *r = &p->rows;

	if (i < r->n)
		return &r->rows[i];
	i -= r->n;
	/* If the pairs are grouped by keys, the stage's own row counts the pairs that found no row.
	 */
	for (unsigned stage = 0; stage < p->n_stages; stage++) {
		if ((p->options.per_key || p->triggers) && is_empty(&r->stages[stage]))
			continue;
		if (!i--)
			return &r->stages[stage];
	}
	return NULL;
}

size_t pairs_intervals(const struct pairs *p)
{
	return p->triggers ? p->n_triggers + 1 : 0;
}

struct host_ns pairs_interval_begin(const struct pairs *p, size_t i)
{
	return p->trigger_t[i - 1];
}

const struct pair *pairs_kept(const struct pairs *p, size_t i)
{
	return i < p->rows.n_kept[0] ? &p->rows.kept[0][i] : NULL;
}
