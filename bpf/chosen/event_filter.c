/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/chosen/event_filter.h"
#include "bpf/chosen/filter_parts.h"
#include "bpf/chosen/kernel_filter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/query/event_schema.h"

enum { COMM_BYTES = 16 };

struct compiler {
	const struct expr *e;
	const struct source_field *fields;
	struct capture_event *out;
	struct expr_error *error;
};

static const struct expr_node *argument_of(const struct compiler *c, const struct expr_node *node,
					   size_t i)
{
	return &c->e->nodes[node->args[i]];
}

bool filter_has_field(const struct expr *e, const struct expr_node *node)
{
	const size_t root = (size_t)(node - e->nodes);
	bool depends[EXPR_NODES_MAX] = {false};

	/* The nodes of arguments precede the node that has them. */
	for (size_t i = 0; i <= root; i++) {
		const struct expr_node *n = &e->nodes[i];

		if (n->op == EXPR_FIELD || n->op == EXPR_CALL)
			depends[i] = true;
		else if (n->op == EXPR_CHOOSE)
			depends[i] =
				depends[n->args[0]] || depends[n->args[1]] || depends[n->args[2]];
		else if (n->op > EXPR_CHOOSE)
			depends[i] = depends[n->args[0]] || depends[n->args[1]];
		else if (n->op >= EXPR_NOT)
			depends[i] = depends[n->args[0]];
	}
	return depends[root];
}

uint64_t filter_constant(const struct expr *e, const struct expr_node *node)
{
	const struct expr_source none = {0};
	struct expr part = *e;

	part.n = (size_t)(node - e->nodes) + 1;
	return expr_eval(&part, &none).number;
}

/* Returns the comparison whose operands are exchanged. */
static uint8_t turned(uint8_t op)
{
	switch (op) {
	case EXPR_LESS:
		return EXPR_GREATER;
	case EXPR_GREATER:
		return EXPR_LESS;
	case EXPR_LESS_EQUAL:
		return EXPR_GREATER_EQUAL;
	case EXPR_GREATER_EQUAL:
		return EXPR_LESS_EQUAL;
	default:
		return op;
	}
}

bool filter_sides(const struct expr *e, const struct expr_node *node, uint8_t *op,
		  const struct expr_node **field, const struct expr_node **constant)
{
	*field = &e->nodes[node->args[0]];
	*constant = &e->nodes[node->args[1]];
	if (!filter_has_field(e, *field)) {
		const struct expr_node *exchanged = *field;

		*field = *constant;
		*constant = exchanged;
		*op = turned(*op);
	}
	return !filter_has_field(e, *constant);
}

/* ---- compared values ---- */

/* Sets how to read a field. Of a text: its first value, and its size. */
static int field_value(const struct compiler *c, const struct expr_node *node,
		       struct source_field *out)
{
	static const struct {
		uint16_t index;
		uint16_t from;
	} common[] = {{EVENT_COMMON_CPU, VS_FROM_CPU},
		      {EVENT_COMMON_TID, VS_FROM_TID},
		      {EVENT_COMMON_PID, VS_FROM_PID}};

	if (node->index < EVENT_COMMON_BASE) {
		*out = c->fields[node->index];
		return 0;
	}
	*out = (struct source_field){.type = USER_UNSIGNED, .bytes = 8, .first.bytes = 8};
	if (node->index == EVENT_COMMON_COMM) {
		out->type = USER_TEXT;
		out->bytes = COMM_BYTES;
		out->first.from = VS_FROM_COMM;
		return 0;
	}
	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++) {
		out->first.from = common[i].from;
		if (common[i].index == node->index)
			return 0;
	}
	return expr_fail(c->error, -EINVAL, node->at,
			 "the kernel does not know '%s': use it with `report`",
			 event_common_name(node->index));
}

/* Reads the operand `field` or `field & constant`. */
static int operand(const struct compiler *c, const struct expr_node *node, struct source_field *out,
		   uint64_t *mask)
{
	const struct expr_node *a, *b;
	uint8_t op = node->op;

	*mask = UINT64_MAX;
	if (node->op == EXPR_FIELD)
		return field_value(c, node, out);
	if (node->op != EXPR_BIT_AND)
		return expr_fail(c->error, -EINVAL, node->at,
				 "a filter in the kernel compares a field, or some of its bits "
				 "(field & 3), with a number");
	if (!filter_sides(c->e, node, &op, &a, &b) || a->op != EXPR_FIELD)
		return expr_fail(c->error, -EINVAL, node->at,
				 "one side of '&' must be a field, the other a number");
	*mask = filter_constant(c->e, b);
	return field_value(c, a, out);
}

