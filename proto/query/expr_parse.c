// SPDX-License-Identifier: GPL-2.0-only
/*
 * An operator precedence parser: each operator binds more or less strongly than its neighbour, and
 * an operand takes all operators to its right that bind more strongly than the one to its left.
 */
#include "proto/query/expr.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/program/suggest.h"

enum token_kind { TOKEN_END, TOKEN_NUMBER, TOKEN_NAME, TOKEN_STRING, TOKEN_OPERATOR, TOKEN_BAD };

struct token {
	enum token_kind kind;
	size_t at, len; /* a string's: without the quotes */
	uint64_t number;
	bool is_unsigned;
};

struct parser {
	const char *text;
	size_t len, next; /* next: position behind the token */
	struct token token;
	unsigned depth;
	const struct expr_scope *scope;
	struct expr *out;
	struct expr_error *error;
};

/* From the weakest to the strongest; `?:` is weaker than all. */
static const struct {
	const char *text;
	uint8_t op, strength;
} operators[] = {
	{"||", EXPR_OR, 1},         {"&&", EXPR_AND, 2},
	{"|", EXPR_BIT_OR, 3},      {"^", EXPR_BIT_XOR, 4},
	{"&", EXPR_BIT_AND, 5},     {"==", EXPR_EQUAL, 6},
	{"!=", EXPR_NOT_EQUAL, 6},  {"~", EXPR_MATCH, 6},
	{"<=", EXPR_LESS_EQUAL, 7}, {">=", EXPR_GREATER_EQUAL, 7},
	{"<", EXPR_LESS, 7},        {">", EXPR_GREATER, 7},
	{"<<", EXPR_SHIFT_LEFT, 8}, {">>", EXPR_SHIFT_RIGHT, 8},
	{"+", EXPR_ADD, 9},         {"-", EXPR_SUBTRACT, 9},
	{"*", EXPR_MULTIPLY, 10},   {"/", EXPR_DIVIDE, 10},
	{"%", EXPR_REMAINDER, 10},
};

