/* SPDX-License-Identifier: GPL-2.0-only */
#include "clock/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The clocks a map can be entered by, and the columns it is searched by. */
enum column { COLUMN_HOST, COLUMN_GUEST, COLUMN_KVMCLOCK, N_COLUMNS };

/* What each clock reads where the epoch begins, and where the next one begins. */
struct edge {
	uint64_t begin, end;
};

struct clock_map {
	size_t n, allocated;
	struct clock_params *params;
	struct edge *edges[N_COLUMNS];
	bool rising[N_COLUMNS]; /* never set back: binary search is allowed */
};

struct clock_map *clock_map_new(void)
{
	struct clock_map *m = calloc(1, sizeof(*m));

	if (m)
		memset(m->rising, true, sizeof(m->rising));
	return m;
}

void clock_map_free(struct clock_map *m)
{
	if (!m)
		return;
	free(m->params);
	for (int c = 0; c < N_COLUMNS; c++)
		free(m->edges[c]);
	free(m);
}

static bool params_valid(const struct clock_params *p)
{
	return tsc_scaling_valid(&p->scaling) && (!p->has_pvclock || pvclock_valid(&p->pvclock));
}

static bool params_same(const struct clock_params *a, const struct clock_params *b)
{
	bool same_ratio = a->scaling.frac_bits == b->scaling.frac_bits &&
			  (!a->scaling.frac_bits || a->scaling.ratio == b->scaling.ratio);

	return same_ratio && a->scaling.offset == b->scaling.offset &&
	       a->has_pvclock == b->has_pvclock &&
	       (!a->has_pvclock || pvclock_same_line(&a->pvclock, &b->pvclock));
}

static int map_grow(struct clock_map *m)
{
	size_t wanted = m->allocated ? m->allocated * 2 : 16;
	struct clock_params *params;

	params = realloc(m->params, wanted * sizeof(*params));
	if (!params)
		return -ENOMEM;
	m->params = params;
	for (int c = 0; c < N_COLUMNS; c++) {
		struct edge *edges = realloc(m->edges[c], wanted * sizeof(*edges));

		if (!edges)
			return -ENOMEM;
		m->edges[c] = edges;
	}
	m->allocated = wanted;
	return 0;
}

static void map_forget_oldest(struct clock_map *m)
{
	m->n--;
	memmove(m->params, m->params + 1, m->n * sizeof(*m->params));
	for (int c = 0; c < N_COLUMNS; c++)
		memmove(m->edges[c], m->edges[c] + 1, m->n * sizeof(*m->edges[c]));
}

/* What each clock reads at `host` by parameters p. */
static void columns_read(const struct clock_params *p, struct host_tsc host,
			 uint64_t value[N_COLUMNS])
{
	struct guest_tsc guest = tsc_scaling_to_guest(&p->scaling, host);

	value[COLUMN_HOST] = host.ticks;
	value[COLUMN_GUEST] = guest.ticks;
	value[COLUMN_KVMCLOCK] = p->has_pvclock ? pvclock_from_tsc(&p->pvclock, guest).ns : 0;
}

int clock_map_push(struct clock_map *m, struct host_tsc from, const struct clock_params *params)
{
	uint64_t begin[N_COLUMNS], end[N_COLUMNS];
	int r;

	if (!params_valid(params))
		return -EINVAL;
	if (m->n) {
		if (from.ticks < m->edges[COLUMN_HOST][m->n - 1].begin)
			return -EINVAL;
		if (params_same(&m->params[m->n - 1], params)) {
			m->params[m->n - 1].pvclock.flags = params->pvclock.flags;
			return 0;
		}
	}
	if (m->n == CLOCK_MAP_EPOCHS_MAX)
		map_forget_oldest(m);
	if (m->n == m->allocated) {
		r = map_grow(m);
		if (r)
			return r;
	}
	columns_read(params, from, begin);
	if (m->n)
		columns_read(&m->params[m->n - 1], from, end);
	for (int c = 0; c < N_COLUMNS; c++) {
		if (m->n) {
			struct edge *last = &m->edges[c][m->n - 1];

			last->end = end[c];
			if (begin[c] < end[c] || end[c] < last->begin)
				m->rising[c] = false;
		}
		m->edges[c][m->n] = (struct edge){begin[c], UINT64_MAX};
	}
	if (m->n && !(params->has_pvclock && m->params[m->n - 1].has_pvclock))
		m->rising[COLUMN_KVMCLOCK] = false;
	m->params[m->n++] = *params;
	return 1;
}

size_t clock_map_n_epochs(const struct clock_map *m)
{
	return m->n;
}

const struct clock_params *clock_map_epoch(const struct clock_map *m, size_t i,
					   struct host_tsc *from)
{
	if (from)
		from->ticks = m->edges[COLUMN_HOST][i].begin;
	return &m->params[i];
}

