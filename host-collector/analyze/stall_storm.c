/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Many short times in which the host keeps a vCPU from the guest, none of them the threshold long:
 * a quota of a tenth per 100 ms, swap at 5 ms a page. Without the guest's side no stretch of a task
 * adds them up, so they are added up here: over a window that lasts as long as they are at least
 * half of it, at most 1 s. A window ends with the last of them.
 */
#include "host-collector/analyze/stall_internal.h"

#define STORM_WINDOW_NS 1000000000ll

static void storm_tell(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k)
{
	struct stall_facts *f = &k->storm_told;

	if (k->storm_pieces > 1 && facts_denied_by_host(f) >= d->options.than_ns) {
		f->kind = GUEST_CPU_UNKNOWN;
		f->than_ns = d->options.than_ns;
		stall_tell(d, v, f);
	}
	k->storm_open = false;
	k->storm_pieces = 0;
}

void stall_storm_piece(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k)
{
	struct stall_facts next = k->storm;

	if (!k->storm_open)
		return;
	if (facts_duration(&k->chain) >= d->options.than_ns) {
		storm_tell(d, v, k); /* this one is told by itself */
		return;
	}
	facts_end(&next, k->chain.end);
	if (2 * facts_denied_by_host(&next) < facts_duration(&next) ||
	    facts_duration(&next) > STORM_WINDOW_NS) {
		storm_tell(d, v, k);
		k->storm = k->chain; /* the first of the next window */
		k->storm.end.ns = INT64_MAX;
		k->storm_open = true;
		next = k->chain;
	}
	k->storm_told = next;
	k->storm_pieces++;
}

void stall_storm_span(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k,
		      const struct vcpu_span *span)
{
	if (model_data_of(d->model, span->vm).guest_events) {
		k->storm_open = false;
		k->storm_pieces = 0;
		return;
	}
	if (!k->storm_open && !vcpu_span_denies(span))
		return;
	if (!k->storm_open) {
		facts_begin(&k->storm, span->vm, k->cpu, span->begin);
		k->storm_open = true;
	}
	facts_vcpu_span(&k->storm, span);
	/* Nothing for so long that no later piece can make half of it. */
	if (!vcpu_span_denies(span) &&
	    span->end.ns - k->storm.begin.ns > STORM_WINDOW_NS + d->options.than_ns)
		storm_tell(d, v, k);
}

void stall_storm_finish(struct stall_detector *d, const struct stall_vm *v, struct stall_track *k)
{
	if (k->storm_open)
		storm_tell(d, v, k);
}
