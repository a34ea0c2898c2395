// SPDX-License-Identifier: GPL-2.0-only
#include "proto/query/event_schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/array.h"
#include "proto/program/suggest.h"
#include "proto/recording.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
/* The system of events that no tracepoint of the kernel makes. */
#define OWN_SYSTEM "vcpuscope"

struct event_schemas {
	struct event_schema *items;
	size_t n, capacity;
};

static const struct {
	const char *name;
	uint8_t type;
} common_fields[] = {
#define X(NAME, name, type, meaning) {name, type},
	EVENT_COMMON_FIELDS(X)
#undef X
};

const char *event_common_name(uint16_t index)
{
	return index >= EVENT_COMMON_BASE && index < EVENT_COMMON_END
		       ? common_fields[index - EVENT_COMMON_BASE].name
		       : NULL;
}

const struct event_schema *event_schemas_get(const struct event_schemas *s, size_t i)
{
	return i < s->n ? &s->items[i] : NULL;
}

int event_schemas_add(struct event_schemas *s, const struct event_schema *schema)
{
	if (ARRAY_RESERVE(&s->items, s->n, &s->capacity, 64))
		return -ENOMEM;
	s->items[s->n++] = *schema;
	return 0;
}

/* The catalogue says the unit in the name of a field. */
static const char *unit_of(const char *name)
{
	static const char *const units[][2] = {{"_ns", "ns"}, {"_us", "us"}, {"bytes", "bytes"}};
	const size_t len = strlen(name);

	for (size_t i = 0; i < COUNT(units); i++) {
		const size_t n = strlen(units[i][0]);

		if (len >= n && !strcmp(name + len - n, units[i][0]))
			return units[i][1];
	}
	return "";
}

static void field_fill(struct event_schema_field *out, const struct event_field *f)
{
	*out = (struct event_schema_field){
		.type = f->is_signed ? EXPR_SIGNED : EXPR_UNSIGNED,
		.base = f->base,
		.unit = unit_of(f->name),
		.place = f,
	};
	snprintf(out->plain, sizeof(out->plain), "%s", f->name);
	event_field_kernel_name(f, 1, out->other);
	if (!event_field_kernel_name(f, 0, out->name))
		snprintf(out->name, sizeof(out->name), "%s", f->name);
}

static void fields_fill(struct event_schema *out)
{
	size_t n;
	const struct event_field *fields = event_fields(out->type, &n);

	for (size_t i = 0; i < n && out->n_fields < EVENT_SCHEMA_FIELDS_MAX; i++) {
		/* The number of a vector distinguishes tracepoints and is part of the name. */
		if (out->by_constant && fields[i].place == EVENT_PLACE_arg0)
			continue;
		field_fill(&out->fields[out->n_fields++], &fields[i]);
	}
}

static struct event_schema *same_records(struct event_schemas *s, uint16_t type, uint64_t constant)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->items[i].type == type && s->items[i].constant == constant)
			return &s->items[i];
	}
	return NULL;
}

/* The event of a tracepoint, or of a type that has none. */
static int catalogue_add(struct event_schemas *s, uint16_t type, const char *system,
			 const char *name, uint64_t constant)
{
	struct event_schema schema = {
		.type = type,
		.sides = event_type_of(type)->sides,
		.by_constant = constant != 0,
		.constant = constant,
	};
	struct event_schema *same = same_records(s, type, constant);

	if (same) {
		snprintf(same->also, sizeof(same->also), "%s", name);
		return 0;
	}
	snprintf(schema.system, sizeof(schema.system), "%s", system);
	snprintf(schema.name, sizeof(schema.name), "%s", name);
	fields_fill(&schema);
	return event_schemas_add(s, &schema);
}