/* ---- tests ---- */

static int test_add(struct compiler *c, const struct expr_node *node,
		    const struct vs_user_test *test)
{
	if (c->out->n_tests == VS_USER_TESTS_MAX)
		return expr_fail(c->error, -E2BIG, node->at, "a filter has at most %d comparisons",
				 VS_USER_TESTS_MAX);
	c->out->tests[c->out->n_tests++] = *test;
	return 0;
}

/* Returns the number of tests that a comparison with `len` characters needs. to_the_end: also
 * compares the NUL. */
static size_t text_tests(const struct source_field *f, size_t len, bool to_the_end)
{
	size_t bytes = len + to_the_end;

	if (bytes > f->bytes)
		bytes = f->bytes;
	return bytes ? (bytes + 7) / 8 : 1;
}

static bool pattern_length(const char *pattern, size_t *len, bool *to_the_end)
{
	*len = strcspn(pattern, "*?[");
	*to_the_end = !pattern[*len];
	return *to_the_end || !strcmp(pattern + *len, "*");
}

/* Adds tests of the parts of a text, which is equal if all parts are. */
static int text_compile(struct compiler *c, const struct expr_node *node, uint16_t on_true,
			uint16_t on_false)
{
	const struct expr_node *a = argument_of(c, node, 0), *b = argument_of(c, node, 1);
	const char *text = c->e->strings + b->string;
	size_t len = strlen(text), n, bytes;
	bool to_the_end = true;
	struct source_field f;
	int err;

	if (a->op != EXPR_FIELD || b->op != EXPR_STRING)
		return expr_fail(
			c->error, -EINVAL, node->at,
			"a filter in the kernel compares a text field with a text in quotes");
	if (node->op == EXPR_MATCH && !pattern_length(text, &len, &to_the_end))
		return expr_fail(c->error, -EINVAL, b->at,
				 "in the kernel, a pattern has one '*', at its end");
	err = field_value(c, a, &f);
	if (err)
		return err;
	n = text_tests(&f, len, to_the_end);
	bytes = len + to_the_end < f.bytes ? len + to_the_end : f.bytes;
	if (node->op == EXPR_NOT_EQUAL) {
		const uint16_t swapped = on_true;

		on_true = on_false;
		on_false = swapped;
	}
	/* No value of the field equals a text that is longer than the field. */
	if (len >= f.bytes && to_the_end && f.first.from != VS_FROM_DATA)
		on_true = on_false;
	for (size_t i = 0; i < n && !err; i++) {
		const size_t used = bytes - 8 * i < 8 ? bytes - 8 * i : 8;
		struct vs_user_test test = {
			.value = source_field_value(&f, i),
			.mask = used ? UINT64_MAX >> (64 - 8 * used) : 0,
			.compare = VS_COMPARE_EQUAL,
			.on_true = i + 1 < n ? (uint16_t)(c->out->n_tests + 1) : on_true,
			.on_false = on_false,
		};
		char part[8] = {0};

		for (size_t k = 0; k < used && 8 * i + k < len; k++)
			part[k] = text[8 * i + k];
		memcpy(&test.number, part, sizeof(part));
		err = test_add(c, node, &test);
	}
	return err;
}

/* Turns `a op b` into one of the compares of the kernel's programs, which are == and <. */
static int number_compile(struct compiler *c, const struct expr_node *node, uint16_t on_true,
			  uint16_t on_false)
{
	const struct expr_node *a, *b;
	struct vs_user_test test = {0};
	struct source_field f;
	uint8_t op = node->op;
	bool negate, or_equal, is_signed;
	int err;

	if (!filter_sides(c->e, node, &op, &a, &b))
		return expr_fail(c->error, -EINVAL, node->at,
				 "a filter in the kernel compares a field with a number, not with "
				 "another field");
	is_signed = a->type == EXPR_SIGNED && b->type == EXPR_SIGNED;
	err = operand(c, a, &f, &test.mask);
	if (err)
		return err;
	test.value = f.first;
	test.number = filter_constant(c->e, b);
	test.compare = op == EXPR_EQUAL || op == EXPR_NOT_EQUAL ? VS_COMPARE_EQUAL
		       : is_signed                              ? VS_COMPARE_LESS_SIGNED
								: VS_COMPARE_LESS;
	/* f <= n is f < n + 1, unless n is the largest number; f > n is not (f <= n). */
	negate = op == EXPR_NOT_EQUAL || op == EXPR_GREATER || op == EXPR_GREATER_EQUAL;
	or_equal = op == EXPR_LESS_EQUAL || op == EXPR_GREATER;
	if (or_equal && test.number == (is_signed ? (uint64_t)INT64_MAX : UINT64_MAX)) {
		test.compare = VS_COMPARE_EQUAL; /* always true: 0 == 0 */
		test.mask = test.number = 0;
	} else if (or_equal) {
		test.number++;
	}
	test.on_true = negate ? on_false : on_true;
	test.on_false = negate ? on_true : on_false;
	return test_add(c, node, &test);
}

