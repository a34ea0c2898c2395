/* SPDX-License-Identifier: GPL-2.0-only */
#include "clock/tsc_scaling.h"

#include "clock/divide.h"

typedef unsigned __int128 u128;

bool tsc_scaling_valid(const struct tsc_scaling *s)
{
	return s->frac_bits < 64 && (!s->frac_bits || s->ratio);
}

struct guest_tsc tsc_scaling_to_guest(const struct tsc_scaling *s, struct host_tsc host)
{
	uint64_t scaled = host.ticks;

	if (s->frac_bits)
		scaled = (uint64_t)((u128)host.ticks * s->ratio >> s->frac_bits);
	return (struct guest_tsc){scaled + s->offset};
}

bool tsc_scaling_to_host(const struct tsc_scaling *s, struct guest_tsc guest,
			 struct host_tsc *first, uint64_t *span)
{
	uint64_t scaled = guest.ticks - s->offset;
	u128 product;

	*span = 0;
	if (!s->frac_bits) {
		first->ticks = scaled;
		return true;
	}
	product = (u128)scaled << s->frac_bits;
	if (product >> 64 >= s->ratio)
		return false;
	first->ticks = divide_range((uint64_t)(product >> 64), (uint64_t)product, s->ratio,
				    1ull << s->frac_bits, span);
	if (*span > UINT64_MAX - first->ticks)
		*span = UINT64_MAX - first->ticks;
	/* The quotient was 2^64 - 1 and has been rounded up. */
	return first->ticks || !scaled;
}
