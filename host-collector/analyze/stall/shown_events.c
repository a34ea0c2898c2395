/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/shown_events.h"

#include <stdlib.h>

void shown_events_fini(struct shown_events *s)
{
	free(s->ring);
	*s = (struct shown_events){0};
}

void shown_events_take(struct shown_events *s, const struct host_instant *i)
{
	if (!event_type_is(i->event.type, EVENT_EVIDENCE))
		return;
	if (!s->ring)
		s->ring = calloc(SHOWN_EVENTS_KEPT, sizeof(*s->ring));
	if (s->ring)
		s->ring[s->n++ % SHOWN_EVENTS_KEPT] =
			(struct shown_event){.vcpu = i->vcpu, .t = i->t, .event = i->event};
}

static void facts_event_add(struct stall_facts *f, const struct shown_event *e)
{
	unsigned k = 0;

	while (k < f->n_events && f->events[k].first.type != e->event.type)
		k++;
	if (k == FACTS_EVENTS)
		return;
	if (k == f->n_events)
		f->events[f->n_events++] = (struct facts_events){.t = e->t, .first = e->event};
	f->events[k].count++;
}

void shown_events_fill(const struct shown_events *s, struct stall_facts *f)
{
	f->n_events = 0;
	if (!f->vcpu_known)
		return;
	for (uint64_t i = s->n > SHOWN_EVENTS_KEPT ? s->n - SHOWN_EVENTS_KEPT : 0; i < s->n; i++) {
		const struct shown_event *e = &s->ring[i % SHOWN_EVENTS_KEPT];

		if (e->vcpu == f->vcpu && e->t.ns >= f->begin.ns && e->t.ns <= f->end.ns)
			facts_event_add(f, e);
	}
}
