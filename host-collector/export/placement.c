/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/placement.h"

#include <errno.h>
#include <stdlib.h>

void placement_fini(struct placement *p)
{
	free(p->waiting);
	p->waiting = NULL;
}

static const struct placement_event *waiting_at(const struct placement *p, size_t i)
{
	return &p->waiting[(p->first + i) % p->capacity];
}

void placement_init(struct placement *p, uint64_t host_begin, struct placement_counts *counts)
{
	*p = (struct placement){
		.host_begin = host_begin,
		.counts = counts,
		.doubt_from = 0,
		.doubt_until = UINT64_MAX,
	};
}

/* How far an event may be from where it belongs. One nanosecond is what keeps it off the instant of
 * the entry or the exit itself. */
static uint64_t tolerance(const struct placement *p, const struct placement_event *e)
{
	return (uint64_t)e->err_ns + p->err_ns + 1;
}

static void put(struct placement *p, const struct placement_event *e, uint64_t t,
		enum placement_ground ground)
{
	uint64_t by;

	if (t < p->last)
		t = p->last;
	t = p->put(p->context, e, t, ground);
	p->last = t;
	by = t > e->t ? t - e->t : e->t - t;
	p->counts->events++;
	p->counts->moved += by != 0;
	if (by > tolerance(p, e)) {
		p->counts->beyond++;
		if (by > p->counts->worst_ns)
			p->counts->worst_ns = by;
	}
}

/* Those from before the host's capture are left out. */
static bool covered(struct placement *p, const struct placement_event *e)
{
	if (e->t >= p->host_begin)
		return true;
	p->counts->uncovered++;
	return false;
}

struct distances {
	uint64_t left, right;
};

static struct distances distances_of(const struct placement *p, const struct placement_event *e,
				     uint64_t first)
{
	return (struct distances){
		.left = p->left_known ? (e->t > p->left ? e->t - p->left : 0) : UINT64_MAX,
		.right = first > e->t ? first - e->t : 0,
	};
}

/* Can only having run unseen explain this event, if it comes back at `first`? */
static bool is_unseen(const struct placement *p, const struct placement_event *e, uint64_t first)
{
	struct distances d = distances_of(p, e, first);
	uint64_t some = tolerance(p, e);

	return p->doubt_from < p->doubt_until && d.left > some && d.right > some &&
	       (e->t >= p->doubt_from || p->doubt_from - e->t <= some) &&
	       (e->t < p->doubt_until || e->t - p->doubt_until <= some);
}

/* Nearest to `e`, if it comes back at `first`: when it left, when it comes back, or, if it may have
 * run unseen and no error explains the event otherwise, where it is. */
static void settle(struct placement *p, const struct placement_event *e, uint64_t first)
{
	struct distances d = distances_of(p, e, first);

	if (!covered(p, e))
		return;
	if (!d.right)
		put(p, e, e->t, PLACEMENT_KNOWN);
	else if (is_unseen(p, e, first))
		put(p, e,
		    e->t < p->doubt_from    ? p->doubt_from
		    : e->t > p->doubt_until ? p->doubt_until
					    : e->t,
		    PLACEMENT_ALONE);
	else if (d.left <= d.right)
		put(p, e, p->left, PLACEMENT_KNOWN);
	else
		put(p, e, first, PLACEMENT_KNOWN);
}

static struct placement_event take(struct placement *p)
{
	struct placement_event e = *waiting_at(p, 0);

	p->first = (p->first + 1) % p->capacity;
	p->n--;
	return e;
}

