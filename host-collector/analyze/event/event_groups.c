// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/analyze/event/event_groups.h"

#include <errno.h>
#include <stdlib.h>

#include "host-collector/util/lru.h"

struct event_groups {
	const struct model *model;
	struct event_groups_options options;
	struct event_reader *reader;
	bool of_vm[EVENT_CHOICES_MAX];
	struct lru index;
	struct event_group *rows;
	size_t n;
	struct event_group others[EVENT_CHOICES_MAX];
	size_t n_choices;
	struct event_groups_limits limits;
	bool out_of_memory;
};

static struct event_group *group_of(struct event_groups *g, size_t choice,
				    const struct pair_key *key)
{
	const uint64_t hash = pair_key_hash((unsigned)choice, key);
	uint32_t slot = lru_find(&g->index, hash);
	bool fresh;

	if (slot != LRU_NONE)
		return &g->rows[slot];
	if (g->n == EVENT_GROUPS_ROWS_MAX) {
		g->limits.keys_joined++;
		return &g->others[choice];
	}
	slot = lru_put(&g->index, hash, &fresh);
	g->rows[slot] = (struct event_group){.choice = choice, .key = *key};
	g->n++;
	return &g->rows[slot];
}

static void histogram_put(struct event_groups *g, struct histogram *h, uint64_t value, uint64_t n)
{
	if (n && histogram_add_many(h, value, n))
		g->out_of_memory = true;
}

static void interval_close(struct event_groups *g, struct event_group *group)
{
	if (!group->in_interval)
		return;
	histogram_put(g, &group->values, group->in_interval, 1);
	if (group->in_interval > group->in_busiest) {
		group->in_busiest = group->in_interval;
		group->busiest = group->interval;
	}
	group->in_interval = 0;
}

static void interval_count(struct event_groups *g, struct event_group *group, struct host_ns t)
{
	const int64_t now = (t.ns - model_begin(g->model).ns) / g->options.every_ns;

	if (now != group->interval)
		interval_close(g, group);
	group->interval = now;
	group->in_interval++;
}

/* Sets *out to the value to add. Returns false if the event has none. */
static bool value_of(struct event_groups *g, struct event_row *row, uint64_t *out)
{
	const struct expr_value value = event_row_eval(row, &row->choice->value);

	if (value.type != EXPR_SIGNED && value.type != EXPR_UNSIGNED) {
		g->limits.without_value++;
		return false;
	}
	if (value.type == EXPR_SIGNED && (int64_t)value.number < 0) {
		g->limits.negative++;
		return false;
	}
	*out = value.number;
	return true;
}

static void on_row(void *context, struct event_row *row)
{
	struct event_groups *g = context;
	struct event_group *group;
	struct pair_key key;
	uint64_t value = 0;

	if (!event_row_selected(row, g->options.narrow))
		return;
	if (!pair_key_of(row, g->of_vm[row->number], &key)) {
		g->limits.without_key++;
		return;
	}
	if (g->options.values && !value_of(g, row, &value))
		return;
	group = group_of(g, row->number, &key);
	group->count++;
	group->sum = value > UINT64_MAX - group->sum ? UINT64_MAX : group->sum + value;
	if (g->options.every_ns)
		interval_count(g, group, row->t);
	else if (g->options.values)
		histogram_put(g, &group->values, value, 1);
}

struct event_groups *event_groups_new(struct model *m, const struct event_choices *choices,
				      const struct event_groups_options *options)
{
	struct event_groups *g = calloc(1, sizeof(*g));
	const struct event_sink sink = {.row = on_row, .context = g};

	if (!g)
		return NULL;
	g->model = m;
	g->options = *options;
	g->n_choices = choices->n;
	for (size_t i = 0; i < choices->n; i++) {
		g->of_vm[i] = pair_key_names_vm(&choices->items[i].key);
		g->others[i].choice = i;
	}
	g->rows = calloc(EVENT_GROUPS_ROWS_MAX, sizeof(*g->rows));
	if (g->rows && !lru_init(&g->index, EVENT_GROUPS_ROWS_MAX))
		g->reader = event_reader_new(m, choices, &sink);
	if (g->reader)
		return g;
	event_groups_free(g);
	return NULL;
}

void event_groups_free(struct event_groups *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->n; i++)
		histogram_fini(&g->rows[i].values);
	for (size_t i = 0; i < g->n_choices; i++)
		histogram_fini(&g->others[i].values);
	event_reader_free(g->reader);
	lru_fini(&g->index);
	free(g->rows);
	free(g);
}

/* Intervals without events count as 0. */
static void intervals_finish(struct event_groups *g, struct event_group *group, uint64_t n)
{
	interval_close(g, group);
	if (group->values.count < n)
		histogram_put(g, &group->values, 0, n - group->values.count);
}

int event_groups_finish(struct event_groups *g)
{
	const int64_t length = model_now(g->model).ns - model_begin(g->model).ns;

	for (size_t i = 0; g->options.every_ns && i < g->n; i++)
		intervals_finish(g, &g->rows[i], (uint64_t)(length / g->options.every_ns) + 1);
	for (size_t i = 0; g->options.every_ns && i < g->n_choices; i++) {
		if (g->others[i].count)
			intervals_finish(g, &g->others[i],
					 (uint64_t)(length / g->options.every_ns) + 1);
	}
	return g->out_of_memory ? -ENOMEM : 0;
}

const struct event_group *event_groups_get(const struct event_groups *g, size_t i)
{
	if (i < g->n)
		return &g->rows[i];
	i -= g->n;
	for (size_t k = 0; k < g->n_choices; k++) {
		if (g->others[k].count && !i--)
			return &g->others[k];
	}
	return NULL;
}

struct event_groups_limits event_groups_limits_get(const struct event_groups *g)
{
	return g->limits;
}
