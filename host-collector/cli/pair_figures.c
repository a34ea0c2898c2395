/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/pair_figures.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/query/described.h"

static const char prefix[] = "pair.";

/* ---- definitions ---- */

static bool name_is_good(const char *name, size_t len)
{
	return len && len + strlen(prefix) < FIGURE_NAME_MAX && len < PAIR_NAME_BYTES &&
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

static int pair_parse(const char *text, struct pair_figure_list *out, char *why, size_t why_bytes)
{
	struct pair_definition *d = &out->items[out->n];
	const char *equal = strchr(text, '=');
	const size_t len = equal ? (size_t)(equal - text) : 0;

	if (!equal || !name_is_good(text, len)) {
		snprintf(why, why_bytes,
			 "want NAME=A..B; NAME has up to %zu letters, digits, '.', '_' and '-'",
			 FIGURE_NAME_MAX - sizeof(prefix));
		return -EINVAL;
	}
	*d = (struct pair_definition){0};
	snprintf(d->name, sizeof(d->name), "%.*s", (int)len, text);
	for (size_t i = 0; i < out->n; i++) {
		if (!strcmp(out->items[i].name, d->name)) {
			snprintf(why, why_bytes, "there are two pairs of this name");
			return -EINVAL;
		}
	}
	snprintf(out->figures[out->n].text, FIGURE_NAME_MAX, "%s%.*s", prefix, (int)len, text);
	return events_split(equal + 1, d, why, why_bytes);
}

int pair_figures_parse(const struct option_list *texts, struct pair_figure_list *out, char *why,
		       size_t why_bytes)
{
	char what[320] = "";

	out->n = 0;
	for (size_t i = 0; i < texts->n; i++) {
		int err = -EINVAL;

		if (i == PAIR_WATCH_MAX)
			snprintf(what, sizeof(what), "more than %d pairs", PAIR_WATCH_MAX);
		else
			err = pair_parse(texts->items[i], out, what, sizeof(what));
		if (err) {
			snprintf(why, why_bytes, "--pair %.120s: %s", texts->items[i], what);
			return err;
		}
		out->n++;
	}
	return 0;
}

/* ---- a recording ---- */

/* `what`: which part of the definition is wrong. */
static int choices_find(struct event_choices *choices, const char *recording,
			const struct pair_definition *d, const char **what,
			struct expr_error *error)
{
	int err = described_read(recording, choices->schemas);

	*what = "from";
	if (!err)
		err = event_choices_add(choices, d->from, error);
	if (!err) {
		*what = "to";
		err = event_choices_add(choices, d->to, error);
	}
	if (!err) {
		*what = "key";
		err = event_choices_key(choices, event_choices_cross(choices) ? "vcpu" : "cpu",
					error);
	}
	return err;
}

static int pair_start(struct pair_of_run *p, struct model *m, const char *recording,
		      const struct pair_definition *d, char *why, size_t why_bytes)
{
	const struct pairs_options options = {.without_states = true};
	struct expr_error error = {0};
	const char *what;
	int err = choices_find(&p->choices, recording, d, &what, &error);

	if (!err) {
		p->pairs = pairs_new(m, &p->choices, &options);
		err = p->pairs ? 0 : -ENOMEM;
	}
	if (err == -EINVAL)
		snprintf(why, why_bytes, "%s: pair %s, %s: %s", recording, d->name, what,
			 error.text);
	return err;
}

int pair_figures_start(struct pair_figures *f, struct model *m, const char *recording,
		       const struct pair_figure_list *list, char *why, size_t why_bytes)
{
	int err = 0;

	*f = (struct pair_figures){.list = list};
	for (size_t i = 0; i < list->n && !err; i++) {
		err = event_choices_init(&f->of[i].choices);
		if (err)
			break;
		f->n++;
		err = pair_start(&f->of[i], m, recording, &list->items[i], why, why_bytes);
	}
	if (err && err != -EINVAL)
		snprintf(why, why_bytes, "%s: %s", recording, strerror(-err));
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
	for (size_t i = 0; i < f->n; i++) {
		pairs_free(f->of[i].pairs);
		event_choices_fini(&f->of[i].choices);
	}
	f->n = 0;
}
