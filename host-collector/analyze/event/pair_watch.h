/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts named pairs of a live model: those of the sections [pair NAME] of the daemon's
 * configuration, and of `watch --pair`. Events that a user chose have descriptions in the streams,
 * so the counts of a pair begin when both of its events are known.
 */
#ifndef EVENT_PAIR_WATCH_H
#define EVENT_PAIR_WATCH_H

#include "host-collector/analyze/event/pair_definition.h"
#include "host-collector/analyze/event/pair_history.h"
#include "host-collector/analyze/event/pairs.h"

/* Why the events of a pair are unknown. */
struct pair_unknown {
	bool out_of_memory;      /* the other members are unset */
	const char *part;        /* of the definition: "from", "to" or "key" */
	struct expr_error error; /* what is wrong with it */
};

struct pair_watch_options {
	const struct pair_definition *definitions; /* at most PAIR_WATCH_MAX; copied */
	size_t n;
	/* A pair took at least than_ns. Called at most once per second and definition. */
	void (*over)(void *context, const struct pair_definition *definition,
		     const struct pair *pair);
	/* Called for each pair of at least than_ns. If pair->is_call is false, events were lost
	 * between its events, and it is not known yet whether it is a call (pairs_options.settled).
	 * `choices`: its events. */
	void (*each)(void *context, const struct pair_definition *definition,
		     const struct event_choices *choices, const struct pair *pair);
	bool with_fields; /* the pairs of `each` have the fields of their events */
	/* A pair is not counted because its events are unknown. why: valid during the call. */
	void (*uncounted)(void *context, const struct pair_definition *definition,
			  const struct pair_unknown *why);
	void *context;
};

struct pair_watch;

/* Subscribes to the model, which must not receive events after pair_watch_free(). Returns NULL if
 * there is no memory. */
struct pair_watch *pair_watch_new(struct model *m, const struct pair_watch_options *options);
void pair_watch_free(struct pair_watch *w); /* NULL is allowed */
/* Looks for events that were not known yet. Call it about every 100 ms. */
void pair_watch_tick(struct pair_watch *w);
/* Settles what still waits; call it after the last event. Returns 0 or -ENOMEM. */
int pair_watch_finish(struct pair_watch *w);

/* Gets definition number i with the pairs that are kept of it. pairs: NULL if its events are not
 * known yet. Returns false past the last. Valid until the model gets another event. */
bool pair_watch_kept(const struct pair_watch *w, size_t i, struct pair_kept *out);

struct pair_watch_counts {
	const char *name;
	const struct histogram *times; /* of calls; valid until the model gets another event */
	uint64_t over;                 /* calls of at least than_ns */
	uint64_t unpaired, incomplete, ambiguous;
	/* Pairs past losses that will be calls or incomplete when this round ends
	 * (pairs_options.round_pairs). */
	uint64_t undecided;
};
/* Gets the counts of definition number i, which only grow, except `undecided`. Returns false past
 * the last. While the events of a pair are not known, its counts are 0. */
bool pair_watch_get(const struct pair_watch *w, size_t i, struct pair_watch_counts *out);

#endif
