/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/pair_figures.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/query/described.h"

static const char prefix[] = "pair.";

/* ---- definitions ---- */

static bool name_is_good(const char *name, size_t len, size_t max)
{
	return len && len <= max &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") >=
		       len;
}

/* Reads A..B. An event may contain dots, too, so the first division into two events counts. */
static int events_split(const char *events, struct pair_definition *d, char *why, size_t why_bytes)
{
	int err = -EINVAL;

	snprintf(why, why_bytes, "want two events: A..B");
	for (const char *dots = events; err && (dots = strstr(dots, "..")); dots++) {
		const size_t len = (size_t)(dots - events);

		if (len >= sizeof(d->from) || strlen(dots + 2) >= sizeof(d->to)) {
			snprintf(why, why_bytes, "an event has more than %zu characters",
				 sizeof(d->from) - 1);
			continue;
		}
		snprintf(d->from, sizeof(d->from), "%.*s", (int)len, events);
		snprintf(d->to, sizeof(d->to), "%s", dots + 2);
		err = pair_definition_check(d, why, why_bytes);
	}
	return err;
}

static int pair_parse(const char *text, size_t name_max, struct pair_figure_list *out, char *why,
		      size_t why_bytes)
{
	struct pair_definition *d = &out->items[out->n];
	const size_t len = strcspn(text, "[=");
	const bool with_key = text[len] == '[';
	const char *equal = with_key ? strstr(text, "]=") : strchr(text, '=');

	if (!equal || !name_is_good(text, len, name_max)) {
		snprintf(why, why_bytes,
			 "want NAME=A..B or NAME[KEY]=A..B; NAME has up to %zu letters, digits, "
			 "'.', '_' and '-'",
			 name_max);
		return -EINVAL;
	}
	*d = (struct pair_definition){0};
	if (with_key && (size_t)snprintf(d->key, sizeof(d->key), "%.*s",
					 (int)(equal - text - (ptrdiff_t)len - 1),
					 text + len + 1) >= sizeof(d->key)) {
		snprintf(why, why_bytes, "the key has more than %zu characters",
			 sizeof(d->key) - 1);
		return -EINVAL;
	}
	equal += with_key;
	snprintf(d->name, sizeof(d->name), "%.*s", (int)len, text);
	for (size_t i = 0; i < out->n; i++) {
		if (!strcmp(out->items[i].name, d->name)) {
			snprintf(why, why_bytes, "there are two pairs of this name");
			return -EINVAL;
		}
	}
	snprintf(out->figures[out->n].text, sizeof(out->figures[0].text), "%s%.*s", prefix,
		 (int)len, text);
	return events_split(equal + 1, d, why, why_bytes);
}

int pair_list_parse(const struct option_list *texts, size_t name_max, struct pair_figure_list *out,
		    char *why, size_t why_bytes)
{
	char what[320] = "";

	out->n = 0;
	for (size_t i = 0; i < texts->n; i++) {
		int err = -EINVAL;

		if (i == PAIR_WATCH_MAX)
			snprintf(what, sizeof(what), "more than %d pairs", PAIR_WATCH_MAX);
		else
			err = pair_parse(texts->items[i], name_max, out, what, sizeof(what));
		if (err) {
			snprintf(why, why_bytes, "--pair %.120s: %s", texts->items[i], what);
			return err;
		}
		out->n++;
	}
	return 0;
}

int pair_figures_parse(const struct option_list *texts, struct pair_figure_list *out, char *why,
		       size_t why_bytes)
{
	return pair_list_parse(texts, FIGURE_NAME_MAX - sizeof(prefix), out, why, why_bytes);
}

/* ---- a recording ---- */

/* `what`: which part of the definition is wrong. */
static int choices_find(struct event_choices *choices, const struct pair_definition *d,
			const char **what, struct expr_error *error)
{
	const char *key = d->key;
	int err;

	*what = "from";
	err = event_choices_add(choices, d->from, error);
	if (!err) {
		*what = "to";
		err = event_choices_add(choices, d->to, error);
	}
	if (!err) {
		*what = "key";
		if (!*key)
			key = event_choices_cross(choices) ? "vcpu" : "cpu";
		err = event_choices_key(choices, key, error);
	}
	return err;
}

struct event_schemas *pair_events_read(const char *recording)
{
	struct event_schemas *schemas = event_schemas_new();

	if (schemas && !described_read(recording, schemas))
		return schemas;
	event_schemas_free(schemas);
	return NULL;
}

int pair_of_run_start(struct pair_of_run *p, struct model *m, const char *recording,
		      struct event_schemas *schemas, const struct pair_definition *d,
		      const struct pairs_options *options, char *why, size_t why_bytes)
{
	struct expr_error error = {0};
	const char *what = "from";
	int err;

	*p = (struct pair_of_run){.pairs = NULL};
	err = event_choices_share(&p->choices, schemas);
	if (!err)
		err = choices_find(&p->choices, d, &what, &error);
	if (!err) {
		p->pairs = pairs_new(m, &p->choices, options);
		err = p->pairs ? 0 : -ENOMEM;
	}
	if (err == -EINVAL)
		snprintf(why, why_bytes, "%s: pair %s, %s: %s", recording, d->name, what,
			 error.text);
	else if (err)
		snprintf(why, why_bytes, "%s: %s", recording, strerror(-err));
	return err;
}

void pair_of_run_fini(struct pair_of_run *p)
{
	pairs_free(p->pairs);
	event_choices_fini(&p->choices);
}

int pair_figures_start(struct pair_figures *f, struct model *m, const char *recording,
		       const struct pair_figure_list *list, char *why, size_t why_bytes)
{
	const struct pairs_options options = {.without_states = true};
	int err = 0;

	*f = (struct pair_figures){.list = list};
	if (!list->n)
		return 0;
	f->schemas = pair_events_read(recording);
	if (!f->schemas) {
		snprintf(why, why_bytes, "%s: %s", recording, strerror(ENOMEM));
		return -ENOMEM;
	}
	while (f->n < list->n && !err) {
		err = pair_of_run_start(&f->of[f->n], m, recording, f->schemas, &list->items[f->n],
					&options, why, why_bytes);
		f->n++;
	}
	return err;
}

int pair_figures_finish(struct pair_figures *f, struct summarizer *to)
{
	static const struct histogram none;
	int err = 0;

	for (size_t i = 0; i < f->n && !err; i++) {
		const struct pair_row *row;

		err = pairs_finish(f->of[i].pairs);
		row = pairs_row(f->of[i].pairs, 0);
		if (!err)
			err = summarizer_add(to, f->list->figures[i].text,
					     row ? &row->calls.times : &none);
	}
	return err;
}

void pair_figures_fini(struct pair_figures *f)
{
	for (size_t i = 0; i < f->n; i++)
		pair_of_run_fini(&f->of[i]);
	event_schemas_free(f->schemas);
	f->schemas = NULL;
	f->n = 0;
}
