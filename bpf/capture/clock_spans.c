/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/capture/clock_spans.h"

static void span_keep(struct clock_spans *s)
{
	if (s->clock.n_samples < 2)
		s->n = 0;
	else if (!s->n || s->spans[(s->n - 1) % CLOCK_SPANS].after.tsc != s->clock.after.tsc)
		s->spans[s->n++ % CLOCK_SPANS] = s->clock;
}

void clock_spans_init(struct clock_spans *s, const struct clock_sample *first)
{
	s->n = 0;
	capture_clock_init(&s->clock);
	capture_clock_push(&s->clock, first);
}

void clock_spans_push(struct clock_spans *s, const struct clock_sample *sample)
{
	capture_clock_push(&s->clock, sample);
	span_keep(s);
}

void clock_spans_extend(struct clock_spans *s, const struct clock_sample *sample)
{
	capture_clock_extend(&s->clock, sample);
	span_keep(s);
}

const struct capture_clock *clock_spans_at(const struct clock_spans *s, uint64_t monotonic_ns)
{
	size_t first = s->n > CLOCK_SPANS ? s->n - CLOCK_SPANS : 0, i = s->n;

	while (i > first && s->spans[(i - 1) % CLOCK_SPANS].before.monotonic_ns > monotonic_ns)
		i--;
	if (i == first && s->n)
		i++; /* the time is before all known spans */
	return i ? &s->spans[(i - 1) % CLOCK_SPANS] : &s->clock;
}
