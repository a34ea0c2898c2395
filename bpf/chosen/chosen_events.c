/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/chosen/chosen_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/capture/event_source.h"
#include "bpf/isolation/probe_finder.h"
#include "proto/query/event_schema.h"
#include "proto/query/event_spec.h"
#include "bpf/chosen/event_filter.h"
#include "proto/program/suggest.h"

/* The state while one event is resolved. */
struct resolving {
	const struct event_spec *spec;
	struct chosen_limits limits;
	struct expr_error *error;
	size_t n;
	struct source_field fields[SOURCE_FIELDS_MAX];
	struct event_schema schema;
	struct expr filter;
	struct probe_places places; /* of a function or probe of a program */
	struct chosen_event out;
};

/* ---- names ---- */

/* Candidates are freed after the search: the nearest one is copied. */
struct nearest {
	struct suggest suggest;
	char best[64];
};

static bool nearest_try(void *context, const char *name)
{
	struct nearest *n = context;

	suggest_try(&n->suggest, name);
	if (n->suggest.best == name) {
		snprintf(n->best, sizeof(n->best), "%s", name);
		n->suggest.best = n->best;
	}
	return true;
}

static bool system_exists(void *context, const char *name)
{
	(void)name;
	*(bool *)context = true;
	return false;
}

static int tracepoint_unknown(const struct resolving *r)
{
	const struct event_spec *spec = r->spec;
	struct nearest near = {0};
	bool exists = false;

	source_tracepoints(spec->system, system_exists, &exists);
	suggest_begin(&near.suggest, exists ? spec->name : spec->system,
		      strlen(exists ? spec->name : spec->system));
	source_tracepoints(exists ? spec->system : NULL, nearest_try, &near);
	if (exists && *near.best)
		return expr_fail(r->error, -ENOENT, spec->at,
				 "this kernel has no tracepoint %s:%s; did you mean %s:%s?",
				 spec->system, spec->name, spec->system, near.best);
	if (exists)
		return expr_fail(r->error, -ENOENT, spec->at,
				 "this kernel has no tracepoint %s:%s; `ls "
				 "/sys/kernel/tracing/events/%s` lists those that it has",
				 spec->system, spec->name, spec->system);
	return expr_fail(r->error, -ENOENT, spec->at,
			 "this kernel has no tracepoints of '%s'%s%s%s", spec->system,
			 *near.best ? "; did you mean '" : "", near.best,
			 *near.best ? "'?" : ": is its module loaded, and tracefs mounted?");
}

/* ---- lookup in the kernel ---- */

static int tracepoint_resolve_fields(struct resolving *r)
{
	const int n = source_tracepoint(r->spec->system, r->spec->name, r->fields);

	if (n == -ENOENT)
		return tracepoint_unknown(r);
	if (n == -EACCES)
		return expr_fail(r->error, n, r->spec->at, "tracefs cannot be read: run as root");
	if (n < 0)
		return expr_fail(r->error, n, r->spec->at, "the format of %s:%s cannot be read: %s",
				 r->spec->system, r->spec->name, strerror(-n));
	r->n = (size_t)n;
	return 0;
}

static int function_resolve_fields(struct resolving *r)
{
	char near[64];
	const int n =
		source_function(r->spec->name, r->spec->kind == EVENT_KRETPROBE, r->fields, near);

	if (n < 0)
		return expr_fail(r->error, n, r->spec->at, "this kernel has no function %s()%s%s%s",
				 r->spec->name, *near ? "; did you mean " : "", near,
				 *near ? "?" : "");
	r->n = (size_t)n;
	return 0;
}

static int program_find(struct resolving *r)
{
	const struct event_spec *spec = r->spec;
	const bool is_probe = spec->kind == EVENT_USDT;
	const char *near = r->places.near;
	const int err =
		probe_find(spec->path, is_probe ? spec->system : NULL, spec->name, &r->places);

	if (err == -ENOENT && !access(spec->path, F_OK))
		return expr_fail(r->error, err, spec->at, "%s has no %s%s%s %s%s%s%s", spec->path,
				 is_probe ? "probe of " : "function", is_probe ? spec->system : "",
				 is_probe ? " named" : "", spec->name,
				 *near ? "; did you mean " : "", near, *near ? "?" : "");
	if (err == -ENOEXEC)
		return expr_fail(r->error, -EINVAL, spec->at,
				 "%s is no program or library of x86-64", spec->path);
	if (err == -E2BIG)
		return expr_fail(r->error, err, spec->at,
				 "%s has this probe in more than %d places", spec->path,
				 PROBE_PLACES_MAX);
	if (err)
		return expr_fail(r->error, err, spec->at, "%s cannot be read: %s", spec->path,
				 strerror(-err));
	return 0;
}

