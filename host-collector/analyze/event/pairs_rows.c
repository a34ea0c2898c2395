// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/event/pairs_internal.h"

int pair_rows_init(struct pairs *p)
{
	struct pair_rows *r = &p->rows;

	for (unsigned i = 0; i < EVENT_GROUPS_MAX; i++)
		r->stages[i].stage = i;
	if (!p->options.per_key)
		return 0;
	r->rows = calloc(PAIR_ROWS_MAX, sizeof(*r->rows));
	return r->rows && !lru_init(&r->index, PAIR_ROWS_MAX) ? 0 : -ENOMEM;
}

void pair_rows_fini(struct pairs *p)
{
	struct pair_rows *r = &p->rows;

	for (size_t i = 0; i < r->n; i++)
		histogram_fini(&r->rows[i].times);
	for (size_t i = 0; i < EVENT_GROUPS_MAX; i++)
		histogram_fini(&r->stages[i].times);
	lru_fini(&r->index);
	free(r->rows);
}

struct pair_row *pair_row_of(struct pairs *p, unsigned stage, const struct pair_key *key)
{
	struct pair_rows *r = &p->rows;
	const uint64_t hash = pair_key_hash(stage, key);
	uint32_t slot;
	bool fresh;

	if (!p->options.per_key)
		return &r->stages[stage];
	slot = lru_find(&r->index, hash);
	if (slot != LRU_NONE)
		return &r->rows[slot];
	if (r->n == PAIR_ROWS_MAX) {
		p->limits.keys_joined++;
		return &r->stages[stage];
	}
	slot = lru_put(&r->index, hash, &fresh);
	r->rows[slot] = (struct pair_row){.stage = stage, .key = *key};
	r->n++;
	return &r->rows[slot];
}

static bool is_selected(const struct pairs_options *o, int64_t duration_ns)
{
	return duration_ns >= o->than_ns && (!o->lower_ns || duration_ns < o->lower_ns);
}

/* Whether `a` stands before `b` among the pairs that are kept. */
static bool stands_before(const struct pairs_options *o, const struct pair *a, const struct pair *b)
{
	return o->lower_ns ? a->duration_ns < b->duration_ns : a->duration_ns > b->duration_ns;
}

static void keep(struct pairs *p, const struct pair *pair)
{
	struct pair_rows *r = &p->rows;
	const struct pairs_options *o = &p->options;
	size_t at = r->n_kept;

	if (!o->kept || !is_selected(o, pair->duration_ns))
		return;
	while (at > 0 && stands_before(o, pair, &r->kept[at - 1]))
		at--;
	if (at == o->kept)
		return;
	if (r->n_kept < o->kept)
		r->n_kept++;
	memmove(&r->kept[at + 1], &r->kept[at], (r->n_kept - at - 1) * sizeof(*r->kept));
	r->kept[at] = *pair;
}

void pair_rows_count(struct pairs *p, const struct pair_pending *done)
{
	const struct pair *pair = &done->pair;
	struct pair_row *row = pair_row_of(p, pair->stage, &pair->key);

	if (done->ambiguous || done->incomplete) {
		row->ambiguous += done->ambiguous;
		row->incomplete += !done->ambiguous;
		return;
	}
	if (histogram_add(&row->times, (uint64_t)pair->duration_ns))
		p->rows.out_of_memory = true;
	if (p->options.than_ns || p->options.lower_ns)
		row->beyond += is_selected(&p->options, pair->duration_ns);
	if (pair->error_ns > row->error_ns)
		row->error_ns = pair->error_ns;
	row->with_states += pair->states_known;
	for (size_t i = 0; i < SHARE_COUNT; i++)
		row->states.ns[i] += pair->states.ns[i];
	keep(p, pair);
}

static bool is_empty(const struct pair_row *row)
{
	return !row->times.count && !row->unpaired_from && !row->unpaired_to && !row->incomplete &&
	       !row->ambiguous;
}

static int row_compare(const void *a, const void *b)
{
	const struct pair_row *x = a, *y = b;

	if (x->stage != y->stage)
		return x->stage < y->stage ? -1 : 1;
	if (x->times.sum_ns != y->times.sum_ns)
		return x->times.sum_ns > y->times.sum_ns ? -1 : 1;
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
	/* Of keys, a stage's own row has what found no row. */
	for (unsigned stage = 0; stage < p->n_stages; stage++) {
		if (p->options.per_key && is_empty(&r->stages[stage]))
			continue;
		if (!i--)
			return &r->stages[stage];
	}
	return NULL;
}

const struct pair *pairs_kept(const struct pairs *p, size_t i)
{
	return i < p->rows.n_kept ? &p->rows.kept[i] : NULL;
}
