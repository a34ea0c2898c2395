/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/event_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/query/event_schema.h"

int event_arguments_read(const struct event_arguments *a, const char *command, bool no_guest,
			 struct chosen_events **out, struct message_config *guest)
{
	struct expr_error error = {0};
	char what[64];

	*out = NULL;
	if (!a->events.n)
		return COMMAND_OK;
	*out = calloc(1, sizeof(**out));
	for (size_t i = 0; *out && i < a->events.n; i++) {
		const int err = chosen_events_add(*out, guest, a->events.items[i], &error);

		if (!err)
			continue;
		if (err == -ENOMEM)
			break;
		snprintf(what, sizeof(what), "vcpuscope %s: -e", command);
		/* Without rights, the text is not at fault. */
		if (err == -EACCES)
			fprintf(stderr, "%s: %s\n", what, error.text);
		else
			expr_error_print(&error, what, a->events.items[i], stderr);
		free(*out);
		*out = NULL;
		return err == -EACCES ? COMMAND_UNSUPPORTED : COMMAND_USAGE;
	}
	if (!*out) {
		fprintf(stderr, "vcpuscope %s: out of memory\n", command);
		return COMMAND_TROUBLE;
	}
	if (!no_guest || !guest->n_events)
		return COMMAND_OK;
	fprintf(stderr, "vcpuscope %s: -e guest:... and --no-guest cannot be combined\n", command);
	free(*out);
	*out = NULL;
	return COMMAND_USAGE;
}

/* ---- events of pairs ---- */

struct pair_events {
	const char *command;
	bool no_guest;
	struct event_schemas *catalogue;
	struct event_spec *specs; /* captured: those of -e, then those that were added */
	size_t n_specs;
	struct chosen_events *events;
	struct message_config *guest;
	struct event_texts *added;
};

enum { PAIR_SPECS_MAX = 4 * EVENT_SPECS_MAX };

static bool same_capture(const struct event_spec *a, const struct event_spec *b)
{
	return a->kind == b->kind && (a->side == SIDE_GUEST) == (b->side == SIDE_GUEST) &&
	       a->untraced == b->untraced && !strcmp(a->system, b->system) &&
	       !strcmp(a->name, b->name) && !strcmp(a->path, b->path) &&
	       !strcmp(a->filter.text, b->filter.text) && !strcmp(a->fields.text, b->fields.text);
}

/* Returns 1 if it is captured anyway, 0 if it must be chosen, or -errno. */
static int is_captured(const struct pair_events *p, const struct event_spec *spec, bool *of_guest,
		       struct expr_error *error)
{
	size_t found[EVENT_SPECS_MAX];
	const int n = event_schemas_find(p->catalogue, spec, found, EVENT_SPECS_MAX, error);

	*of_guest = spec->side == SIDE_GUEST;
	if (n > 0)
		*of_guest = event_schemas_get(p->catalogue, found[0])->sides == EVENT_GUEST;
	if (n != -ENOENT)
		return n > 0 ? 1 : n;
	for (size_t i = 0; i < p->n_specs; i++) {
		if (same_capture(&p->specs[i], spec))
			return 1;
	}
	return 0;
}

static void text_cut(const char *text, size_t at, size_t end, char *out, size_t out_bytes)
{
	while (end > at && strchr(", \t\n", text[end - 1]))
		end--;
	snprintf(out, out_bytes, "%.*s", (int)(end - at), text + at);
}

static int spec_choose(struct pair_events *p, const struct event_spec *spec, const char *text,
		       struct expr_error *error)
{
	struct event_texts *added = p->added;
	bool of_guest;
	int err = is_captured(p, spec, &of_guest, error);

	if (err >= 0 && of_guest && p->no_guest)
		return expr_fail(error, -EINVAL, spec->at,
				 "an event of the guest and --no-guest cannot be combined");
	if (err)
		return err < 0 ? err : 0;
	if (added->n == sizeof(added->items) / sizeof(added->items[0]) ||
	    p->n_specs == PAIR_SPECS_MAX)
		return expr_fail(error, -E2BIG, spec->at, "too many events");
	err = chosen_events_add(p->events, p->guest, text, error);
	if (err) {
		error->at += spec->at;
		return err;
	}
	p->specs[p->n_specs++] = *spec;
	snprintf(added->items[added->n++], sizeof(added->items[0]), "%s", text);
	return 0;
}

/* Says what is wrong. Returns 0 or -errno. */
static int text_choose(struct pair_events *p, const struct pair_definition *d, const char *text)
{
	struct event_spec *specs = calloc(EVENT_SPECS_MAX, sizeof(*specs));
	struct expr_error error = {0};
	char what[PAIR_NAME_BYTES + 64], one[PAIR_EVENT_BYTES];
	size_t n = 0;
	int err = specs ? event_specs_parse(text, specs, EVENT_SPECS_MAX, &n, &error) : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		text_cut(text, specs[i].at, i + 1 < n ? specs[i + 1].at : strlen(text), one,
			 sizeof(one));
		err = spec_choose(p, &specs[i], one, &error);
	}
	free(specs);
	if (!err || err == -ENOMEM)
		return err;
	snprintf(what, sizeof(what), "vcpuscope %s: --pair %s", p->command, d->name);
	if (err == -EACCES)
		fprintf(stderr, "%s: %s\n", what, error.text);
	else
		expr_error_print(&error, what, text, stderr);
	return err;
}

int event_arguments_add_pairs(const struct event_arguments *a, const char *command,
			      const struct pair_definition *pairs, size_t n, bool no_guest,
			      struct chosen_events **events, struct message_config *guest,
			      struct event_texts *added)
{
	struct pair_events p = {.command = command,
				.no_guest = no_guest,
				.catalogue = event_schemas_new(),
				.specs = calloc(PAIR_SPECS_MAX, sizeof(*p.specs)),
				.guest = guest,
				.added = added};
	struct expr_error error;
	int err = 0;

	if (!*events)
		*events = calloc(1, sizeof(**events));
	p.events = *events;
	if (!p.catalogue || !p.specs || !p.events)
		err = -ENOMEM;
	/* They were checked when they were read. */
	for (size_t i = 0; i < a->events.n && !err; i++)
		event_specs_parse(a->events.items[i], p.specs, PAIR_SPECS_MAX, &p.n_specs, &error);
	for (size_t i = 0; i < n && !err; i++) {
		err = text_choose(&p, &pairs[i], pairs[i].from);
		if (!err)
			err = text_choose(&p, &pairs[i], pairs[i].to);
	}
	event_schemas_free(p.catalogue);
	free(p.specs);
	if (err == -ENOMEM)
		fprintf(stderr, "vcpuscope %s: out of memory\n", command);
	if (err == -EACCES)
		return COMMAND_UNSUPPORTED;
	return err == -ENOMEM ? COMMAND_TROUBLE : err ? COMMAND_USAGE : COMMAND_OK;
}
