// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/analyze/event/pair_detail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/event/event_list.h"
#include "proto/array.h"
#include "proto/program/value.h"

/* The event of a hit's stack comes this much before the hit, at most. */
enum { STACK_BEFORE_NS = 1000000 };

struct pair_lines {
	struct pair_detail_line *items;
	size_t n, capacity;
	uint64_t hidden;
};

struct pair_detail {
	const struct pairs *pairs;
	struct pair_detail_options options;
	struct event_reader *reader;
	struct pair_lines lines[PAIR_KEPT_MAX];
	struct model_window windows[PAIR_KEPT_MAX];
	int64_t begin_ns, end_ns; /* of all windows */
	int err;
};

/* ---- options ---- */

static int duration_read(const char *text, int64_t *out)
{
	uint64_t ns;

	if (duration_parse(text, &ns))
		return -EINVAL;
	*out = (int64_t)ns;
	return 0;
}

static int word_read(const char *word, struct pair_detail_options *out)
{
	static const struct {
		const char *word;
		size_t offset;
	} words[] = {
		{"samevcpu", offsetof(struct pair_detail_options, same_vcpu)},
		{"samecpu", offsetof(struct pair_detail_options, same_cpu)},
		{"sametask", offsetof(struct pair_detail_options, same_task)},
		{"sametid", offsetof(struct pair_detail_options, same_task)}, /* perf-prof's */
		{"samekey", offsetof(struct pair_detail_options, same_key)},
	};

	if (*word == '-')
		return duration_read(word + 1, &out->before_ns);
	if (*word == '+')
		return duration_read(word + 1, &out->after_ns);
	if (!strncmp(word, "hide<", 5))
		return duration_read(word + 5, &out->hide_ns);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(word, words[i].word)) {
			*(bool *)((char *)out + words[i].offset) = true;
			return 0;
		}
	}
	return -EINVAL;
}

int pair_detail_parse(const char *text, struct pair_detail_options *out, char *why,
		      size_t why_bytes)
{
	char copy[256], *rest, *word;

	*out = (struct pair_detail_options){0};
	if (strlen(text) >= sizeof(copy)) {
		snprintf(why, why_bytes, "--detail: longer than %zu bytes", sizeof(copy) - 1);
		return -EINVAL;
	}
	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		if (!word_read(word, out))
			continue;
		snprintf(why, why_bytes,
			 "--detail: expected -1ms, +1ms, hide<1ms, samevcpu, samecpu, sametask or "
			 "samekey, found '%s'",
			 word);
		return -EINVAL;
	}
	return 0;
}

/* ---- events ---- */

static bool same_vcpu(const struct event_row *row, const struct pair_end *end)
{
	return row->vcpu_known && end->vcpu_known && row->vm == end->vm && row->vcpu == end->vcpu;
}

static bool same_cpu(const struct event_row *row, const struct pair_end *end)
{
	return row->source == end->source && row->event->cpu == end->cpu;
}

static bool same_task(const struct event_row *row, const struct pair_end *end)
{
	return row->source == end->source && end->tid >= 0 && event_row_task(row) == end->tid;
}

static bool same_key(struct event_row *row, const struct pair *pair)
{
	struct pair_key key;

	return row->choice->key.n && pair_key_of(row, pair->key.of_vm, &key) &&
	       pair_key_equal(&key, &pair->key);
}

static bool is_end(const struct event_row *row, const struct pair *pair)
{
	return (row->t.ns == pair->from.t.ns && row->number == pair->from.choice) ||
	       (row->t.ns == pair->to.t.ns && row->number == pair->to.choice);
}

static bool is_shown(const struct pair_detail *d, struct event_row *row, const struct pair *pair)
{
	const struct pair_detail_options *o = &d->options;
	const struct pair_end *a = &pair->from, *b = &pair->to;
	const int64_t first = (a->t.ns < b->t.ns ? a : b)->t.ns;
	const int64_t last = (a->t.ns < b->t.ns ? b : a)->t.ns;

	if (row->t.ns < first - o->before_ns || row->t.ns > last + o->after_ns)
		return false;
	if (is_end(row, pair))
		return true;
	if (o->same_vcpu)
		event_row_vcpu(row);
	return (!o->same_vcpu || same_vcpu(row, a) || same_vcpu(row, b)) &&
	       (!o->same_cpu || same_cpu(row, a) || same_cpu(row, b)) &&
	       (!o->same_task || same_task(row, a) || same_task(row, b)) &&
	       (!o->same_key || same_key(row, pair));
}

