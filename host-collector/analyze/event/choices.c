// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/analyze/event/choices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int event_choices_init(struct event_choices *c)
{
	struct event_schemas *schemas = event_schemas_new();
	const int err = schemas ? event_choices_share(c, schemas) : -ENOMEM;

	if (err) {
		*c = (struct event_choices){0};
		event_schemas_free(schemas);
		return err;
	}
	c->schemas_are_shared = false;
	return 0;
}

int event_choices_share(struct event_choices *c, struct event_schemas *schemas)
{
	*c = (struct event_choices){.schemas = schemas,
				    .schemas_are_shared = true,
				    .items = calloc(EVENT_CHOICES_MAX, sizeof(*c->items))};
	return c->items ? 0 : -ENOMEM;
}

void event_choices_fini(struct event_choices *c)
{
	if (!c->schemas_are_shared)
		event_schemas_free(c->schemas);
	free(c->items);
	*c = (struct event_choices){0};
}

/* Lists the fields that are shown: those that the user named, else all except the task on the CPU,
 * which each line shows anyway, and the number of a stack. */
static int fields_choose(struct event_choice *choice, const struct event_spec *spec,
			 struct expr_error *error)
{
	char text[EVENT_SPEC_TEXT_BYTES], *rest, *word;
	const struct event_schema *schema = choice->schema;

	if (!*spec->fields.text) {
		for (size_t i = 0; i < schema->n_fields; i++) {
			if (strcmp(schema->fields[i].name, "common_pid") != 0 &&
			    !(schema->stacks && i + 1 == schema->n_fields))
				choice->fields |= 1u << i;
		}
		return 0;
	}
	snprintf(text, sizeof(text), "%s", spec->fields.text);
	for (word = strtok_r(text, " +", &rest); word; word = strtok_r(NULL, " +", &rest)) {
		struct event_spec_text one = {.at = spec->fields.at + (size_t)(word - text)};
		struct expr expr;
		int err;

		snprintf(one.text, sizeof(one.text), "%s", word);
		err = event_spec_expr(schema, &one, &expr, error);
		if (err)
			return err;
		if (expr.n != 1 || expr.nodes[0].op != EXPR_FIELD ||
		    expr.nodes[0].index >= schema->n_fields)
			return expr_fail(error, -EINVAL, one.at,
					 "this is not a field of the event's own");
		choice->fields |= 1u << expr.nodes[0].index;
	}
	return 0;
}

static void name_set(struct event_choice *choice, const struct event_spec *spec)
{
	const struct event_schema *schema = choice->schema;

	if (*spec->alias.text)
		snprintf(choice->name, sizeof(choice->name), "%.*s", (int)sizeof(choice->name) - 1,
			 spec->alias.text);
	else
		snprintf(choice->name, sizeof(choice->name), "%s:%s:%s",
			 choice->vmm                   ? "vmm"
			 : choice->side == EVENT_GUEST ? "guest"
						       : "host",
			 schema->system, schema->name);
}

/* Appends the choice to the list of this side and type, so that choices keep their order. */
static void index_add(struct event_choices *c, size_t i)
{
	uint8_t *link = &c->first[c->items[i].side == EVENT_GUEST][c->items[i].schema->type];

	while (*link)
		link = &c->next[*link - 1];
	*link = (uint8_t)(i + 1);
}

static int choice_add(struct event_choices *c, const struct event_spec *spec,
		      const struct event_schema *schema, enum event_side side,
		      struct expr_error *error)
{
	struct event_choice *choice = &c->items[c->n];
	int err;

	if (c->n == EVENT_CHOICES_MAX)
		return expr_fail(error, -EINVAL, spec->at, "too many events");
	*choice = (struct event_choice){
		.schema = schema,
		.side = side,
		.vmm = spec->side == SIDE_VMM,
		.group = c->n_groups,
		.untraced = spec->untraced,
		.trigger = spec->trigger,
		.stack = spec->stack,
	};
	err = event_spec_expr(schema, &spec->filter, &choice->filter, error);
	if (!err)
		err = event_spec_expr(schema, &spec->key, &choice->key, error);
	if (!err)
		err = event_spec_expr(schema, &spec->role, &choice->role, error);
	if (!err && choice->role.n && choice->role.nodes[choice->role.n - 1].type == EXPR_TEXT)
		err = expr_fail(error, -EINVAL, spec->role.at,
				"a role is a number: 1 begins, 2 ends, 3 both");
	if (!err)
		err = fields_choose(choice, spec, error);
	if (err)
		return err;
	name_set(choice, spec);
	index_add(c, c->n++);
	return 0;
}

