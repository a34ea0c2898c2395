/* SPDX-License-Identifier: GPL-2.0-only */
#include "clock/pvclock.h"

#include "clock/divide.h"

typedef unsigned __int128 u128;
typedef __int128 s128;

bool pvclock_valid(const struct pvclock *p)
{
	return p->mul && p->shift >= -31 && p->shift <= 31;
}

bool pvclock_same_line(const struct pvclock *a, const struct pvclock *b)
{
	return a->tsc_timestamp == b->tsc_timestamp && a->system_time == b->system_time &&
	       a->mul == b->mul && a->shift == b->shift;
}

struct kvmclock_ns pvclock_from_tsc(const struct pvclock *p, struct guest_tsc tsc)
{
	int64_t delta = (int64_t)(tsc.ticks - p->tsc_timestamp);
	/* gcc shifts negative numbers arithmetically: both shifts round down. */
	s128 d = p->shift < 0 ? (s128)(delta >> -p->shift) : (s128)delta * ((s128)1 << p->shift);

	return (struct kvmclock_ns){p->system_time + (uint64_t)(d * p->mul >> 32)};
}

static s128 divide_up(s128 a, uint32_t b)
{
	s128 q = a / b;

	return q + (a > 0 && a % b != 0);
}

/* The least delta at which kvmclock is `ns` past system_time or more. */
static s128 first_delta(const struct pvclock *p, s128 ns)
{
	s128 d = divide_up(ns * ((s128)1 << 32), p->mul);

	if (p->shift < 0)
		return d * ((s128)1 << -p->shift);
	return -(-d >> p->shift); /* rounded up */
}

bool pvclock_to_tsc(const struct pvclock *p, struct kvmclock_ns t, struct guest_tsc *first,
		    uint64_t *span)
{
	uint64_t since = t.ns - p->system_time;
	s128 ns = (int64_t)since, from, end;

	/* What nearly always is: KVM normalises mul to 2^31 and more, and shift to -1, 0 or 1. */
	if (since >> 32 < p->mul && since < 1ull << 62 && p->shift <= 0 && p->shift >= -1) {
		uint64_t delta = divide_range(since >> 32, since << 32, p->mul, 1ull << 32, span);

		if (delta >> 62 == 0 && p->mul >= 1u << 31) {
			first->ticks = p->tsc_timestamp + (delta << -p->shift);
			*span = (*span + 1) * (1u << -p->shift) - 1;
			return true;
		}
	}
	from = first_delta(p, ns);
	end = first_delta(p, ns + 1);
	if (from < INT64_MIN || end > INT64_MAX)
		return false;
	first->ticks = p->tsc_timestamp + (uint64_t)from;
	*span = end > from ? (uint64_t)(end - from - 1) : 0;
	return true;
}
