/* SPDX-License-Identifier: GPL-2.0-only */
/* What other parts of the daemon read from the flight recorder: its frames, its counts, its state.
 */
#include <errno.h>
#include <stdio.h>

#include "clock/sample.h"
#include "host-collector/daemon/flight_internal.h"
#include "host-collector/daemon/flight_ring.h"

enum { JOIN_PER_S = 5 }; /* a client that joins gets the last fifth of a second too */

/* Stores the counts of the pairs for the metrics page. Returns their number. */
static size_t pairs_gather(struct flight_vm *v)
{
	struct pair_watch_counts counts;
	size_t n = 0;

	for (; v->pairs && pair_watch_get(v->pairs, n, &counts); n++)
		v->pair_counts[n] = (struct metrics_pair){
			.name = counts.name,
			.times = counts.times,
			.over = counts.over,
			.uncounted = {[METRICS_UNPAIRED] = counts.unpaired,
				      [METRICS_INCOMPLETE] = counts.incomplete,
				      [METRICS_AMBIGUOUS] = counts.ambiguous},
		};
	return n;
}

size_t flight_metrics(const struct flight *f, struct metrics_part *parts, size_t max,
		      const struct metrics_sum **past)
{
	size_t n = 0;

	*past = &f->past;
	for (struct flight_vm *v = f->vms; v && n < max; v = v->next) {
		if (!v->live || !v->metrics)
			continue;
		parts[n++] = (struct metrics_part){.name = flight_vm_name(v),
						   .metrics = v->metrics,
						   .pipeline = live_pipeline(v->live),
						   .pairs = v->pair_counts,
						   .n_pairs = pairs_gather(v)};
	}
	return n;
}

static int ring_begin(struct flight *f, const struct watched_vm *vm, uint64_t since_tsc,
		      const struct frame_taker *out, struct flight_places **places)
{
	struct flight_vm *v = flight_find(f, vm);
	struct flight_ring_stats stats;

	*places = NULL;
	if (!v)
		return -ENOENT;
	flight_ring_stats_get(v->ring, &stats);
	return stats.frames && v->live
		       ? flight_ring_begin(v->ring, live_model(v->live), since_tsc, out, places)
		       : -ENODATA;
}

int flight_continue(struct flight *f, const struct watched_vm *vm, size_t max_bytes,
		    struct recording_writer *out, struct flight_places **places)
{
	const struct frame_taker taker = frame_taker_of(out);
	const struct flight_vm *v = flight_find(f, vm);

	return ring_begin(f, vm, v ? flight_ring_since(v->ring, max_bytes) : 0, &taker, places);
}

int flight_join(struct flight *f, const struct watched_vm *vm, const struct frame_taker *out,
		struct flight_places **places)
{
	return ring_begin(f, vm, clock_tsc_read() - f->host_hz / JOIN_PER_S, out, places);
}

void flight_activity_get(const struct flight *f, const struct watched_vm *vm,
			 struct flight_activity *out)
{
	const struct flight_vm *v = flight_find(f, vm);

	*out = (struct flight_activity){0};
	if (!v || !v->live)
		return;
	*out = (struct flight_activity){.rows = v->rows,
					.n_rows = v->n_rows,
					.seconds = (double)v->look_ms / 1000,
					.ongoing = live_ongoing(v->live, COLLECTOR_VM),
					.last = v->stalled ? &v->last : NULL};
}

void flight_queue_get(const struct flight *f, struct incident_store_stats *out)
{
	incident_store_stats_get(f->store, out);
}

void flight_status_get(const struct flight *f, const struct watched_vm *vm,
		       struct flight_status *out)
{
	const struct flight_vm *v = flight_find(f, vm);
	struct flight_ring_stats stats;
	struct pipeline_source guest;

	*out = (struct flight_status){0};
	if (!v)
		return;
	flight_ring_stats_get(v->ring, &stats);
	*out = (struct flight_status){.on = true,
				      .bytes = stats.bytes,
				      .early = stats.early,
				      .incidents = v->incidents,
				      .triggered = v->triggered,
				      .folders = v->folders,
				      .suppressed = v->suppressed};
	if (!v->live || !live_source(v->live, COLLECTOR_VM, &guest) || !guest.hello)
		return;
	snprintf(out->clock_method, sizeof(out->clock_method), "%s",
		 guest.clock_untrusted ? "untrusted" : guest.clock_method);
	out->clock_error_ns = guest.clock_untrusted ? UINT64_MAX : guest.clock_error_median_ns;
}