static int spec_add(struct event_choices *c, const struct event_spec *spec,
		    struct expr_error *error)
{
	const uint8_t sides = spec->side == SIDE_ANY     ? EVENT_HOST | EVENT_GUEST
			      : spec->side == SIDE_GUEST ? EVENT_GUEST
							 : EVENT_HOST;
	size_t found[EVENT_SPECS_MAX];
	int n = event_schemas_find(c->schemas, spec, found, EVENT_SPECS_MAX, error);

	for (int i = 0; i < n; i++) {
		const struct event_schema *schema = event_schemas_get(c->schemas, found[i]);

		for (enum event_side side = EVENT_HOST; side <= EVENT_GUEST; side++) {
			int err = 0;

			if (schema->sides & sides & side)
				err = choice_add(c, spec, schema, side, error);
			if (err)
				return err;
		}
	}
	return n < 0 ? n : 0;
}

int event_choices_add(struct event_choices *c, const char *text, struct expr_error *error)
{
	struct event_spec *specs = calloc(EVENT_SPECS_MAX, sizeof(*specs));
	size_t n = 0;
	int err = specs ? 0 : -ENOMEM;

	if (!err && c->n_groups == EVENT_GROUPS_MAX)
		err = expr_fail(error, -EINVAL, 0, "too many -e");
	if (!err)
		err = event_specs_parse(text, specs, EVENT_SPECS_MAX, &n, error);
	for (size_t i = 0; !err && i < n; i++)
		err = spec_add(c, &specs[i], error);
	c->n_groups++;
	free(specs);
	return err == -ENOMEM || !err ? err : -EINVAL;
}

int event_choices_key(struct event_choices *c, const char *text, struct expr_error *error)
{
	for (size_t i = 0; i < c->n; i++) {
		struct event_choice *choice = &c->items[i];
		const struct expr_scope scope = event_schema_scope(choice->schema);
		int err;

		/* An event that begins or ends no pair is shown beside pairs; it needs no key. */
		if (choice->key.n)
			continue;
		err = expr_parse(text, strlen(text), &scope, &choice->key, error);
		if (err && choice->untraced)
			choice->key.n = 0;
		else if (err)
			return err;
	}
	return 0;
}

int event_choices_value(struct event_choices *c, const char *text, struct expr_error *error)
{
	int err = 0;

	for (size_t i = 0; !err && i < c->n; i++) {
		const struct expr_scope scope = event_schema_scope(c->items[i].schema);
		struct expr *value = &c->items[i].value;

		err = expr_parse(text, strlen(text), &scope, value, error);
		if (!err && value->nodes[value->n - 1].type == EXPR_TEXT)
			err = expr_fail(error, -EINVAL, 0, "expected a number, and this is a text");
	}
	return err;
}

bool event_choices_cross(const struct event_choices *c)
{
	unsigned sides = 0;

	for (size_t i = 0; i < c->n; i++)
		sides |= c->items[i].untraced ? 0 : c->items[i].side;
	return sides == (EVENT_HOST | EVENT_GUEST);
}

static bool expr_asks(const struct expr *e, uint16_t field)
{
	for (size_t i = 0; i < e->n; i++) {
		if (e->nodes[i].op == EXPR_FIELD && e->nodes[i].index == field)
			return true;
	}
	return false;
}

/* Returns true if an expression asks for this common field. */
static bool choices_ask(const struct event_choices *c, uint16_t field)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct event_choice *of = &c->items[i];

		if (expr_asks(&of->filter, field) || expr_asks(&of->key, field) ||
		    expr_asks(&of->role, field) || expr_asks(&of->value, field))
			return true;
	}
	return false;
}

bool event_choices_of_host(const struct event_choices *c)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->items[i].side != EVENT_HOST)
			return false;
	}
	return !choices_ask(c, EVENT_COMMON_GTASK);
}

bool event_choices_alone(const struct event_choices *c)
{
	for (size_t i = 0; i < c->n; i++) {
		if (!event_names_host_current(c->items[i].schema->type))
			return false;
	}
	return event_choices_of_host(c) && !choices_ask(c, EVENT_COMMON_STATE);
}
