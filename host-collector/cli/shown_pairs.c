/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/shown_pairs.h"

#include <errno.h>
#include <stdlib.h>

#include "host-collector/analyze/stall/builder.h"
#include "host-collector/engine/pair_evidence.h"

/* A pair of the list. Which pairs past losses are calls is decided at the end, so each doubt has a
 * map of its own. */
struct shown_pair {
	struct shown_pairs *of;
	unsigned number;
	struct pair_of_run run; /* pairs NULL: it is not shown */
	struct pair_history *history;
	struct latency_map *maps[LANE_DOUBTS]; /* NULL before the first pair, and without a page */
};

/* An incident that was noticed, with the pairs of each definition that overlap it. */
struct asked {
	uint16_t guest_cpu;
	struct pair_window window;
	struct pair_overlaps *found; /* as many as definitions */
};

/* An incident is noticed at most this long after the next ones: older ones need not be looked at.
 */
#define ASKED_DISORDER_NS 10000000000ll

struct shown_pairs {
	struct model *model;
	struct shown_pairs_options options;
	struct event_schemas *schemas; /* of the recording */
	size_t n;
	struct shown_pair all[PAIR_WATCH_MAX];
	size_t n_asked;
	struct asked *asked; /* REPORT_INCIDENTS_MAX, in the order in which they were noticed */
	int error;
};

static struct latency_map *map_get(struct shown_pair *c, uint8_t doubt)
{
	struct latency_map *map = c->maps[doubt];

	if (!map) {
		map = calloc(1, sizeof(*map));
		if (map)
			latency_map_init(map, model_begin(c->of->model));
		c->maps[doubt] = map;
	}
	return map;
}

static void page_take(struct shown_pair *c, const struct pair *pair)
{
	struct shown_pairs *p = c->of;
	const struct pair_end *on = pair->from.vcpu_known ? &pair->from : &pair->to;
	const struct lane_key key = {.kind = LANE_PAIR,
				     .number = c->number,
				     .of_vm = on->vm_known,
				     .of_vcpu = on->vcpu_known,
				     .vm = on->vm_known ? on->vm : 0,
				     .vcpu = on->vcpu_known ? on->vcpu : 0};
	const struct lane_mark mark = {
		.begin = pair->from.t,
		.ns = pair->duration_ns,
		.n = 1,
		.sum_ns = pair->duration_ns,
		.doubt = pair->past_both ? 2 : pair->past_losses,
	};
	struct latency_map *map = map_get(c, mark.doubt);

	if (!map || latency_map_add(map, pair->from.t, pair->duration_ns))
		p->error = -ENOMEM;
	scenes_pair(p->options.scenes, &key, p->options.list->items[c->number].name, &mark);
}

static void on_settled(void *context, const struct pair *pair)
{
	struct shown_pair *c = context;

	struct shown_pairs *p = c->of;

	pair_history_add(c->history, pair);
	for (size_t i = p->n_asked; i-- > 0;) {
		struct asked *asked = &p->asked[i];

		if (asked->window.until.ns + ASKED_DISORDER_NS < pair->from.t.ns)
			break;
		pair_overlaps_add(&asked->found[c->number], pair, &asked->window);
	}
	if (p->options.scenes)
		page_take(c, pair);
}

static int pair_start(struct shown_pair *c)
{
	const struct shown_pairs_options *o = &c->of->options;
	const struct pairs_options options = {
		.without_states = true, .narrow = o->narrow, .settled = on_settled, .context = c};
	char why[512];
	int err;

	c->history = pair_history_new();
	if (!c->history)
		return -ENOMEM;
	err = pair_of_run_start(&c->run, c->of->model, o->recording, c->of->schemas,
				&o->list->items[c->number], &options, why, sizeof(why));
	if (err == -EINVAL)
		o->say(why);
	return err == -EINVAL ? 0 : err;
}

struct shown_pairs *shown_pairs_new(struct model *m, const struct shown_pairs_options *options)
{
	struct shown_pairs *p = calloc(1, sizeof(*p));
	int err = 0;

