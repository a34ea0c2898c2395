/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/shown_events.h"

#include <stdlib.h>

void shown_events_fini(struct shown_events *s)
{
	for (size_t i = 0; i < VS_CPUS_MAX; i++)
		free(s->of_vcpu[i]);
	user_hits_free(s->hits);
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

/* ---- hits ---- */

int shown_hit_vcpu(const struct model *m, const struct user_hit *hit, uint32_t *vm, uint32_t *vcpu)
{
	if (hit->source != VS_SOURCE_HOST)
		return model_vcpu_of_guest_cpu(m, hit->source, hit->head.cpu, vcpu);
	return model_vcpu_of_thread(m, hit->head.pid, vm, vcpu);
}

static void on_hit(void *context, const struct user_hit *hit)
{
	struct shown_events *s = context;
	struct shown_hits *of;
	uint32_t vm, vcpu;

	/* USER_LIMITED counts hits that became no event. */
	if (!hit->event || hit->head.type != VS_EVENT_USER ||
	    shown_hit_vcpu(s->model, hit, &vm, &vcpu) || vcpu >= VS_CPUS_MAX)
		return;
	if (!s->of_vcpu[vcpu])
		s->of_vcpu[vcpu] = calloc(1, sizeof(*of));
	of = s->of_vcpu[vcpu];
	if (of)
		of->ring[of->n++ % SHOWN_HITS_KEPT] = *hit;
}

void shown_hits_take(struct shown_events *s, const struct model *m, uint32_t source,
		     const struct vs_event *e, struct host_ns t, uint32_t err_ns)
{
	if (!s->hits && e->type != VS_EVENT_USER)
		return;
	s->model = m;
	if (!s->hits)
		s->hits = user_hits_new(model_user_events(m), on_hit, s);
	if (s->hits)
		user_hits_take(s->hits, source, e, t.ns, err_ns);
}

void shown_hits_flush(struct shown_events *s)
{
	if (s->hits)
		user_hits_flush(s->hits);
}

static void facts_hit_add(struct stall_facts *f, const struct user_hit *hit)
{
	unsigned k = 0;

	while (k < f->n_hits && f->hits[k].first->event != hit->event)
		k++;
	if (k == FACTS_HITS) {
		f->other_hits++;
		return;
	}
	if (k == f->n_hits)
		f->hits[f->n_hits++] = (struct facts_hits){.first = hit};
	f->hits[k].count++;
	if (hit->t_ns < f->hits[k].first->t_ns) /* it waited for its last record */
		f->hits[k].first = hit;
}

static void hits_fill(const struct shown_hits *of, struct stall_facts *f)
{
	const uint64_t oldest = of->n > SHOWN_HITS_KEPT ? of->n - SHOWN_HITS_KEPT : 0;

	f->hits_cut = oldest && of->ring[oldest % SHOWN_HITS_KEPT].t_ns > f->begin.ns;
	for (uint64_t i = oldest; i < of->n; i++) {
		const struct user_hit *hit = &of->ring[i % SHOWN_HITS_KEPT];

		if (hit->t_ns >= f->begin.ns && hit->t_ns <= f->end.ns)
			facts_hit_add(f, hit);
	}
}

void shown_events_fill(const struct shown_events *s, struct stall_facts *f)
{
	f->n_events = f->n_hits = f->other_hits = 0;
	f->hits_cut = false;
	if (!f->vcpu_known)
		return;
	if (f->vcpu < VS_CPUS_MAX && s->of_vcpu[f->vcpu])
		hits_fill(s->of_vcpu[f->vcpu], f);
	for (uint64_t i = s->n > SHOWN_EVENTS_KEPT ? s->n - SHOWN_EVENTS_KEPT : 0; i < s->n; i++) {
		const struct shown_event *e = &s->ring[i % SHOWN_EVENTS_KEPT];

		if (e->vcpu == f->vcpu && e->t.ns >= f->begin.ns && e->t.ns <= f->end.ns)
			facts_event_add(f, e);
	}
}