static const struct {
	const char *name;
	uint8_t n_args, type;
} functions[] = {
#define X(NAME, name, n_args, type) {name, n_args, type},
	EXPR_FUNCTIONS(X)
#undef X
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool is_name_letter(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* A decimal, hexadecimal (0x) or octal (0) number. */
static void number_read(struct parser *p)
{
	char digits[32], *end;
	size_t n = 0;

	while (p->next < p->len && is_name_letter(p->text[p->next]) && n < sizeof(digits) - 1)
		digits[n++] = p->text[p->next++];
	digits[n] = 0;
	errno = 0;
	p->token.number = strtoull(digits, &end, 0);
	p->token.is_unsigned = p->token.number > INT64_MAX;
	p->token.kind = *end || errno || n == sizeof(digits) - 1 ? TOKEN_BAD : TOKEN_NUMBER;
	p->token.len = p->next - p->token.at;
}

static void string_read(struct parser *p)
{
	const char *begin = p->text + p->next + 1;
	const char *end = memchr(begin, '"', p->len - p->next - 1);

	p->token.kind = end ? TOKEN_STRING : TOKEN_BAD;
	p->token.at = p->next + 1;
	p->token.len = end ? (size_t)(end - begin) : p->len - p->next - 1;
	p->next = end ? (size_t)(end - p->text) + 1 : p->len;
}

static size_t operator_length(const char *text, size_t len)
{
	static const char two[][3] = {"||", "&&", "==", "!=", "<=", ">=", "<<", ">>"};

	for (size_t i = 0; len >= 2 && i < COUNT(two); i++) {
		if (!memcmp(text, two[i], 2))
			return 2;
	}
	return strchr("|^&~<>+-*/%!()?:,", *text) ? 1 : 0;
}

/* Reads the next token. */
static void advance(struct parser *p)
{
	char c;

	while (p->next < p->len && isspace((unsigned char)p->text[p->next]))
		p->next++;
	p->token = (struct token){.kind = TOKEN_END, .at = p->next};
	if (p->next == p->len)
		return;
	c = p->text[p->next];
	if (isdigit((unsigned char)c)) {
		number_read(p);
	} else if (is_name_letter(c)) {
		while (p->next < p->len && is_name_letter(p->text[p->next]))
			p->next++;
		p->token.kind = TOKEN_NAME;
		p->token.len = p->next - p->token.at;
	} else if (c == '"') {
		string_read(p);
	} else {
		p->token.len = c ? operator_length(p->text + p->next, p->len - p->next) : 0;
		p->token.kind = p->token.len ? TOKEN_OPERATOR : TOKEN_BAD;
		p->token.len = p->token.len ? p->token.len : 1;
		p->next += p->token.len;
	}
}

static bool token_is(const struct parser *p, const char *operator)
{
	return p->token.kind == TOKEN_OPERATOR && p->token.len == strlen(operator) &&
	       !memcmp(p->text + p->token.at, operator, p->token.len);
}

/* A pattern without quotes, as the kernel's filters allow it: comm ~ stress* */
static void pattern_read(struct parser *p)
{
	static const char ends[] = " \t()&|\",";
	size_t end = p->next;

	while (end < p->len && isspace((unsigned char)p->text[end]))
		end++;
	if (end == p->len || strchr(ends, p->text[end])) {
		advance(p);
		return;
	}
	p->token = (struct token){.kind = TOKEN_STRING, .at = end};
	while (end < p->len && p->text[end] && !strchr(ends, p->text[end]))
		end++;
	p->token.len = end - p->token.at;
	p->next = end;
}

static int expected(struct parser *p, const char *what)
{
	const struct token *t = &p->token;

	if (t->kind == TOKEN_END)
		return expr_fail(p->error, -EINVAL, t->at,
				 "expected %s, but the expression ends here", what);
	if (t->kind == TOKEN_BAD && t->at && p->text[t->at - 1] == '"')
		return expr_fail(p->error, -EINVAL, t->at - 1, "this text has no closing quote");
	if (t->kind == TOKEN_BAD && isdigit((unsigned char)p->text[t->at]))
		return expr_fail(p->error, -EINVAL, t->at, "'%.*s' is not a number of 64 bits",
				 (int)t->len, p->text + t->at);
	return expr_fail(p->error, -EINVAL, t->at, "expected %s, found '%.*s'", what,
			 (int)(t->len < 40 ? t->len : 40), p->text + t->at);
}

/* Returns the new node's index or -EINVAL. */
static int node_add(struct parser *p, struct expr_node node)
{
	if (p->out->n == EXPR_NODES_MAX)
		return expr_fail(p->error, -EINVAL, node.at,
				 "the expression is too long: more than %d operators and "
				 "operands",
				 EXPR_NODES_MAX);
	p->out->nodes[p->out->n] = node;
	return (int)p->out->n++;
}

static const struct expr_node *node_of(const struct parser *p, int index)
{
	return &p->out->nodes[index];
}

static int string_add(struct parser *p)
{
	struct expr *e = p->out;
	struct expr_node node = {.op = EXPR_STRING,
				 .type = EXPR_TEXT,
				 .at = (uint16_t)p->token.at,
				 .string = (uint16_t)e->strings_used};

	if (p->token.len >= sizeof(e->strings) - e->strings_used)
		return expr_fail(p->error, -EINVAL, p->token.at,
				 "the texts of the expression are too long: more than "
				 "%d bytes",
				 EXPR_STRINGS_BYTES);
	memcpy(e->strings + e->strings_used, p->text + p->token.at, p->token.len);
	e->strings_used += p->token.len;
	e->strings[e->strings_used++] = 0;
	advance(p);
	return node_add(p, node);
}

static int expression(struct parser *p, unsigned strength);

static int number_needed(struct parser *p, int node, const char *for_what)
{
	if (node >= 0 && node_of(p, node)->type == EXPR_TEXT)
		return expr_fail(p->error, -EINVAL, node_of(p, node)->at,
				 "'%s' needs a number, and this is a text", for_what);
	return node;
}

static int name_unknown(struct parser *p, const struct token *t, bool call)
{
	const char *typed = p->text + t->at, *kind = call ? "function" : "field";
	struct suggest s;
	int len = (int)(t->len < 40 ? t->len : 40);

	suggest_begin(&s, typed, t->len);
	for (size_t i = 0; call && i < COUNT(functions); i++)
		suggest_try(&s, functions[i].name);
	for (size_t i = 0; !call && p->scope->name(p->scope->context, i); i++)
		suggest_try(&s, p->scope->name(p->scope->context, i));
	if (s.best)
		return expr_fail(p->error, -EINVAL, t->at,
				 "there is no %s '%.*s'; did you mean '%s'?", kind, len, typed,
				 s.best);
	return expr_fail(p->error, -EINVAL, t->at, "there is no %s '%.*s'%s", kind, len, typed,
			 call ? "" : "; write a text in quotes");
}

/* Behind the name and its '('. */
static int call(struct parser *p, const struct token *name)
{
	struct expr_node node = {.op = EXPR_CALL, .at = (uint16_t)name->at};
	size_t f = 0;

	while (f < COUNT(functions) && (strlen(functions[f].name) != name->len ||
					memcmp(functions[f].name, p->text + name->at, name->len)))
		f++;
	if (f == COUNT(functions))
		return name_unknown(p, name, true);
	node.index = (uint16_t)f;
	node.type = functions[f].type;
	for (unsigned i = 0; i < functions[f].n_args; i++) {
		int arg;

		if (i && !token_is(p, ","))
			return expected(p, "','");
		if (i)
			advance(p);
		arg = number_needed(p, expression(p, 0), functions[f].name);
		if (arg < 0)
			return arg;
		node.args[i] = (uint8_t)arg;
	}
	if (!token_is(p, ")"))
		return expected(p, "')'");
	advance(p);
	return node_add(p, node);
}

static int name(struct parser *p)
{
	const struct token t = p->token;
	struct expr_node node = {.op = EXPR_FIELD, .at = (uint16_t)t.at};
	char typed[EXPR_NAME_BYTES];
	enum expr_type type;

	advance(p);
	if (token_is(p, "(")) {
		advance(p);
		return call(p, &t);
	}
	if (t.len >= sizeof(typed))
		return name_unknown(p, &t, false);
	memcpy(typed, p->text + t.at, t.len);
	typed[t.len] = 0;
	if (!p->scope->field(p->scope->context, typed, &node.index, &type))
		return name_unknown(p, &t, false);
	node.type = (uint8_t)type;
	return node_add(p, node);
}

static int unary(struct parser *p, enum expr_op op, int operand, size_t at)
{
	static const char *const texts[] = {
		[EXPR_NOT] = "!", [EXPR_INVERT] = "~", [EXPR_NEGATE] = "-"};
	struct expr_node node = {.op = (uint8_t)op, .type = EXPR_SIGNED, .at = (uint16_t)at};

	operand = number_needed(p, operand, texts[op]);
	if (operand < 0)
		return operand;
	if (op == EXPR_INVERT)
		node.type = node_of(p, operand)->type;
	node.args[0] = (uint8_t)operand;
	return node_add(p, node);
}

static int operand(struct parser *p)
{
	const struct token t = p->token;
	int inner;

	if (t.kind == TOKEN_NUMBER) {
		advance(p);
		return node_add(
			p, (struct expr_node){.op = EXPR_NUMBER,
					      .type = t.is_unsigned ? EXPR_UNSIGNED : EXPR_SIGNED,
					      .at = (uint16_t)t.at,
					      .number = t.number});
	}
	if (t.kind == TOKEN_STRING)
		return string_add(p);
	if (t.kind == TOKEN_NAME)
		return name(p);
	if (token_is(p, "(")) {
		advance(p);
		inner = expression(p, 0);
		if (inner >= 0 && !token_is(p, ")"))
			return expected(p, "')' or an operator");
		advance(p);
		return inner;
	}
	for (const char *c = "!~-+"; *c; c++) {
		if (!token_is(p, (char[]){*c, 0}))
			continue;
		advance(p);
		inner = expression(p, UINT8_MAX);
		if (*c == '+')
			return number_needed(p, inner, "+");
		return unary(p,
			     *c == '!'   ? EXPR_NOT
			     : *c == '~' ? EXPR_INVERT
					 : EXPR_NEGATE,
			     inner, t.at);
	}
	return expected(p, "a field, a number, a text or '('");
}

/* The type of `a OP b`, or -EINVAL. */
static int binary_type(struct parser *p, enum expr_op op, const char *text, size_t at, int a, int b)
{
	const enum expr_type left = node_of(p, a)->type, right = node_of(p, b)->type;

	if (op == EXPR_MATCH && (left != EXPR_TEXT || right != EXPR_TEXT))
		return expr_fail(p->error, -EINVAL, at,
				 "'~' compares a text with a pattern, and the %s side is a number",
				 left == EXPR_TEXT ? "right" : "left");
	if ((op == EXPR_EQUAL || op == EXPR_NOT_EQUAL) &&
	    (left == EXPR_TEXT) != (right == EXPR_TEXT))
		return expr_fail(p->error, -EINVAL, at, "'%s' compares a text with a number", text);
	if (op != EXPR_MATCH && op != EXPR_EQUAL && op != EXPR_NOT_EQUAL &&
	    (number_needed(p, a, text) < 0 || number_needed(p, b, text) < 0))
		return -EINVAL;
	if (op == EXPR_SHIFT_LEFT || op == EXPR_SHIFT_RIGHT)
		return (int)left;
	if (op == EXPR_AND || op == EXPR_OR || (op >= EXPR_LESS && op <= EXPR_MATCH))
		return EXPR_SIGNED;
	return left == EXPR_UNSIGNED || right == EXPR_UNSIGNED ? EXPR_UNSIGNED : EXPR_SIGNED;
}

/* `condition ? a : b`, at the '?'. */
static int choose(struct parser *p, int condition)
{
	struct expr_node node = {.op = EXPR_CHOOSE, .at = (uint16_t)p->token.at};
	enum expr_type a_type, b_type;
	int a, b;

	advance(p);
	a = expression(p, 0);
	if (a < 0)
		return a;
	if (!token_is(p, ":"))
		return expected(p, "':' of a condition");
	advance(p);
	b = expression(p, 0);
	if (b < 0)
		return b;
	a_type = node_of(p, a)->type;
	b_type = node_of(p, b)->type;
	if ((a_type == EXPR_TEXT) != (b_type == EXPR_TEXT))
		return expr_fail(p->error, -EINVAL, node.at,
				 "one of both results of '?' is a text, the other a number");
	node.type = a_type == EXPR_UNSIGNED ? EXPR_UNSIGNED : (uint8_t)b_type;
	node.args[0] = (uint8_t)condition;
	node.args[1] = (uint8_t)a;
	node.args[2] = (uint8_t)b;
	return node_add(p, node);
}

/* One binary operator, number i of the table, and its right side. */
static int binary(struct parser *p, int left, size_t i)
{
	struct expr_node node = {.op = operators[i].op, .at = (uint16_t)p->token.at};
	int right, type;

	if (node.op == EXPR_MATCH)
		pattern_read(p);
	else
		advance(p);
	right = expression(p, operators[i].strength);
	if (right < 0)
		return right;
	type = binary_type(p, node.op, operators[i].text, node.at, left, right);
	if (type < 0)
		return type;
	node.type = (uint8_t)type;
	node.args[0] = (uint8_t)left;
	node.args[1] = (uint8_t)right;
	return node_add(p, node);
}

static size_t operator_find(const struct parser *p)
{
	size_t i = 0;

	while (i < COUNT(operators) && !token_is(p, operators[i].text))
		i++;
	return i;
}

/* An operand and all operators to its right that are stronger than `strength`. Returns the index of
 * the node or -EINVAL. */
static int expression(struct parser *p, unsigned strength)
{
	int left;

	if (p->depth == EXPR_DEPTH_MAX)
		return expr_fail(p->error, -EINVAL, p->token.at,
				 "the expression is nested too deeply: more than %d",
				 EXPR_DEPTH_MAX);
	p->depth++;
	left = operand(p);
	while (left >= 0) {
		const size_t i = operator_find(p);

		if (i < COUNT(operators) && operators[i].strength > strength) {
			left = binary(p, left, i);
		} else if (!strength && token_is(p, "?")) {
			left = number_needed(p, left, "?");
			left = left < 0 ? left : choose(p, left);
		} else {
			break;
		}
	}
	p->depth--;
	return left;
}

int expr_parse(const char *text, size_t len, const struct expr_scope *scope, struct expr *out,
	       struct expr_error *error)
{
	struct parser p = {.text = text, .len = len, .scope = scope, .out = out, .error = error};
	int root;

	out->n = out->strings_used = 0;
	if (len > EXPR_SOURCE_MAX)
		return expr_fail(p.error, -EINVAL, EXPR_SOURCE_MAX,
				 "the expression is longer than %d bytes", EXPR_SOURCE_MAX);
	advance(&p);
	root = expression(&p, 0);
	if (root < 0)
		return root;
	if (token_is(&p, ")"))
		return expr_fail(p.error, -EINVAL, p.token.at, "this ')' has no '('");
	if (p.token.kind != TOKEN_END)
		return expected(&p, "an operator or the end");
	return 0;
}

void expr_error_print(const struct expr_error *error, const char *what, const char *text, FILE *to)
{
	enum { BEFORE = 60 }; /* bytes of the text that are shown before the place, and behind it */
	const size_t len = strlen(text), at = error->at < len ? error->at : len;
	const size_t from = at > BEFORE ? at - BEFORE : 0;

	fprintf(to, "%s: %s\n  ", what, error->text);
	for (size_t i = from; i < len && i < at + BEFORE; i++)
		fputc(iscntrl((unsigned char)text[i]) ? '?' : text[i], to);
	fprintf(to, "\n  %*s^\n", (int)(at - from), "");
}
