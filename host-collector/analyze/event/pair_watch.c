// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/analyze/event/pair_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPEN_MAX = 4096,
	PENDING_MAX = 4096,
	/* time to wait for the events of a pair, until it is reported that they are unknown */
	TICKS_SILENT = 50,
};

#define OVER_GAP_NS 1000000000ll

struct watched_pair {
	struct pair_watch *watch;
	struct pair_definition definition;
	struct event_choices choices;
	bool has_choices;
	struct pairs *pairs; /* NULL: its events are not known yet */
	struct pair_history *history;
	struct host_ns over; /* time of the last call of `over` */
	bool was_over;
	struct pair_unknown why;
};

struct pair_watch {
	struct model *model;
	struct pair_watch_options options;
	size_t n;
	struct watched_pair pairs[PAIR_WATCH_MAX];
	size_t n_events; /* number of descriptions at the last check */
	unsigned ticks;
};

/* ---- a pair that took long ---- */

static void on_settled(void *context, const struct pair *pair)
{
	struct watched_pair *w = context;
	const struct pair_watch_options *o = &w->watch->options;

	pair_history_add(w->history, pair);
	if (pair->duration_ns < (int64_t)w->definition.than_ns)
		return;
	if (o->each)
		o->each(o->context, &w->definition, &w->choices, pair);
	if (!pair->is_call || !w->definition.than_ns || !o->over ||
	    (w->was_over && pair->to.t.ns - w->over.ns < OVER_GAP_NS))
		return;
	w->was_over = true;
	w->over = pair->to.t;
	o->over(o->context, &w->definition, pair);
}

/* ---- events that become known ---- */

static int choices_find(struct watched_pair *w)
{
	const struct user_events *known = model_user_events(w->watch->model);
	const struct pair_definition *d = &w->definition;
	const struct message_user_event *e;
	const char *key;
	uint32_t source;
	int err = event_choices_init(&w->choices);

	w->has_choices = !err;
	w->why.part = "from";
	for (size_t i = 0; !err && (e = user_events_at(known, i, &source)); i++)
		err = event_schemas_describe(w->choices.schemas, source, e);
	if (!err)
		err = event_choices_add(&w->choices, d->from, &w->why.error);
	if (!err) {
		w->why.part = "to";
		err = event_choices_add(&w->choices, d->to, &w->why.error);
	}
	if (!err) {
		w->why.part = "key";
		key = *d->key ? d->key : event_choices_cross(&w->choices) ? "vcpu" : "cpu";
		err = event_choices_key(&w->choices, key, &w->why.error);
	}
	return err;
}

static void pair_find(struct watched_pair *w)
{
	const struct pairs_options options = {
		.than_ns = (int64_t)w->definition.than_ns,
		.without_states = true,
		.with_fields = w->watch->options.with_fields,
		.settled = on_settled,
		.context = w,
		.open_max = OPEN_MAX,
		.pending_max = PENDING_MAX,
		.round_pairs = PAIR_ROUND_PAIRS,
	};
	int err = choices_find(w);

	if (!err) {
		w->pairs = pairs_new(w->watch->model, &w->choices, &options);
		if (w->pairs)
			return;
		err = -ENOMEM;
	}
	w->why.out_of_memory = err == -ENOMEM;
	if (w->has_choices)
		event_choices_fini(&w->choices);
	w->has_choices = false;
}

static size_t events_known(const struct pair_watch *w)
{
	const struct user_events *known = model_user_events(w->model);
	uint32_t source;
	size_t n = w->n_events;

	while (user_events_at(known, n, &source))
		n++;
	return n;
}

void pair_watch_tick(struct pair_watch *w)
{
	const size_t n_events = events_known(w);
	const bool grown = n_events != w->n_events;

	w->n_events = n_events;
	w->ticks += w->ticks <= TICKS_SILENT;
	for (size_t i = 0; i < w->n; i++) {
		struct watched_pair *p = &w->pairs[i];

		if (!p->pairs && grown)
			pair_find(p);
		if (!p->pairs && w->ticks == TICKS_SILENT && w->options.uncounted)
			w->options.uncounted(w->options.context, &p->definition, &p->why);
	}
}

int pair_watch_finish(struct pair_watch *w)
{
	int err = 0;

	for (size_t i = 0; i < w->n && !err; i++) {
		if (w->pairs[i].pairs)
			err = pairs_finish(w->pairs[i].pairs);
	}
	return err;
}

/* ---- life ---- */

struct pair_watch *pair_watch_new(struct model *m, const struct pair_watch_options *options)
{
	struct pair_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->model = m;
	w->options = *options;
	w->n = options->n < PAIR_WATCH_MAX ? options->n : PAIR_WATCH_MAX;
	w->options.definitions = NULL;
	w->n_events = events_known(w);
	for (size_t i = 0; i < w->n; i++) {
		w->pairs[i].watch = w;
		w->pairs[i].definition = options->definitions[i];
		w->pairs[i].history = pair_history_new();
		if (!w->pairs[i].history) {
			pair_watch_free(w);
			return NULL;
		}
		pair_find(&w->pairs[i]);
	}
	return w;
}

void pair_watch_free(struct pair_watch *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n; i++) {
		pairs_free(w->pairs[i].pairs);
		pair_history_free(w->pairs[i].history);
		if (w->pairs[i].has_choices)
			event_choices_fini(&w->pairs[i].choices);
	}
	free(w);
}

bool pair_watch_kept(const struct pair_watch *w, size_t i, struct pair_kept *out)
{
	if (i >= w->n)
		return false;
	*out = (struct pair_kept){&w->pairs[i].definition, w->pairs[i].history, w->pairs[i].pairs};
	return true;
}

bool pair_watch_get(const struct pair_watch *w, size_t i, struct pair_watch_counts *out)
{
	static const struct histogram none;
	const struct pair_row *row;

	if (i >= w->n)
		return false;
	*out = (struct pair_watch_counts){.name = w->pairs[i].definition.name, .times = &none};
	row = w->pairs[i].pairs ? pairs_row(w->pairs[i].pairs, 0) : NULL;
	if (!row)
		return true;
	out->times = &row->calls.times;
	out->over = row->calls.beyond;
	out->unpaired = row->unpaired_from + row->unpaired_to;
	out->incomplete = row->incomplete;
	out->undecided = row->past_losses.times.count + row->past_both.times.count;
	out->ambiguous = row->ambiguous;
	return true;
}
