/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/engine/pair_evidence.h"

#include <stdio.h>
#include <stdlib.h>

static int longest_first(const void *a, const void *b)
{
	const struct pair_found *x = a, *y = b;
	const int64_t x_ns = x->pairs.longest.duration_ns, y_ns = y->pairs.longest.duration_ns;

	if (x_ns != y_ns)
		return x_ns > y_ns ? -1 : 1;
	return x->definition < y->definition ? -1 : x->definition > y->definition;
}

static struct report_evidence *evidence_new(struct incident *incident)
{
	struct report_evidence *e;

	if (incident->n_evidence == REPORT_EVIDENCE_MAX)
		return NULL;
	e = &incident->evidence[incident->n_evidence++];
	*e = (struct report_evidence){.t = incident->begin};
	return e;
}

/* "msi, host:kvm:kvm_msi_set_irq to guest:irq:irq_handler_entry, key 0" */
static void name_write(const struct pair_found *o, char *out, size_t out_bytes)
{
	const struct pair_definition *d = o->definition;
	char key[2 * PAIR_KEY_BYTES];

	/* Filters and attributes of the events can be long. */
	snprintf(out, out_bytes, "%s, %.70s to %.70s, key %s", d->name, d->from, d->to,
		 pair_key_text(&o->pairs.longest.key, key, sizeof(key)));
}

static void line_add(const struct pair_found *o, struct incident *incident)
{
	const uint64_t error_ns = o->pairs.longest.error_ns;
	struct report_evidence *e = evidence_new(incident);

	if (!e)
		return;
	e->t = o->pairs.longest.begin;
	e->duration_ns = o->pairs.longest.duration_ns;
	e->seen.kind = o->pairs.more    ? FINDING_SEEN_KEPT_PAIRS
		       : o->pairs.n > 1 ? FINDING_SEEN_PAIRS
					: FINDING_SEEN_PAIR;
	e->seen.n[0] = o->pairs.n;
	e->seen.n[1] = o->pairs.longest.past_losses;
	e->seen.ns[0] = error_ns <= INT64_MAX ? (int64_t)error_ns : FINDING_NS_UNKNOWN;
	name_write(o, e->seen.name, sizeof(e->seen.name));
}

void pair_evidence_add(struct pair_found *all, size_t n, struct incident *incident)
{
	struct report_evidence *e;
	uint64_t others = 0;
	size_t lines = 0;

	if (n)
		qsort(all, n, sizeof(*all), longest_first);
	for (size_t i = 0; i < n; i++) {
		if (!all[i].pairs.n)
			continue;
		if (lines++ < REPORT_EVIDENCE_PAIRS - 1)
			line_add(&all[i], incident);
		else
			others += all[i].pairs.n;
	}
	e = others ? evidence_new(incident) : NULL;
	if (e)
		e->seen = (struct finding){.kind = FINDING_SEEN_OTHER_PAIRS, .n = {others}};
}

struct pair_window pair_window_of(const struct incident *incident)
{
	return (struct pair_window){incident->vm, incident->vcpu, incident->begin, incident->end};
}

void pair_evidence_watched(const struct pair_watch *w, struct incident *incident)
{
	const struct pair_window window = pair_window_of(incident);
	struct pair_found all[PAIR_WATCH_MAX];
	struct pair_kept kept;
	size_t n = 0;

	for (size_t i = 0; w && i < PAIR_WATCH_MAX && pair_watch_kept(w, i, &kept); i++) {
		if (kept.pairs)
			all[n++] = (struct pair_found){
				kept.definition,
				pair_history_find(kept.history, kept.pairs, &window)};
	}
	pair_evidence_add(all, n, incident);
}