struct event_schemas *event_schemas_new(void)
{
	struct event_schemas *s = calloc(1, sizeof(*s));
	size_t n;
	const struct event_tracepoint *t = event_tracepoints(&n);
	int err = s ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < n; i++)
		err = catalogue_add(s, t[i].type, t[i].system, t[i].name, t[i].constant);
	for (uint16_t type = 1; !err && type < VS_EVENT_TYPE_LIMIT; type++) {
		/* The records of events that a user chose have the names of these events. */
		bool known = !event_type_known(type) || type == VS_EVENT_USER ||
			     type == VS_EVENT_USER_MORE;

		for (size_t i = 0; i < n; i++)
			known |= t[i].type == type;
		if (!known)
			err = catalogue_add(s, type, OWN_SYSTEM, event_type_of(type)->name, 0);
	}
	if (!err)
		return s;
	event_schemas_free(s);
	return NULL;
}

static void described_field(struct event_schema_field *out, const struct message_user_field *f)
{
	*out = (struct event_schema_field){
		.type = f->type == USER_TEXT     ? EXPR_TEXT
			: f->type == USER_SIGNED ? EXPR_SIGNED
						 : EXPR_UNSIGNED,
		.base = f->type == USER_HEX ? 16 : 10,
		.unit = "",
	};
	snprintf(out->name, sizeof(out->name), "%s", f->name);
	snprintf(out->plain, sizeof(out->plain), "%s", f->name);
}

int event_schemas_describe(struct event_schemas *s, uint32_t source,
			   const struct message_user_event *e)
{
	static const uint8_t kinds[] = {
		[USER_TRACEPOINT] = EVENT_TRACEPOINT,
		[USER_KPROBE] = EVENT_KPROBE,
		[USER_KRETPROBE] = EVENT_KRETPROBE,
		[USER_UPROBE] = EVENT_UPROBE,
		[USER_USDT] = EVENT_USDT,
	};
	struct event_schema schema = {
		.sides = source == VS_SOURCE_HOST ? EVENT_HOST : EVENT_GUEST,
		.type = VS_EVENT_USER,
		.source = source,
		.id = e->id,
		.stacks = e->flags & USER_STACKS && e->n_fields,
	};

	for (size_t i = 0; i < s->n; i++) {
		if (s->items[i].type == VS_EVENT_USER && s->items[i].source == source &&
		    s->items[i].id == e->id)
			return 0;
	}
	/* A newer peer may have kinds that have no name here. */
	if (e->kind < USER_TRACEPOINT || e->kind >= COUNT(kinds))
		return 0;
	schema.kind = (enum event_spec_kind)kinds[e->kind];
	snprintf(schema.system, sizeof(schema.system), "%s", e->system);
	snprintf(schema.name, sizeof(schema.name), "%s", e->name);
	snprintf(schema.path, sizeof(schema.path), "%s", e->path);
	for (size_t i = 0; i < e->n_fields && i < VS_USER_FIELDS_MAX; i++)
		described_field(&schema.fields[schema.n_fields++], &e->fields[i]);
	return event_schemas_add(s, &schema);
}

void event_schemas_free(struct event_schemas *s)
{
	if (!s)
		return;
	free(s->items);
	free(s);
}

static uint8_t sides_of(enum event_spec_side side)
{
	if (side == SIDE_ANY)
		return EVENT_HOST | EVENT_GUEST;
	return side == SIDE_GUEST ? EVENT_GUEST : EVENT_HOST;
}

static bool is_pattern(const char *name)
{
	return strpbrk(name, "*?[") != NULL;
}

static bool names_fit(const struct event_schema *schema, const struct event_spec *spec)
{
	/* "kprobe" and "uprobe" are no systems in the text of an event. */
	const bool has_system = spec->kind == EVENT_TRACEPOINT || spec->kind == EVENT_USDT;

	return schema->kind == spec->kind && !strcmp(schema->path, spec->path) &&
	       (!has_system || expr_glob(spec->system, schema->system)) &&
	       (expr_glob(spec->name, schema->name) ||
		(*schema->also && !strcmp(spec->name, schema->also)));
}

static int event_unknown(const struct event_schemas *s, const struct event_spec *spec,
			 struct expr_error *error)
{
	struct suggest in_system, of_systems;
	bool system_known = false;