/* Fills the request for one of the places that were found. */
static void program_place(struct resolving *r, size_t i)
{
	const struct probe_place *place = &r->places.places[i];
	struct capture_event *c = &r->out.capture;

	c->offset = place->offset;
	c->counter = place->counter;
	snprintf(c->path, sizeof(c->path), "%s", r->spec->path);
	snprintf(r->out.description.path, sizeof(r->out.description.path), "%.127s", r->spec->path);
	r->n = (size_t)(c->kind == USER_USDT ? source_usdt(place->arguments, r->fields)
					     : source_registers(r->fields));
}

static int source_resolve(struct resolving *r, size_t place)
{
	struct capture_event *c = &r->out.capture;
	struct message_user_event *d = &r->out.description;
	const char *system = r->spec->system;
	int err;

	switch (r->spec->kind) {
	case EVENT_TRACEPOINT:
		c->kind = USER_TRACEPOINT;
		err = tracepoint_resolve_fields(r);
		break;
	case EVENT_KPROBE:
	case EVENT_KRETPROBE:
		c->kind = r->spec->kind == EVENT_KPROBE ? USER_KPROBE : USER_KRETPROBE;
		system = r->spec->kind == EVENT_KPROBE ? "kprobe" : "kretprobe";
		err = function_resolve_fields(r);
		break;
	default:
		c->kind = r->spec->kind == EVENT_USDT ? USER_USDT : USER_UPROBE;
		system = r->spec->kind == EVENT_USDT ? system : "uprobe";
		err = place ? 0 : program_find(r);
		if (!err)
			program_place(r, place);
	}
	snprintf(c->system, sizeof(c->system), "%.47s", system);
	snprintf(c->name, sizeof(c->name), "%s", r->spec->name);
	d->kind = c->kind;
	memcpy(d->system, c->system, sizeof(d->system));
	memcpy(d->name, c->name, sizeof(d->name));
	return err;
}

/* ---- recorded fields ---- */

static bool is_listed(const char *names, const char *name)
{
	const size_t len = strlen(name);

	for (const char *at = names; (at = strstr(at, name)); at += len) {
		const char end = at[len];

		if ((at == names || at[-1] == ' ' || at[-1] == ',') &&
		    (!end || end == ' ' || end == ','))
			return true;
	}
	return false;
}

static int listed_check(const struct resolving *r)
{
	char names[EVENT_SPEC_TEXT_BYTES], *rest = names, *name;

	snprintf(names, sizeof(names), "%s", r->spec->fields.text);
	while ((name = strsep(&rest, " ,"))) {
		struct suggest suggest;
		bool found = !*name;

		suggest_begin(&suggest, name, strlen(name));
		for (size_t i = 0; i < r->n; i++) {
			found |= !strcmp(r->fields[i].name, name);
			suggest_try(&suggest, r->fields[i].name);
		}
		if (!found)
			return expr_fail(
				r->error, -EINVAL, r->spec->fields.at,
				"%s:%s has no field '%s'%s%s%s", r->out.capture.system,
				r->spec->name, name, suggest.best ? "; did you mean '" : "",
				suggest.best ? suggest.best : "", suggest.best ? "'?" : "");
	}
	return 0;
}

/* Fails with -EPERM if the user named a text and the limits allow none. */
static int texts_check(const struct resolving *r)
{
	for (size_t i = 0; i < r->n && r->limits.no_texts; i++) {
		if (r->fields[i].type == USER_TEXT &&
		    is_listed(r->spec->fields.text, r->fields[i].name))
			return expr_fail(r->error, -EPERM, r->spec->fields.at,
					 "'%s' is a text, which the owner does not allow",
					 r->fields[i].name);
	}
	return 0;
}

/* Numbers first: a long text must not leave them out. */
static int fields_choose(struct resolving *r)
{
	struct capture_event *c = &r->out.capture;
	struct message_user_event *d = &r->out.description;
	const char *listed = r->spec->fields.text;
	/* The number of the stack needs the remaining room. */
	const size_t values_max = VS_USER_VALUES_MAX - r->spec->stack;
	const size_t fields_max = VS_USER_FIELDS_MAX - r->spec->stack;
	int err = listed_check(r);

	if (!err)
		err = texts_check(r);
	for (int texts = 0; texts < 2 - r->limits.no_texts && !err; texts++) {
		for (size_t i = 0; i < r->n; i++) {
			const struct source_field *f = &r->fields[i];
			struct message_user_field field = {.type = f->type, .bytes = f->bytes};
			const size_t n = user_field_n_values(&field);

			if ((f->type == USER_TEXT) != texts ||
			    (*listed && !is_listed(listed, f->name)))
				continue;
			if (c->n_values + n > values_max || d->n_fields == fields_max) {
				if (*listed)
					return expr_fail(
						r->error, -E2BIG, r->spec->fields.at,
						"these fields are too many or too long: an event "
						"has room for %d numbers; 8 characters need as "
						"much as a number",
						(int)values_max);
				continue;
			}
			memcpy(field.name, f->name, sizeof(field.name));
			d->fields[d->n_fields++] = field;
			for (size_t k = 0; k < n; k++)
				c->values[c->n_values++] = source_field_value(f, k);
		}
	}
	return err;
}

