// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the parsers of EVENT and of expressions. If they refuse a text, the error is at a place
 * within the text. If they accept it, the result is a bounded tree whose arguments come first and
 * have the right types, and it has a value for any event. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "proto/query/event_schema.h"

static struct expr_value field_value(void *context, uint16_t index)
{
	const struct event_schema *schema = context;
	const bool own = index < schema->n_fields;
	static const uint64_t numbers[] = {0, 1, UINT64_MAX, 1ull << 63};

	FUZZ_CHECK(own || event_common_name(index));
	if (index % 5 == 4)
		return (struct expr_value){0};
	if (!own &&
	    (index == EVENT_COMMON_COMM || index == EVENT_COMMON_VM || index == EVENT_COMMON_STATE))
		return (struct expr_value){.type = EXPR_TEXT, .text = "CPU 0/KVM"};
	return (struct expr_value){.type = own ? schema->fields[index].type : EXPR_SIGNED,
				   .number = numbers[index % 4]};
}

static struct expr_value call_value(void *context, enum expr_function f,
				    const struct expr_value *args)
{
	(void)context;
	FUZZ_CHECK(f == EXPR_COMM_GET || f == EXPR_EXIT_REASON_STR);
	FUZZ_CHECK(args[0].type == EXPR_SIGNED || args[0].type == EXPR_UNSIGNED);
	return (struct expr_value){.type = EXPR_TEXT, .text = ""};
}

static void tree_check(const struct expr *e, const struct event_schema *schema)
{
	const struct expr_source source = {field_value, call_value, (void *)(uintptr_t)schema};
	struct expr_value value;

	FUZZ_CHECK(e->n <= EXPR_NODES_MAX && e->strings_used <= EXPR_STRINGS_BYTES);
	for (size_t i = 0; i < e->n; i++) {
		const struct expr_node *node = &e->nodes[i];

		FUZZ_CHECK(node->type >= EXPR_SIGNED && node->type <= EXPR_TEXT);
		for (size_t k = 0; k < 3; k++)
			FUZZ_CHECK(!node->args[k] || node->args[k] < i);
		FUZZ_CHECK(node->op != EXPR_STRING || node->string < e->strings_used);
	}
	value = expr_eval(e, &source);
	FUZZ_CHECK(e->n || value.type == EXPR_NONE);
	FUZZ_CHECK(value.type != EXPR_TEXT || value.text);
	expr_is_true(value);
}

static void text_check(const struct event_schema *schema, const struct event_spec_text *text,
		       size_t len)
{
	struct expr_error error = {0};
	struct expr e;

	if (event_spec_expr(schema, text, &e, &error))
		FUZZ_CHECK(error.at <= len && *error.text);
	else
		tree_check(&e, schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct event_schemas *schemas;
	static struct event_spec specs[EVENT_SPECS_MAX];
	struct expr_error error = {.at = SIZE_MAX};
	struct event_spec_text whole = {.text = ""};
	char *text = malloc(len + 1);
	size_t n = 0, found[4];
	int err;

	schemas = schemas ? schemas : event_schemas_new();
	FUZZ_CHECK(text && schemas);
	if (len)
		memcpy(text, data, len);
	text[len] = 0;
	err = event_specs_parse(text, specs, EVENT_SPECS_MAX, &n, &error);
	FUZZ_CHECK(n <= EVENT_SPECS_MAX && (!err || (error.at <= len && *error.text)));
	for (size_t i = 0; i < n; i++) {
		int k = event_schemas_find(schemas, &specs[i], found, 4, &error);

		for (int s = 0; s < k; s++) {
			const struct event_schema *schema = event_schemas_get(schemas, found[s]);

			text_check(schema, &specs[i].filter, len);
			text_check(schema, &specs[i].key, len);
			text_check(schema, &specs[i].role, len);
		}
	}
	/* The same bytes as an expression. */
	memcpy(whole.text, text, len < sizeof(whole.text) ? len : sizeof(whole.text) - 1);
	text_check(event_schemas_get(schemas, 0), &whole, len);
	free(text);
	return 0;
}