	suggest_begin(&in_system, spec->name, strlen(spec->name));
	suggest_begin(&of_systems, spec->system, strlen(spec->system));
	for (size_t i = 0; i < s->n; i++) {
		const struct event_schema *schema = &s->items[i];

		suggest_try(&of_systems, schema->system);
		if (strcmp(schema->system, spec->system))
			continue;
		system_known = true;
		if (names_fit(schema, spec))
			return expr_fail(error, -ENOENT, spec->at,
					 "%s:%s is an event of the %s only", spec->system,
					 spec->name,
					 schema->sides == EVENT_HOST ? "host" : "guest");
		suggest_try(&in_system, schema->name);
	}
	if (in_system.best)
		return expr_fail(error, -ENOENT, spec->at,
				 "there is no event %s:%s; did you mean %s:%s?", spec->system,
				 spec->name, spec->system, in_system.best);
	if (!system_known && of_systems.best)
		return expr_fail(error, -ENOENT, spec->at,
				 "there is no system '%s'; did you mean '%s'?", spec->system,
				 of_systems.best);
	return expr_fail(error, -ENOENT, spec->at,
			 "there is no event %s%s%s; `vcpuscope events` lists those that there are",
			 spec->system, *spec->system ? ":" : "", spec->name);
}

int event_schemas_find(const struct event_schemas *s, const struct event_spec *spec, size_t *out,
		       size_t max, struct expr_error *error)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct event_schema *schema = &s->items[i];

		if (!(schema->sides & sides_of(spec->side)) || !names_fit(schema, spec))
			continue;
		if (spec->side == SIDE_ANY && schema->sides == (EVENT_HOST | EVENT_GUEST) &&
		    !is_pattern(spec->name) && !is_pattern(spec->system))
			return expr_fail(error, -EINVAL, spec->at,
					 "both sides have %s:%s; write host:%s:%s or guest:%s:%s",
					 spec->system, spec->name, spec->system, spec->name,
					 spec->system, spec->name);
		if (n == max)
			return expr_fail(error, -EINVAL, spec->at, "more than %zu events", max);
		out[n++] = i;
	}
	return n ? (int)n : event_unknown(s, spec, error);
}

static bool field_find(const void *context, const char *name, uint16_t *index, enum expr_type *type)
{
	const struct event_schema *schema = context;

	for (size_t i = 0; i < schema->n_fields; i++) {
		const struct event_schema_field *f = &schema->fields[i];

		if (!strcmp(name, f->name) || !strcmp(name, f->other)) {
			*index = (uint16_t)i;
			*type = f->type;
			return true;
		}
	}
	for (size_t i = 0; i < COUNT(common_fields); i++) {
		if (!strcmp(name, common_fields[i].name)) {
			*index = (uint16_t)(EVENT_COMMON_BASE + i);
			*type = common_fields[i].type;
			return true;
		}
	}
	for (size_t i = 0; i < schema->n_fields; i++) {
		if (!strcmp(name, schema->fields[i].plain)) {
			*index = (uint16_t)i;
			*type = schema->fields[i].type;
			return true;
		}
	}
	return false;
}

static const char *field_name(const void *context, size_t i)
{
	const struct event_schema *schema = context;

	if (i < schema->n_fields)
		return schema->fields[i].name;
	i -= schema->n_fields;
	return i < COUNT(common_fields) ? common_fields[i].name : NULL;
}

struct expr_scope event_schema_scope(const struct event_schema *schema)
{
	return (struct expr_scope){field_find, field_name, schema};
}

int event_spec_expr(const struct event_schema *schema, const struct event_spec_text *text,
		    struct expr *out, struct expr_error *error)
{
	const struct expr_scope scope = event_schema_scope(schema);
	int err;

	out->n = out->strings_used = 0;
	if (!*text->text)
		return 0;
	err = expr_parse(text->text, strlen(text->text), &scope, out, error);
	if (err)
		error->at += text->at;
	return err;
}
