/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/scene/track.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/array.h"

enum { PREFETCH_PIECES = 4 };
static const int64_t grains[TRACK_TIERS] = {0, 1000000, 32000000};
static const size_t capacities[TRACK_TIERS] = {TRACK_PIECES, 4096, 4096}; /* powers of two */

/* ---- merging ---- */

static int64_t piece_end(const struct track_piece *p)
{
	return p->begin.ns + p->ns;
}

static void merge_add(struct track_merge *m, const struct track_piece *p)
{
	if (!m->n++)
		m->begin = p->begin;
	m->ns += p->ns;
	if (!p->merged)
		m->state_ns[p->state] += p->ns;
	for (int s = 0; p->merged && s < TRACK_STATES; s++)
		m->state_ns[s] += p->ns * p->share[s] / 255;
	if (m->n == 1 || p->ns > m->longest_ns) {
		m->longest = *p;
		m->longest_ns = p->ns;
	}
}

/* Empties `m`. */
static struct track_piece merge_close(struct track_merge *m)
{
	struct track_piece p = m->longest;
	int most = 0;

	if (m->n > 1) {
		p.begin = m->begin;
		p.ns = m->ns;
		p.merged = true;
		for (int s = 0; s < TRACK_STATES; s++) {
			p.share[s] = (uint8_t)(m->ns ? m->state_ns[s] * 255 / m->ns : 0);
			if (m->state_ns[s] > m->state_ns[most])
				most = s;
		}
		p.state = (uint8_t)most;
	}
	*m = (struct track_merge){.n = 0};
	return p;
}

/* Returns true if `p` begins a new piece. */
static bool merge_ends_before(const struct track_merge *m, const struct track_piece *p,
			      int64_t grain_ns)
{
	return m->n && (m->ns >= grain_ns || p->ns >= grain_ns ||
			p->begin.ns > m->begin.ns + m->ns + grain_ns);
}

size_t track_thin(struct track_piece *pieces, size_t n, int64_t grain_ns)
{
	struct track_merge merge = {.n = 0};
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const struct track_piece piece = pieces[i];

		if (merge_ends_before(&merge, &piece, grain_ns))
			pieces[kept++] = merge_close(&merge);
		merge_add(&merge, &piece);
	}
	if (merge.n)
		pieces[kept++] = merge_close(&merge);
	return kept;
}

/* ---- tiers ---- */

static struct track_piece *tier_at(const struct track_tier *tier, size_t i)
{
	return &tier->pieces[(tier->first + i) & (tier->capacity - 1)];
}

/* Makes room for one more piece. Doubles the capacity up to `max`. Returns 0 or -ENOMEM. */
static int tier_grow(struct track_tier *tier, size_t max)
{
	/* While it grows, the pieces do not wrap around: the first one is at index 0. */
	return tier->capacity == max ? 0
				     : ARRAY_RESERVE(&tier->pieces, tier->n, &tier->capacity, 64);
}

/* This and merged_push() are not inlined: most pieces need neither, and would pay for their
 * registers. */
__attribute__((noinline)) static int tier_append(struct track_tier *tier, size_t max,
						 const struct track_piece *piece)
{
	int err = tier_grow(tier, max);

	if (!err)
		*tier_at(tier, tier->n++) = *piece;
	return err;
}

static int merged_push(struct track *t, int level);

/* The piece is merged into the newest of this tier, or begins a new one. */
static inline int tier_add(struct track *t, int level, const struct track_piece *piece)
{
	struct track_merge *merge = &t->tiers[level].merge;
	int err = 0;

	if (merge_ends_before(merge, piece, grains[level]))
		err = merged_push(t, level);
	merge_add(merge, piece);
	return err;
}

static inline int tier_push(struct track *t, int level, const struct track_piece *piece)
{
	struct track_tier *tier = &t->tiers[level];
	struct track_piece *oldest;
	int err = 0;

	if (tier->n < capacities[level])
		return tier_append(tier, capacities[level], piece);
	/* The ring is full: the newest piece takes the place of the oldest. */
	oldest = tier_at(tier, 0);
	if (level + 1 < TRACK_TIERS)
		err = tier_add(t, level + 1, oldest);
	else
		t->forgot = true;
	*oldest = *piece;
	tier->first = (tier->first + 1) & (tier->capacity - 1);
	/* The next one to replace has long left the cache. */
	__builtin_prefetch(tier_at(tier, PREFETCH_PIECES), 1);
	return err;
}

__attribute__((noinline)) static int merged_push(struct track *t, int level)
{
	const struct track_piece whole = merge_close(&t->tiers[level].merge);

	return tier_push(t, level, &whole);
}

int track_add(struct track *t, const struct track_piece *piece)
{
	return piece->ns > 0 ? tier_push(t, 0, piece) : 0;
}

void track_fini(struct track *t)
{
	for (int level = 0; level < TRACK_TIERS; level++)
		free(t->tiers[level].pieces);
	memset(t, 0, sizeof(*t));
}

/* ---- reading ---- */

int64_t track_grain_ns(const struct track *t, struct host_ns since)
{
	int level = 0;

	while (level + 1 < TRACK_TIERS && t->tiers[level + 1].merge.n &&
	       (!t->tiers[level].n || tier_at(&t->tiers[level], 0)->begin.ns > since.ns))
		level++;
	return grains[level];
}

struct reading {
	struct host_ns from, until;
	void (*take)(void *context, const struct track_piece *piece);
	void *context;
};

static void piece_read(const struct reading *r, const struct track_piece *piece)
{
	struct track_piece cut = *piece;
	int64_t end = piece_end(piece);

	if (end <= r->from.ns || piece->begin.ns >= r->until.ns)
		return;
	if (end > r->until.ns)
		end = r->until.ns;
	if (cut.begin.ns < r->from.ns)
		cut.begin = r->from;
	cut.ns = end - cut.begin.ns;
	r->take(r->context, &cut);
}

/* Returns the index of the first piece of a tier that ends after `t`. */
static size_t tier_find(const struct track_tier *tier, struct host_ns t)
{
	size_t low = 0, high = tier->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (piece_end(tier_at(tier, middle)) <= t.ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void track_each(const struct track *t, struct host_ns from, struct host_ns until,
		void (*take)(void *context, const struct track_piece *piece), void *context)
{
	const struct reading r = {from, until, take, context};

	for (int level = TRACK_TIERS; level-- > 0;) {
		const struct track_tier *tier = &t->tiers[level];
		struct track_merge merge = tier->merge;

		for (size_t i = tier_find(tier, from);
		     i < tier->n && tier_at(tier, i)->begin.ns < until.ns; i++)
			piece_read(&r, tier_at(tier, i));
		if (merge.n) {
			struct track_piece rest = merge_close(&merge);

			piece_read(&r, &rest);
		}
	}
}