/* Adds the number of the stack. The last field, so that older readers show it as a number. */
static void stack_add(struct resolving *r)
{
	struct capture_event *c = &r->out.capture;
	struct message_user_event *d = &r->out.description;

	c->stack = true;
	c->values[c->n_values++] = (struct vs_user_value){.bytes = 8, .from = VS_FROM_STACK};
	d->flags |= USER_STACKS;
	d->fields[d->n_fields++] = (struct message_user_field){
		.type = USER_UNSIGNED, .bytes = 8, .name = "stack_number"};
}

/* ---- whole events ---- */

static void schema_fill(struct resolving *r)
{
	struct event_schema *s = &r->schema;

	*s = (struct event_schema){.kind = r->spec->kind, .sides = EVENT_HOST};
	snprintf(s->system, sizeof(s->system), "%s", r->out.capture.system);
	snprintf(s->name, sizeof(s->name), "%s", r->spec->name);
	for (size_t i = 0; i < r->n && i < EVENT_SCHEMA_FIELDS_MAX; i++) {
		struct event_schema_field *f = &s->fields[s->n_fields++];

		f->unit = "";
		f->base = r->fields[i].type == USER_HEX ? 16 : 10;
		f->type = r->fields[i].type == USER_TEXT     ? EXPR_TEXT
			  : r->fields[i].type == USER_SIGNED ? EXPR_SIGNED
							     : EXPR_UNSIGNED;
		snprintf(f->name, sizeof(f->name), "%s", r->fields[i].name);
	}
}

/* Refuses filters on values that the limits hide: with enough filters, a host could find out such a
 * value by comparisons. */
static int filter_allowed(const struct resolving *r)
{
	for (size_t i = 0; i < r->filter.n; i++) {
		const struct expr_node *node = &r->filter.nodes[i];
		const size_t at = r->spec->filter.at + node->at;
		bool pointer;

		if (node->op != EXPR_FIELD)
			continue;
		if (node->type == EXPR_TEXT && r->limits.no_texts)
			return expr_fail(r->error, -EPERM, at,
					 "a text, which the owner does not allow");
		pointer = node->index < r->n && r->fields[node->index].type == USER_HEX;
		if (pointer && r->limits.no_pointers_compared)
			return expr_fail(r->error, -EPERM, at,
					 "'%s' is a pointer, which the owner does not let a filter "
					 "compare",
					 r->fields[node->index].name);
	}
	return 0;
}

static int filter_compile(struct resolving *r)
{
	int err = event_spec_expr(&r->schema, &r->spec->filter, &r->filter, r->error);

	if (!err)
		err = filter_allowed(r);
	if (err)
		return err;
	err = event_filter_compile(&r->filter, r->fields, &r->out.capture, r->error);
	if (err)
		r->error->at += r->spec->filter.at;
	return err;
}

static int spec_check(const struct resolving *r)
{
	if (strpbrk(r->spec->system, "*?[") || strpbrk(r->spec->name, "*?["))
		return expr_fail(r->error, -EINVAL, r->spec->at,
				 "a pattern cannot be recorded: name each event");
	return 0;
}

/* Copies the text of one event, as the user wrote it. */
static void spec_copy(const char *text, size_t at, size_t end, char out[256])
{
	size_t len = end - at;

	while (len && strchr(", \t\n", text[at + len - 1]))
		len--;
	snprintf(out, 256, "%.*s", (int)(len < 255 ? len : 255), text + at);
}

static int event_resolve(struct resolving *r, size_t place)
{
	int err = spec_check(r);

	r->out = (struct chosen_event){0};
	if (!err)
		err = source_resolve(r, place);
	if (err)
		return err;
	r->out.capture.untraced = r->spec->untraced;
	r->out.description.flags = r->spec->untraced ? USER_UNTRACED : 0;
	schema_fill(r);
	err = filter_compile(r);
	if (!err)
		err = fields_choose(r);
	if (!err && r->spec->stack)
		stack_add(r);
	return err;
}

int chosen_kernel_event(const struct event_spec *spec, const struct chosen_limits *limits,
			struct chosen_event *out, struct expr_error *error)
{
	struct resolving *r;
	int err;

