/* SPDX-License-Identifier: GPL-2.0-only */
#include "clock/cycle_clock.h"

typedef __int128 s128;
typedef unsigned __int128 u128;

bool cycle_clock_valid(const struct cycle_clock *c)
{
	return c->mult && c->shift < 64;
}

uint64_t cycle_clock_ns(const struct cycle_clock *c, uint64_t cycles)
{
	s128 product = (s128)(int64_t)(cycles - c->cycles0) * c->mult;

	return c->ns0 + (uint64_t)(product >> c->shift);
}

/* The least delta of cycles worth `ns` or more. */
static s128 first_delta(const struct cycle_clock *c, s128 ns)
{
	s128 product = ns * ((s128)1 << c->shift);
	s128 q = product / c->mult;

	return q + (product > 0 && product % c->mult != 0);
}

bool cycle_clock_cycles(const struct cycle_clock *c, uint64_t ns, uint64_t *first, uint64_t *span)
{
	s128 delta = (int64_t)(ns - c->ns0);
	s128 from = first_delta(c, delta), end = first_delta(c, delta + 1);

	if (from < INT64_MIN || end > INT64_MAX)
		return false;
	*first = c->cycles0 + (uint64_t)from;
	*span = end > from ? (uint64_t)(end - from - 1) : 0;
	return true;
}

static bool perf_page_valid(const struct perf_page_clock *page)
{
	return page->user_time_zero && page->time_mult && page->time_shift < 64;
}

bool perf_page_ns(const struct perf_page_clock *page, struct host_tsc tsc, struct perf_ns *out)
{
	uint64_t cycles = tsc.ticks;

	if (!perf_page_valid(page))
		return false;
	if (page->user_time_short)
		cycles = page->time_cycles + ((cycles - page->time_cycles) & page->time_mask);
	/* Unlike the others this counts from cycle 0, so all 64 bits are a magnitude. */
	out->ns = page->time_zero + (uint64_t)((u128)cycles * page->time_mult >> page->time_shift);
	return true;
}

static u128 first_cycle(const struct perf_page_clock *page, u128 ns)
{
	u128 product = ns << page->time_shift;

	return product / page->time_mult + (product % page->time_mult != 0);
}

bool perf_page_tsc(const struct perf_page_clock *page, struct perf_ns t, struct host_tsc *first,
		   uint64_t *span)
{
	uint64_t ns = t.ns - page->time_zero;
	u128 from, end;

	if (!perf_page_valid(page))
		return false;
	from = first_cycle(page, ns);
	end = first_cycle(page, (u128)ns + 1);
	if (from > UINT64_MAX)
		return false;
	first->ticks = (uint64_t)from;
	*span = end > from ? (uint64_t)(end - from - 1) : 0;
	return true;
}

void clock_mult_shift(uint32_t from_hz, uint32_t to_hz, uint32_t seconds, uint32_t *mult,
		      uint32_t *shift)
{
	uint64_t overflow = (uint64_t)seconds * from_hz >> 32;
	uint32_t room = 32, s;
	uint64_t m = 0;

	/* Bits that the largest number of cycles leaves for the multiplier. */
	for (; overflow; overflow >>= 1)
		room--;
	for (s = 32; s > 0; s--) {
		m = (((uint64_t)to_hz << s) + from_hz / 2) / from_hz;
		if (!(m >> room))
			break;
	}
	*mult = (uint32_t)m;
	*shift = s;
}