/* `f`, `f & 3`: true if not 0. */
static int truth_compile(struct compiler *c, const struct expr_node *node, uint16_t on_true,
			 uint16_t on_false)
{
	struct vs_user_test test = {.on_true = on_false, .on_false = on_true};
	struct source_field f;
	int err;

	if (!filter_has_field(c->e, node)) {
		/* 0 == 0 or 0 == 1 */
		test.value.from = VS_FROM_NUMBER;
		test.number = filter_constant(c->e, node) != 0;
		return test_add(c, node, &test);
	}
	err = operand(c, node, &f, &test.mask);
	test.value = f.first;
	return err ? err : test_add(c, node, &test);
}

/* Returns the number of tests of a node. */
static size_t tests_of(const struct compiler *c, const struct expr_node *node)
{
	const struct expr_node *a = argument_of(c, node, 0), *b = argument_of(c, node, 1);
	struct source_field f;
	bool to_the_end = true;
	size_t len;

	if (node->op == EXPR_AND || node->op == EXPR_OR)
		return tests_of(c, a) + tests_of(c, b);
	if (node->op == EXPR_NOT)
		return tests_of(c, a);
	if (node->op < EXPR_LESS || node->op > EXPR_MATCH || a->type != EXPR_TEXT ||
	    a->op != EXPR_FIELD || b->op != EXPR_STRING || field_value(c, a, &f))
		return 1;
	len = strlen(c->e->strings + b->string);
	if (node->op == EXPR_MATCH)
		pattern_length(c->e->strings + b->string, &len, &to_the_end);
	return text_tests(&f, len, to_the_end);
}

/* Appends the tests of `node`, which jump to on_true or on_false in the end. The parser bounds the
 * depth. */
static int node_compile(struct compiler *c, const struct expr_node *node, uint16_t on_true,
			uint16_t on_false)
{
	const struct expr_node *a = argument_of(c, node, 0), *b = argument_of(c, node, 1);
	uint16_t second;
	int err;

	switch (node->op) {
	case EXPR_AND:
	case EXPR_OR:
		second = (uint16_t)(c->out->n_tests + tests_of(c, a));
		err = node->op == EXPR_AND ? node_compile(c, a, second, on_false)
					   : node_compile(c, a, on_true, second);
		return err ? err : node_compile(c, b, on_true, on_false);
	case EXPR_NOT:
		return node_compile(c, a, on_false, on_true);
	case EXPR_LESS:
	case EXPR_LESS_EQUAL:
	case EXPR_GREATER:
	case EXPR_GREATER_EQUAL:
	case EXPR_EQUAL:
	case EXPR_NOT_EQUAL:
	case EXPR_MATCH:
		if (a->type == EXPR_TEXT || b->type == EXPR_TEXT)
			return text_compile(c, node, on_true, on_false);
		if (filter_has_field(c->e, node))
			return number_compile(c, node, on_true, on_false);
		break;
	default:
		break;
	}
	return truth_compile(c, node, on_true, on_false);
}

int event_filter_compile(const struct expr *e, const struct source_field *fields,
			 struct capture_event *out, struct expr_error *error)
{
	struct compiler c = {e, fields, out, error};

	out->n_tests = 0;
	out->first_test = 0;
	out->kernel_filter_exact =
		kernel_filter_write(e, fields, out->kernel_filter, sizeof(out->kernel_filter));
	if (!e->n)
		return 0;
	return node_compile(&c, &e->nodes[e->n - 1], VS_USER_KEEP, VS_USER_SKIP);
}