static void line_add(struct pair_detail *d, struct pair_lines *l, struct event_row *row,
		     const struct pair *pair)
{
	struct pair_detail_line line = {.t = row->t, .choice = row->number};
	FILE *out;
	size_t len;

	if (l->n == PAIR_DETAIL_LINES_MAX) {
		l->hidden++;
		return;
	}
	if (ARRAY_RESERVE(&l->items, l->n, &l->capacity, 32)) {
		d->err = -ENOMEM;
		return;
	}
	out = open_memstream(&line.text, &len);
	if (!out) {
		d->err = -ENOMEM;
		return;
	}
	event_text_write(row, pair->from.t.ns, out);
	event_stack_write(row, out);
	if (fclose(out) || !line.text) {
		free(line.text);
		d->err = -ENOMEM;
		return;
	}
	l->items[l->n++] = line;
}

static void on_row(void *context, struct event_row *row)
{
	struct pair_detail *d = context;
	const struct pair *pair;

	if (row->t.ns < d->begin_ns || row->t.ns > d->end_ns)
		return;
	for (size_t i = 0; (pair = pairs_kept(d->pairs, i)); i++) {
		if (is_shown(d, row, pair))
			line_add(d, &d->lines[i], row, pair);
	}
}

struct pair_detail *pair_detail_new(struct model *m, const struct event_choices *choices,
				    const struct pairs *pairs,
				    const struct pair_detail_options *options)
{
	struct pair_detail *d = calloc(1, sizeof(*d));
	const struct event_sink sink = {.row = on_row, .context = d};
	const struct pair *pair;
	size_t i;

	if (!d)
		return NULL;
	d->pairs = pairs;
	d->options = *options;
	d->begin_ns = INT64_MAX;
	d->end_ns = INT64_MIN;
	for (i = 0; (pair = pairs_kept(pairs, i)); i++) {
		const int64_t begin =
			pair->from.t.ns - options->before_ns - pair->duration_ns - STACK_BEFORE_NS;
		const int64_t end = pair->to.t.ns + options->after_ns + (int64_t)pair->from.err_ns;

		d->windows[i] = (struct model_window){{begin}, {end}};
		d->begin_ns = begin < d->begin_ns ? begin : d->begin_ns;
		d->end_ns = end > d->end_ns ? end : d->end_ns;
	}
	if (event_choices_alone(choices))
		model_need_instants(m, d->windows, i);
	d->reader = event_reader_new(m, choices, &sink);
	if (d->reader)
		return d;
	free(d);
	return NULL;
}

void pair_detail_free(struct pair_detail *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < PAIR_KEPT_MAX; i++) {
		for (size_t k = 0; k < d->lines[i].n; k++)
			free(d->lines[i].items[k].text);
		free(d->lines[i].items);
	}
	event_reader_free(d->reader);
	free(d);
}

/* Removes each line that has a neighbour nearer than hide_ns on both sides. The events of the pair
 * itself stay. */
static void lines_hide(struct pair_lines *l, const struct pair *pair, int64_t hide_ns)
{
	size_t kept = 0;
	int64_t before = INT64_MIN;

	for (size_t i = 0; i < l->n; i++) {
		struct pair_detail_line line = l->items[i];
		const bool own =
			(line.t.ns == pair->from.t.ns && line.choice == pair->from.choice) ||
			(line.t.ns == pair->to.t.ns && line.choice == pair->to.choice);
		const bool first = before == INT64_MIN, last = i + 1 == l->n;
		const bool near = !first && !last && line.t.ns - before < hide_ns &&
				  l->items[i + 1].t.ns - line.t.ns < hide_ns;

		before = line.t.ns;
		if (near && !own) {
			free(line.text);
			l->hidden++;
		} else {
			l->items[kept++] = line;
		}
	}
	l->n = kept;
}

int pair_detail_finish(struct pair_detail *d)
{
	const struct pair *pair;

	for (size_t i = 0; (pair = pairs_kept(d->pairs, i)); i++) {
		if (d->options.hide_ns)
			lines_hide(&d->lines[i], pair, d->options.hide_ns);
	}
	return d->err;
}

const struct pair_detail_line *pair_detail_get(const struct pair_detail *d, size_t pair, size_t i)
{
	return i < d->lines[pair].n ? &d->lines[pair].items[i] : NULL;
}

uint64_t pair_detail_hidden(const struct pair_detail *d, size_t pair)
{
	return d->lines[pair].hidden;
}