static int wait(struct placement *p, const struct placement_event *e)
{
	if (p->n == p->capacity) {
		size_t capacity = p->capacity ? 2 * p->capacity : 64;
		struct placement_event *bigger = malloc(capacity * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		for (size_t i = 0; i < p->n; i++)
			bigger[i] = *waiting_at(p, i);
		free(p->waiting);
		p->waiting = bigger;
		p->capacity = capacity;
		p->first = 0;
	}
	p->waiting[(p->first + p->n++) % p->capacity] = *e;
	return 0;
}

int placement_add(struct placement *p, const struct placement_event *e, bool on_cpu)
{
	if (!p->n && p->state == PLACEMENT_PRESENT) {
		put(p, e, e->t > p->entered ? e->t : p->entered, PLACEMENT_KNOWN);
		return 0;
	}
	if (!p->n && p->state == PLACEMENT_UNSURE && on_cpu) {
		put(p, e, e->t, PLACEMENT_RUNNING);
		return 0;
	}
	if (p->n == PLACEMENT_WAITING_MAX) {
		struct placement_event oldest = take(p);

		settle(p, &oldest, UINT64_MAX);
	}
	return wait(p, e);
}

void placement_enter(struct placement *p, uint64_t first, uint32_t err_ns)
{
	p->err_ns = err_ns;
	while (p->n) {
		struct placement_event e = take(p);

		settle(p, &e, first);
	}
	p->state = PLACEMENT_PRESENT;
	p->entered = first;
	p->doubt_from = p->doubt_until = UINT64_MAX;
}

void placement_leave(struct placement *p, uint64_t last, uint32_t err_ns)
{
	p->err_ns = err_ns;
	if (p->state == PLACEMENT_AWAY)
		return;
	while (p->n) {
		struct placement_event e = take(p);

		if (!covered(p, &e))
			continue;
		if (e.t < p->doubt_from && p->left_known && e.t - p->left <= p->doubt_from - e.t)
			put(p, &e, p->left, PLACEMENT_KNOWN);
		else
			put(p, &e,
			    e.t < p->doubt_from ? p->doubt_from
			    : e.t < last        ? e.t
						: last,
			    PLACEMENT_RUNNING);
	}
	/* So short a stay that it holds no instant between its entry and its exit leaves `left`;
	 * and where it may have run unseen, only an event proves that it did. */
	if (p->state == PLACEMENT_UNSURE && p->left_known) {
		if (p->last > p->left)
			p->left = p->last;
	} else if (p->state != PLACEMENT_PRESENT || last >= p->entered) {
		p->left = last > p->last ? last : p->last;
		p->left_known = true;
	}
	p->state = PLACEMENT_AWAY;
	p->doubt_from = p->doubt_until = UINT64_MAX;
}

void placement_doubt(struct placement *p, uint64_t from, bool on_cpu)
{
	if (p->state == PLACEMENT_UNSEEN)
		return;
	if (p->state == PLACEMENT_PRESENT) {
		p->left = from > p->last ? from : p->last;
		if (p->left < p->entered) /* the entry was the last that was seen */
			p->left = p->entered;
		p->left_known = true;
	}
	/* It came back from where it may have run unseen: now it is known what happened there. */
	while (on_cpu && p->state == PLACEMENT_AWAY && p->n &&
	       is_unseen(p, waiting_at(p, 0), from + 1)) {
		struct placement_event e = take(p);

		settle(p, &e, from + 1);
	}
	/* What was known until then touches that instant. */
	if (p->doubt_from > from + 1 || (on_cpu && p->state != PLACEMENT_UNSURE))
		p->doubt_from = from + 1;
	p->doubt_until = UINT64_MAX;
	p->state = PLACEMENT_UNSURE;
}

void placement_away(struct placement *p, uint64_t t)
{
	if (p->state == PLACEMENT_AWAY)
		return;
	if (p->state == PLACEMENT_UNSEEN) {
		p->doubt_from = UINT64_MAX; /* it was away as far back as the host was captured */
	} else if (p->last > p->left || !p->left_known) {
		p->left = p->last;
		p->left_known = p->last != 0;
	}
	p->doubt_until = t;
	p->state = PLACEMENT_AWAY;
}

void placement_finish(struct placement *p, uint64_t host_end, bool host_seen)
{
	while (p->n) {
		struct placement_event e = take(p);

		if (host_seen && e.t > host_end)
			p->counts->uncovered++;
		else if (host_seen)
			settle(p, &e, UINT64_MAX);
		else
			put(p, &e, e.t, PLACEMENT_ALONE);
	}
}
