/* SPDX-License-Identifier: GPL-2.0-only */
#include "clock/tsc_scaling.h"

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

/* The first host tick whose scaled value is `scaled` or more. */
static u128 first_host(const struct tsc_scaling *s, u128 scaled)
{
	u128 product = scaled << s->frac_bits;

	/* One division of 128 by 64 bits where the quotient fits, which it nearly always does. */
	return product / s->ratio + (product % s->ratio != 0);
}

bool tsc_scaling_to_host(const struct tsc_scaling *s, struct guest_tsc guest,
			 struct host_tsc *first, uint64_t *span)
{
	uint64_t scaled = guest.ticks - s->offset;
	u128 from, end;

	*span = 0;
	if (!s->frac_bits) {
		first->ticks = scaled;
		return true;
	}
	from = first_host(s, scaled);
	if (from > UINT64_MAX)
		return false;
	first->ticks = (uint64_t)from;
	if (s->ratio >> s->frac_bits)
		return true; /* not slower: no two host ticks read the same */
	end = first_host(s, (u128)scaled + 1);
	if (end > UINT64_MAX)
		end = (u128)UINT64_MAX + 1;
	if (end > from)
		*span = (uint64_t)(end - from - 1);
	return true;
}
