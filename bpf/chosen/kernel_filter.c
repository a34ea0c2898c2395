/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/chosen/kernel_filter.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bpf/chosen/filter_parts.h"
#include "proto/query/event_schema.h"

enum {
	COMM_BYTES = 16,
	TEXT_MAX = 200, /* the kernel's limit is 256 */
};

/* How a part of the filter was written. */
enum written {
	WRITTEN_NOT = 0,
	WRITTEN_WIDER, /* the written part keeps more hits */
	WRITTEN_EXACT,
};

struct writer {
	const struct expr *e;
	const struct source_field *fields;
	char *out;
	size_t bytes, used; /* used >= bytes: it did not fit */
};

/* A field as the kernel names it. */
struct place {
	const char *name;
	enum user_field_type type;
	uint32_t bytes;
	bool of_task; /* COMM */
};

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct writer *w, const char *format, ...)
{
	va_list arguments;

	if (w->used >= w->bytes)
		return;
	va_start(arguments, format);
	w->used += (size_t)vsnprintf(w->out + w->used, w->bytes - w->used, format, arguments);
	va_end(arguments);
}

/* Returns false if the kernel's filters do not know the field. */
static bool place_of(const struct writer *w, const struct expr_node *node, struct place *out)
{
	const struct source_field *f;

	if (node->op != EXPR_FIELD)
		return false;
	switch (node->index) {
	case EVENT_COMMON_CPU:
		*out = (struct place){"CPU", USER_SIGNED, 4, false};
		return true;
	case EVENT_COMMON_TID:
		*out = (struct place){"common_pid", USER_SIGNED, 4, false};
		return true;
	case EVENT_COMMON_COMM:
		*out = (struct place){"COMM", USER_TEXT, COMM_BYTES, true};
		return true;
	default:
		break;
	}
	if (node->index >= EVENT_COMMON_BASE)
		return false;
	f = &w->fields[node->index];
	*out = (struct place){f->name, f->type, f->bytes, false};
	return true;
}

/* ---- comparisons ---- */

static uint8_t opposite(uint8_t op)
{
	switch (op) {
	case EXPR_LESS:
		return EXPR_GREATER_EQUAL;
	case EXPR_LESS_EQUAL:
		return EXPR_GREATER;
	case EXPR_GREATER:
		return EXPR_LESS_EQUAL;
	case EXPR_GREATER_EQUAL:
		return EXPR_LESS;
	case EXPR_EQUAL:
		return EXPR_NOT_EQUAL;
	default:
		return EXPR_EQUAL;
	}
}

static const char *sign_of(uint8_t op)
{
	switch (op) {
	case EXPR_LESS:
		return "<";
	case EXPR_LESS_EQUAL:
		return "<=";
	case EXPR_GREATER:
		return ">";
	case EXPR_GREATER_EQUAL:
		return ">=";
	case EXPR_EQUAL:
		return "==";
	default:
		return "!=";
	}
}

/* The kernel compares with the size and the sign of the field. Returns false if the result may
 * differ from the programs' comparison of 64 bits. */
static bool compares_alike(const struct place *p, uint8_t op, bool is_signed, uint64_t number)
{
	const unsigned int unused = 64 - 8 * p->bytes;

	if (!p->bytes || p->bytes > 8 || (p->bytes & (p->bytes - 1)))
		return false;
	if (p->type != USER_SIGNED)
		return !is_signed && number <= UINT64_MAX >> unused;
	if ((uint64_t)((int64_t)(number << unused) >> unused) != number)
		return false;
	return is_signed || op == EXPR_EQUAL || op == EXPR_NOT_EQUAL;
}

/* is_signed: of the programs' comparison. */
static enum written number_write(struct writer *w, const struct place *p, uint8_t op,
				 bool is_signed, uint64_t number)
{
	if (p->type == USER_TEXT || !compares_alike(p, op, is_signed, number))
		return WRITTEN_NOT;
	if (p->type == USER_SIGNED)
		put(w, "%s%s%lld", p->name, sign_of(op), (long long)number);
	else
		put(w, "%s%s%llu", p->name, sign_of(op), (unsigned long long)number);
	return WRITTEN_EXACT;
}

/* Returns whether `node` is `field & constant`. */
static bool bits_of(const struct writer *w, const struct expr_node *node, struct place *p,
		    uint64_t *mask)
{
	const struct expr_node *a, *b;
	uint8_t op = node->op;

	if (node->op != EXPR_BIT_AND || !filter_sides(w->e, node, &op, &a, &b) ||
	    !place_of(w, a, p) || p->type == USER_TEXT || !p->bytes || p->bytes > 8)
		return false;
	*mask = filter_constant(w->e, b);
	return *mask <= (uint64_t)INT64_MAX >> (64 - 8 * p->bytes);
}

static enum written bits_write(struct writer *w, const struct place *p, uint64_t mask, bool wanted)
{
	put(w, wanted ? "%s&%llu" : "!(%s&%llu)", p->name, (unsigned long long)mask);
	return WRITTEN_EXACT;
}

static enum written text_write(struct writer *w, const struct expr_node *node, bool wanted)
{
	const struct expr_node *a = &w->e->nodes[node->args[0]], *b = &w->e->nodes[node->args[1]];
	const char *text = w->e->strings + b->string;
	const char *sign = node->op == EXPR_MATCH ? "~" : "==";
	struct place p;

