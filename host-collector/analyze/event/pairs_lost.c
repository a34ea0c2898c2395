// SPDX-License-Identifier: GPL-2.0-only
/*
 * A pair between whose events others were lost may be none: its true partners may be among the
 * lost ones. Losses of other CPUs concern a pair unless its key names the CPU.
 */
#include <stdlib.h>

#include "host-collector/analyze/event/pairs_internal.h"

static const struct pair_losses *losses_find(const struct pairs *p, uint32_t source)
{
	for (size_t i = 0; i < p->n_losses; i++) {
		if (p->losses[i].source == source)
			return &p->losses[i];
	}
	return NULL;
}

static struct pair_losses *losses_get(struct pairs *p, uint32_t source)
{
	struct pair_losses *l = (struct pair_losses *)losses_find(p, source);

	if (l || p->n_losses == MODEL_VMS_MAX + 1)
		return l;
	l = &p->losses[p->n_losses];
	*l = (struct pair_losses){.source = source, .newest_ns = INT64_MIN};
	l->cpus = malloc(VS_CPUS_MAX * sizeof(*l->cpus));
	if (!l->cpus)
		return NULL;
	for (size_t i = 0; i < VS_CPUS_MAX; i++)
		l->cpus[i] = INT64_MIN;
	p->n_losses++;
	return l;
}

/* Whether a loss of this CPU could have been of this end's key. */
static bool concerns(const struct pairs *p, const struct pair_end *end, uint32_t source,
		     uint16_t cpu)
{
	return end->source == source && (!p->bound[end->choice] || end->cpu == cpu);
}

static int64_t newest_of(const struct pairs *p, const struct pair_end *end)
{
	const struct pair_losses *l = losses_find(p, end->source);

	if (!l)
		return INT64_MIN;
	return p->bound[end->choice] ? l->cpus[end->cpu] : l->newest_ns;
}

bool pairs_lost_within(const struct pairs *p, const struct pair *pair)
{
	/* All losses known by now began before the pair's end. */
	return newest_of(p, &pair->from) >= pair->from.t.ns ||
	       newest_of(p, &pair->to) >= pair->from.t.ns;
}

void pairs_lost(void *context, uint32_t source, uint16_t cpu, struct host_ns since,
		struct host_ns until)
{
	struct pairs *p = context;
	struct pair_losses *l = losses_get(p, source);

	if (!l) {
		p->rows.out_of_memory = true;
		return;
	}
	if (until.ns > l->newest_ns)
		l->newest_ns = until.ns;
	if (until.ns > l->cpus[cpu])
		l->cpus[cpu] = until.ns;
	for (uint64_t i = p->pending_end; i-- > p->pending_first;) {
		struct pair_pending *w = &p->pending[i % PAIR_PENDING_MAX];

		if (w->since.ns < since.ns)
			break;
		if (w->pair.from.t.ns <= until.ns && w->pair.to.t.ns >= since.ns &&
		    (concerns(p, &w->pair.from, source, cpu) ||
		     concerns(p, &w->pair.to, source, cpu)))
			w->incomplete = true;
	}
}
