/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/timeline/standstill.h"

void standstills_note(struct standstills *s, struct host_tsc at, bool stops)
{
	if (!stops && s->still && at.ticks > s->since.ticks)
		s->spans[s->n++ % STANDSTILLS_MAX] = (struct standstill){s->since, at};
	if (stops)
		s->since = at;
	s->still = stops;
}

void standstills_evade(const struct standstills *s, struct host_tsc *t, uint64_t *err_ticks)
{
	size_t n = standstills_kept(s);

	for (size_t i = 0; i < n; i++) {
		const struct standstill *x = &s->spans[i];
		uint64_t back = t->ticks - x->begin.ticks, on = x->end.ticks - t->ticks;
		uint64_t moved = back < on ? back : on;

		if (t->ticks <= x->begin.ticks || t->ticks >= x->end.ticks)
			continue;
		if (moved > *err_ticks)
			return; /* reports with certainty that it was inside: for the audit */
		*t = back < on ? x->begin : x->end;
		*err_ticks += *err_ticks + moved < *err_ticks ? 0 : moved;
		return;
	}
}