	if (b->op != EXPR_STRING || !place_of(w, a, &p) || p.type != USER_TEXT ||
	    strpbrk(text, "\"\\'") || !*text || *text == '!' || strlen(text) >= TEXT_MAX)
		return WRITTEN_NOT;
	/* We compare cut texts, the kernel whole ones. */
	if (strlen(text) + 1 >= p.bytes || (node->op != EXPR_MATCH && strpbrk(text, "*?[")))
		return WRITTEN_NOT;
	if (node->op == EXPR_NOT_EQUAL)
		wanted = !wanted;
	put(w, wanted ? "%s%s\"%s\"" : "!(%s%s\"%s\")", p.name, sign, text);
	return WRITTEN_EXACT;
}

static enum written compare_write(struct writer *w, const struct expr_node *node, bool wanted)
{
	const struct expr_node *a = &w->e->nodes[node->args[0]], *b = &w->e->nodes[node->args[1]];
	uint8_t op = node->op;
	struct place p;
	uint64_t mask;

	if (a->type == EXPR_TEXT || b->type == EXPR_TEXT || op == EXPR_MATCH)
		return text_write(w, node, wanted);
	if (!filter_sides(w->e, node, &op, &a, &b))
		return WRITTEN_NOT;
	if (!wanted)
		op = opposite(op);
	if (place_of(w, a, &p))
		return number_write(w, &p, op, a->type == EXPR_SIGNED && b->type == EXPR_SIGNED,
				    filter_constant(w->e, b));
	if ((op == EXPR_EQUAL || op == EXPR_NOT_EQUAL) && !filter_constant(w->e, b) &&
	    bits_of(w, a, &p, &mask))
		return bits_write(w, &p, mask, op == EXPR_NOT_EQUAL);
	return WRITTEN_NOT;
}

/* ---- expressions ---- */

static enum written node_write(struct writer *w, const struct expr_node *node, bool wanted);

static void rewind_to(struct writer *w, size_t used)
{
	w->used = used;
	if (used < w->bytes)
		w->out[used] = '\0';
}

/* Both operands must hold. An operand that cannot be written is left out. */
static enum written both_write(struct writer *w, const struct expr_node *a,
			       const struct expr_node *b, bool wanted)
{
	const size_t begin = w->used;
	enum written first, second;
	size_t end;

	put(w, "(");
	first = node_write(w, a, wanted);
	end = w->used;
	put(w, first ? ")&&(" : "");
	second = node_write(w, b, wanted);
	if (!first && !second) {
		rewind_to(w, begin);
		return WRITTEN_NOT;
	}
	if (!second)
		rewind_to(w, end);
	put(w, ")");
	return first == WRITTEN_EXACT && second == WRITTEN_EXACT ? WRITTEN_EXACT : WRITTEN_WIDER;
}

/* One operand must hold, so none can be left out. */
static enum written either_write(struct writer *w, const struct expr_node *a,
				 const struct expr_node *b, bool wanted)
{
	const size_t begin = w->used;
	enum written first, second;

	put(w, "(");
	first = node_write(w, a, wanted);
	put(w, ")||(");
	second = first ? node_write(w, b, wanted) : WRITTEN_NOT;
	put(w, ")");
	if (first && second)
		return first < second ? first : second;
	rewind_to(w, begin);
	return WRITTEN_NOT;
}

/* wanted: writes the condition that `node` holds; otherwise, that it does not. The parser bounds
 * the depth. */
static enum written node_write(struct writer *w, const struct expr_node *node, bool wanted)
{
	const struct expr_node *a = &w->e->nodes[node->args[0]], *b = &w->e->nodes[node->args[1]];
	struct place p;
	uint64_t mask;

	switch (node->op) {
	case EXPR_AND:
	case EXPR_OR:
		return (node->op == EXPR_AND) == wanted ? both_write(w, a, b, wanted)
							: either_write(w, a, b, wanted);
	case EXPR_NOT:
		return node_write(w, a, !wanted);
	case EXPR_LESS:
	case EXPR_LESS_EQUAL:
	case EXPR_GREATER:
	case EXPR_GREATER_EQUAL:
	case EXPR_EQUAL:
	case EXPR_NOT_EQUAL:
	case EXPR_MATCH:
		return filter_has_field(w->e, node) ? compare_write(w, node, wanted) : WRITTEN_NOT;
	default:
		break;
	}
	if (place_of(w, node, &p))
		return number_write(w, &p, wanted ? EXPR_NOT_EQUAL : EXPR_EQUAL,
				    p.type == USER_SIGNED, 0);
	return bits_of(w, node, &p, &mask) ? bits_write(w, &p, mask, wanted) : WRITTEN_NOT;
}

bool kernel_filter_write(const struct expr *e, const struct source_field *fields, char *out,
			 size_t out_bytes)
{
	struct writer w = {.e = e, .fields = fields, .out = out, .bytes = out_bytes};
	enum written written;

	*out = '\0';
	if (!e->n)
		return true;
	written = node_write(&w, &e->nodes[e->n - 1], true);
	if (written && w.used < w.bytes)
		return written == WRITTEN_EXACT;
	*out = '\0';
	return false;
}