	*error = (struct expr_error){0};
	if (spec->kind == EVENT_UPROBE || spec->kind == EVENT_USDT) {
		snprintf(error->text, sizeof(error->text),
			 "a function or probe of a program is not an event of the kernel");
		return -EPERM;
	}
	if (spec->stack) {
		snprintf(error->text, sizeof(error->text), "no stacks of hits are taken here");
		return -EPERM;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct resolving){.spec = spec, .limits = *limits, .error = error};
	err = event_resolve(r, 0);
	if (!err)
		*out = r->out;
	free(r);
	return err;
}

/* Adds one event of the host, at one of its places. */
static int place_resolve(struct chosen_events *c, struct resolving *r, const char *spec,
			 size_t place)
{
	int err;

	if (c->n == VS_USER_EVENTS_MAX)
		return expr_fail(r->error, -E2BIG, r->spec->at, "more than %d events",
				 VS_USER_EVENTS_MAX);
	err = event_resolve(r, place);
	memcpy(r->out.description.spec, spec, sizeof(r->out.description.spec));
	if (!err)
		c->events[c->n++] = r->out;
	return err;
}

static int host_event_add(struct chosen_events *c, const struct event_spec *spec,
			  const char *spec_text, struct resolving *r, struct expr_error *error)
{
	int err = 0;

	*r = (struct resolving){.spec = spec, .error = error};
	r->places.n = 1;
	/* A probe in several places becomes one event for each place, all with the same name. */
	for (size_t k = 0; k < r->places.n && !err; k++)
		err = place_resolve(c, r, spec_text, k);
	return err;
}

/* Copies a text into a request. Returns false if it is too long. */
static bool text_put(char *out, size_t out_bytes, const char *text)
{
	return snprintf(out, out_bytes, "%s", text) < (int)out_bytes;
}

/* The guest's kernel resolves the event. This checks only what every guest refuses. */
static int guest_event_add(struct message_config *guest, const struct event_spec *spec,
			   const char *spec_text, struct resolving *r, struct expr_error *error)
{
	struct message_config_event *e;

	*r = (struct resolving){.spec = spec, .error = error};
	if (!guest)
		return expr_fail(r->error, -EINVAL, spec->at,
				 "events of guests cannot be chosen here");
	if (spec->kind == EVENT_UPROBE || spec->kind == EVENT_USDT)
		return expr_fail(r->error, -EINVAL, spec->at,
				 "in a guest, functions and probes of programs cannot be chosen");
	if (spec->stack)
		return expr_fail(r->error, -EINVAL, spec->at,
				 "'stack' cannot be recorded in a guest: its owner's policy allows "
				 "no stacks of chosen events");
	if (spec_check(r))
		return -EINVAL;
	if (guest->n_events == VS_CONFIG_EVENTS_MAX)
		return expr_fail(r->error, -E2BIG, spec->at, "more than %d events of a guest",
				 VS_CONFIG_EVENTS_MAX);
	e = &guest->events[guest->n_events];
	*e = (struct message_config_event){.kind = spec->kind == EVENT_TRACEPOINT ? USER_TRACEPOINT
						   : spec->kind == EVENT_KPROBE   ? USER_KPROBE
										  : USER_KRETPROBE};
	if (!text_put(e->system, sizeof(e->system),
		      e->kind == USER_KPROBE      ? "kprobe"
		      : e->kind == USER_KRETPROBE ? "kretprobe"
						  : spec->system) ||
	    !text_put(e->name, sizeof(e->name), spec->name) ||
	    !text_put(e->filter, sizeof(e->filter), spec->filter.text) ||
	    !text_put(e->fields, sizeof(e->fields), spec->fields.text))
		return expr_fail(r->error, -E2BIG, spec->at, "this is too long for a guest");
	memcpy(e->spec, spec_text, sizeof(e->spec));
	guest->n_events++;
	guest->asks |= 1u << CONFIG_EVENTS;
	return 0;
}

int chosen_events_add(struct chosen_events *c, struct message_config *guest, const char *text,
		      struct expr_error *error)
{
	struct event_spec *specs = calloc(EVENT_SPECS_MAX, sizeof(*specs));
	struct resolving *r = calloc(1, sizeof(*r));
	char spec[256];
	size_t n = 0;
	int err = specs && r ? event_specs_parse(text, specs, EVENT_SPECS_MAX, &n, error) : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		spec_copy(text, specs[i].at, i + 1 < n ? specs[i + 1].at : strlen(text), spec);
		err = specs[i].side == SIDE_GUEST
			      ? guest_event_add(guest, &specs[i], spec, r, error)
			      : host_event_add(c, &specs[i], spec, r, error);
	}
	free(r);
	free(specs);
	return err;
}