	if (!p)
		return NULL;
	p->model = m;
	p->options = *options;
	p->asked = calloc(REPORT_INCIDENTS_MAX, sizeof(*p->asked));
	p->schemas = pair_events_read(options->recording);
	err = p->asked && p->schemas ? 0 : -ENOMEM;
	while (p->n < options->list->n && !err) {
		struct shown_pair *c = &p->all[p->n];

		c->of = p;
		c->number = (unsigned)p->n++;
		err = pair_start(c);
	}
	if (!err)
		return p;
	shown_pairs_free(p);
	return NULL;
}

void shown_pairs_free(struct shown_pairs *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++) {
		pair_of_run_fini(&p->all[i].run);
		pair_history_free(p->all[i].history);
		for (size_t doubt = 0; doubt < LANE_DOUBTS; doubt++) {
			if (p->all[i].maps[doubt])
				latency_map_fini(p->all[i].maps[doubt]);
			free(p->all[i].maps[doubt]);
		}
	}
	event_schemas_free(p->schemas);
	for (size_t i = 0; i < p->n_asked; i++)
		free(p->asked[i].found);
	free(p->asked);
	free(p);
}

void shown_pairs_notice(struct shown_pairs *p, const struct incident *incident)
{
	struct asked *asked;

	if (p->n_asked == REPORT_INCIDENTS_MAX)
		return;
	asked = &p->asked[p->n_asked];
	asked->guest_cpu = incident->guest_cpu;
	asked->window = pair_window_of(incident);
	asked->found = calloc(p->n, sizeof(*asked->found));
	if (!asked->found) {
		p->error = -ENOMEM;
		return;
	}
	p->n_asked++;
	for (size_t i = 0; i < p->n; i++)
		asked->found[i] = pair_history_find(p->all[i].history, NULL, &asked->window);
}

static const struct asked *asked_find(const struct shown_pairs *p, const struct incident *incident)
{
	for (size_t i = 0; i < p->n_asked; i++) {
		const struct asked *asked = &p->asked[i];

		if (asked->window.vm == incident->vm && asked->guest_cpu == incident->guest_cpu &&
		    asked->window.vcpu == incident->vcpu &&
		    asked->window.from.ns == incident->begin.ns &&
		    asked->window.until.ns == incident->end.ns)
			return asked;
	}
	return NULL;
}

void shown_pairs_evidence(void *context, struct incident *incident)
{
	const struct shown_pairs *p = context;
	const struct asked *asked = asked_find(p, incident);
	struct pair_found all[PAIR_WATCH_MAX];

	for (size_t i = 0; asked && i < p->n; i++)
		all[i] = (struct pair_found){&p->options.list->items[i], asked->found[i]};
	pair_evidence_add(all, asked ? p->n : 0, incident);
}

int shown_pairs_finish(struct shown_pairs *p)
{
	int err = p->error;

	for (size_t i = 0; i < p->n && !err; i++) {
		if (p->all[i].run.pairs)
			err = pairs_finish(p->all[i].run.pairs);
	}
	return err ? err : p->error;
}

/* Puts the maps of all calls into the first one. */
static int count_finish(struct shown_pair *c, struct page_pair *out)
{
	const struct pair_row *row;
	uint8_t accepted;
	int err = 0;

	row = pairs_row(c->run.pairs, 0);
	if (!row || !map_get(c, 0))
		return -ENOMEM;
	/* Those past both are accepted only if those past one loss are. */
	accepted = row->calls_past_both ? 2 : row->calls_past_losses ? 1 : 0;
	for (uint8_t doubt = 1; doubt <= accepted && !err; doubt++) {
		if (c->maps[doubt])
			err = latency_map_merge(c->maps[0], c->maps[doubt]);
	}
	scenes_pair_accept(c->of->options.scenes, c->number, accepted);
	*out = (struct page_pair){
		.name = c->of->options.list->items[c->number].name,
		.from = c->of->options.list->items[c->number].from,
		.to = c->of->options.list->items[c->number].to,
		.map = c->maps[0],
		.unpaired_from = row->unpaired_from,
		.unpaired_to = row->unpaired_to,
		.incomplete = row->incomplete,
		.ambiguous = row->ambiguous,
	};
	return err;
}

int shown_pairs_page(struct shown_pairs *p, struct page *page)
{
	int err = p->error;

	for (size_t i = 0; i < p->n && !err; i++) {
		if (p->all[i].run.pairs)
			err = count_finish(&p->all[i], &page->pairs[page->n_pairs++]);
	}
	return err ? err : p->error;
}