/*
 * The last epoch that begins at or before `value`, or the first. Events come in no order that a
 * branch predictor could learn, so the search has no branches but its loop's.
 */
static inline size_t epoch_search(const struct edge *edges, size_t n, uint64_t value)
{
	const struct edge *at = edges;

	if (value >= edges[n - 1].begin)
		return n - 1;
	while (n > 1) {
		size_t half = n / 2;

		at = at[half].begin <= value ? at + half : at;
		n -= half;
	}
	return (size_t)(at - edges);
}

/* The same where the clock was set back somewhere: the newest that passed the value. */
static size_t epoch_scan(const struct clock_map *m, enum column column, uint64_t value)
{
	const struct edge *edges = m->edges[column];
	size_t before = m->n;

	for (size_t e = m->n; e-- > 0;) {
		if (column == COLUMN_KVMCLOCK && !m->params[e].has_pvclock)
			continue;
		if (edges[e].begin <= value && value <= edges[e].end)
			return e;
		if (edges[e].begin <= value && before == m->n)
			before = e;
	}
	return before < m->n ? before : 0;
}

static size_t epoch_of(const struct clock_map *m, enum column column, uint64_t value)
{
	if (m->rising[column])
		return epoch_search(m->edges[column], m->n, value);
	return epoch_scan(m, column, value);
}

bool clock_map_guest_tsc(const struct clock_map *m, struct host_tsc host, struct guest_tsc *out)
{
	const struct clock_params *p;

	if (!m->n)
		return false;
	p = &m->params[epoch_search(m->edges[COLUMN_HOST], m->n, host.ticks)];
	*out = tsc_scaling_to_guest(&p->scaling, host);
	return true;
}

bool clock_map_kvmclock(const struct clock_map *m, struct host_tsc host, struct kvmclock_ns *out)
{
	const struct clock_params *p;

	if (!m->n)
		return false;
	p = &m->params[epoch_search(m->edges[COLUMN_HOST], m->n, host.ticks)];
	if (!p->has_pvclock)
		return false;
	*out = pvclock_from_tsc(&p->pvclock, tsc_scaling_to_guest(&p->scaling, host));
	return true;
}

bool clock_params_from_kvmclock(const struct clock_params *p, struct kvmclock_ns t,
				struct host_tsc *first, uint64_t *err_ticks)
{
	struct guest_tsc guest, after;
	struct host_tsc end;
	uint64_t span, last, unused;

	if (!p->has_pvclock || !pvclock_to_tsc(&p->pvclock, t, &guest, &span))
		return false;
	/* No instant lies before the host's tick 0. */
	last = guest.ticks + span - p->scaling.offset;
	if (span > last)
		span = last;
	guest.ticks = last - span + p->scaling.offset;
	if (!tsc_scaling_to_host(&p->scaling, guest, first, err_ticks))
		return false;
	if (!p->scaling.frac_bits) {
		*err_ticks = span;
		return true;
	}
	/* Up to the host tick before the one that reads more. */
	after.ticks = guest.ticks + span + 1;
	if (!tsc_scaling_to_host(&p->scaling, after, &end, &unused))
		*err_ticks = UINT64_MAX - first->ticks;
	else if (end.ticks > first->ticks)
		*err_ticks = end.ticks - first->ticks - 1;
	return true;
}

/* Past the end of its epoch a value was read there all the same, or the jump left it out. */
static void past_end_add(const struct clock_map *m, size_t e, struct host_tsc first,
			 uint64_t *err_ticks)
{
	uint64_t end = m->edges[COLUMN_HOST][e].end;

	if (e + 1 < m->n && first.ticks > end)
		*err_ticks += first.ticks - end;
}

bool clock_map_from_guest_tsc(const struct clock_map *m, struct guest_tsc guest,
			      struct host_tsc *first, uint64_t *err_ticks)
{
	size_t e;

	if (!m->n)
		return false;
	e = epoch_of(m, COLUMN_GUEST, guest.ticks);
	if (!tsc_scaling_to_host(&m->params[e].scaling, guest, first, err_ticks))
		return false;
	past_end_add(m, e, *first, err_ticks);
	return true;
}

bool clock_map_from_kvmclock(const struct clock_map *m, struct kvmclock_ns t,
			     struct host_tsc *first, uint64_t *err_ticks)
{
	size_t e;

	if (!m->n)
		return false;
	e = epoch_of(m, COLUMN_KVMCLOCK, t.ns);
	if (!clock_params_from_kvmclock(&m->params[e], t, first, err_ticks))
		return false;
	past_end_add(m, e, *first, err_ticks);
	return true;
}
