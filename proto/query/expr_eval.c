// SPDX-License-Identifier: GPL-2.0-only
#include "proto/query/expr.h"

#include <arpa/inet.h>
#include <string.h>

static struct expr_value number(enum expr_type type, uint64_t n)
{
	return (struct expr_value){.type = type, .number = n};
}

static struct expr_value boolean(bool is)
{
	return number(EXPR_SIGNED, is);
}

/* A source may give a text that it does not have. */
static const char *text_of(struct expr_value value)
{
	return value.text ? value.text : "";
}

bool expr_is_true(struct expr_value value)
{
	return value.type == EXPR_TEXT ? *text_of(value) != 0
				       : value.type != EXPR_NONE && value.number != 0;
}

/* Compares one character with the set behind '['; sets *end to the character behind the set. */
static bool in_set(const char *set, char c, const char **end)
{
	bool negated = *set == '!' || *set == '^', found = false;
	const char *at = set + negated;

	for (const char *first = at; *at && (*at != ']' || at == first); at++) {
		if (at[1] == '-' && at[2] && at[2] != ']') {
			found |= at[0] <= c && c <= at[2];
			at += 2;
		} else {
			found |= *at == c;
		}
	}
	*end = *at ? at + 1 : at;
	return found != negated;
}

bool expr_glob(const char *pattern, const char *text)
{
	const char *star = NULL, *resume = NULL;

	while (*text) {
		const char *next = pattern + 1;
		bool fits = *pattern && (*pattern == '?' || *pattern == *text);

		if (*pattern == '*') {
			star = ++pattern;
			resume = text;
			continue;
		}
		if (*pattern == '[' && strchr(pattern + 1, ']'))
			fits = in_set(pattern + 1, *text, &next);
		if (fits) {
			pattern = next;
			text++;
		} else if (star) {
			pattern = star;
			text = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static struct expr_value compare_texts(enum expr_op op, const char *a, const char *b)
{
	if (op == EXPR_MATCH)
		return boolean(expr_glob(b, a));
	return boolean(!strcmp(a, b) == (op == EXPR_EQUAL));
}

static bool less(bool is_unsigned, uint64_t a, uint64_t b)
{
	return is_unsigned ? a < b : (int64_t)a < (int64_t)b;
}

static struct expr_value divide(enum expr_op op, enum expr_type type, uint64_t a, uint64_t b)
{
	const bool quotient = op == EXPR_DIVIDE;

	if (!b)
		return number(EXPR_NONE, 0);
	if (type == EXPR_UNSIGNED)
		return number(type, quotient ? a / b : a % b);
	/* The least number divided by -1 does not fit. */
	if ((int64_t)b == -1)
		return number(type, quotient ? 0 - a : 0);
	return number(type,
		      (uint64_t)(quotient ? (int64_t)a / (int64_t)b : (int64_t)a % (int64_t)b));
}

/* As on most machines: a shift by 64 or more leaves nothing, or the sign. */
static uint64_t shift(enum expr_op op, enum expr_type type, uint64_t a, uint64_t by)
{
	if (op == EXPR_SHIFT_LEFT)
		return by < 64 ? a << by : 0;
	if (type == EXPR_UNSIGNED)
		return by < 64 ? a >> by : 0;
	return (uint64_t)((int64_t)a >> (by < 64 ? by : 63));
}

static struct expr_value compute(const struct expr_node *node, struct expr_value x,
				 struct expr_value y)
{
	const bool is_unsigned = x.type == EXPR_UNSIGNED || y.type == EXPR_UNSIGNED;
	const uint64_t a = x.number, b = y.number;

	switch ((enum expr_op)node->op) {
	case EXPR_MULTIPLY:
		return number(node->type, a * b);
	case EXPR_DIVIDE:
	case EXPR_REMAINDER:
		return divide(node->op, node->type, a, b);
	case EXPR_ADD:
		return number(node->type, a + b);
	case EXPR_SUBTRACT:
		return number(node->type, a - b);
	case EXPR_SHIFT_LEFT:
	case EXPR_SHIFT_RIGHT:
		return number(node->type, shift(node->op, node->type, a, b));
	case EXPR_LESS:
		return boolean(less(is_unsigned, a, b));
	case EXPR_LESS_EQUAL:
		return boolean(!less(is_unsigned, b, a));
	case EXPR_GREATER:
		return boolean(less(is_unsigned, b, a));
	case EXPR_GREATER_EQUAL:
		return boolean(!less(is_unsigned, a, b));
	case EXPR_EQUAL:
		return boolean(a == b);
	case EXPR_NOT_EQUAL:
		return boolean(a != b);
	case EXPR_BIT_AND:
		return number(node->type, a & b);
	case EXPR_BIT_XOR:
		return number(node->type, a ^ b);
	case EXPR_BIT_OR:
		return number(node->type, a | b);
	default:
		return number(EXPR_NONE, 0);
	}
}

static struct expr_value eval(const struct expr *e, size_t index, const struct expr_source *from);

/* && and ||: a side that decides does so even if the other is missing. */
static struct expr_value logic(const struct expr *e, const struct expr_node *node,
			       const struct expr_source *from)
{
	const bool decides = node->op == EXPR_OR;
	const struct expr_value a = eval(e, node->args[0], from);
	struct expr_value b;

	if (a.type != EXPR_NONE && expr_is_true(a) == decides)
		return boolean(decides);
	b = eval(e, node->args[1], from);
	if (b.type != EXPR_NONE && expr_is_true(b) == decides)
		return boolean(decides);
	return a.type == EXPR_NONE || b.type == EXPR_NONE ? number(EXPR_NONE, 0)
							  : boolean(!decides);
}

static struct expr_value call(const struct expr *e, const struct expr_node *node,
			      const struct expr_source *from)
{
	static const uint8_t n_args[] = {
#define X(NAME, name, n, ...) [EXPR_##NAME] = (n),
		EXPR_FUNCTIONS(X)
#undef X
	};
	struct expr_value args[EXPR_ARGUMENTS_MAX] = {{0}};

	for (size_t i = 0; i < n_args[node->index]; i++) {
		args[i] = eval(e, node->args[i], from);
		if (args[i].type == EXPR_NONE)
			return args[i];
	}
	if (node->index == EXPR_NTOHS)
		return number(EXPR_UNSIGNED, ntohs((uint16_t)args[0].number));
	if (node->index == EXPR_NTOHL)
		return number(EXPR_UNSIGNED, ntohl((uint32_t)args[0].number));
	return from->call(from->context, (enum expr_function)node->index, args);
}

static struct expr_value unary(const struct expr_node *node, struct expr_value x)
{
	if (x.type == EXPR_NONE)
		return x;
	if (node->op == EXPR_NOT)
		return boolean(!x.number);
	return number(node->type, node->op == EXPR_INVERT ? ~x.number : 0 - x.number);
}

static struct expr_value binary(const struct expr *e, const struct expr_node *node,
				const struct expr_source *from)
{
	struct expr_value x = eval(e, node->args[0], from), y;

	if (x.type == EXPR_NONE)
		return x;
	y = eval(e, node->args[1], from);
	if (y.type == EXPR_NONE)
		return y;
	if (x.type == EXPR_TEXT && y.type == EXPR_TEXT)
		return compare_texts(node->op, text_of(x), text_of(y));
	return compute(node, x, y);
}

static struct expr_value eval(const struct expr *e, size_t index, const struct expr_source *from)
{
	const struct expr_node *node = &e->nodes[index];
	struct expr_value x;

	switch ((enum expr_op)node->op) {
	case EXPR_NUMBER:
		return number(node->type, node->number);
	case EXPR_STRING:
		return (struct expr_value){.type = EXPR_TEXT, .text = e->strings + node->string};
	case EXPR_FIELD:
		return from->field(from->context, node->index);
	case EXPR_CALL:
		return call(e, node, from);
	case EXPR_NOT:
	case EXPR_INVERT:
	case EXPR_NEGATE:
		return unary(node, eval(e, node->args[0], from));
	case EXPR_CHOOSE:
		x = eval(e, node->args[0], from);
		return x.type == EXPR_NONE ? x : eval(e, node->args[expr_is_true(x) ? 1 : 2], from);
	case EXPR_AND:
	case EXPR_OR:
		return logic(e, node, from);
	default:
		return binary(e, node, from);
	}
}

struct expr_value expr_eval(const struct expr *e, const struct expr_source *from)
{
	return e->n ? eval(e, e->n - 1, from) : number(EXPR_NONE, 0);
}
