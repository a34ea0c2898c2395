/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The expressions of filters and keys: C without assignment, loops, pointers and floating point.
 * expr_parse() turns a text into a tree of typed nodes, expr_eval() computes its value. Other back
 * ends (a table for BPF, a filter of the kernel) walk the nodes.
 *
 * Numbers have 64 bits; an operation is unsigned if one of its sides is. A text is compared with
 * == and !=, or with ~ against a pattern of the shell ("stress*"). A value may be missing, for
 * example the vCPU of an event that concerns none, or a division by zero. What is computed from a
 * missing value is missing, except that 0 && x is 0 and 1 || x is 1.
 */
#ifndef QUERY_EXPR_H
#define QUERY_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	EXPR_SOURCE_MAX = 1024, /* length of a source text */
	EXPR_NODES_MAX = 64,
	EXPR_STRINGS_BYTES = 512, /* of all string constants */
	EXPR_DEPTH_MAX = 32,      /* of parentheses, signs and conditions */
	EXPR_NAME_BYTES = 64,     /* of a field's name, with the NUL */
	EXPR_ARGUMENTS_MAX = 2,
};

enum expr_type { EXPR_NONE, EXPR_SIGNED, EXPR_UNSIGNED, EXPR_TEXT };

/* X(NAME, "operator"): the binary operators. */
#define EXPR_BINARY(X)                                                                             \
	X(MULTIPLY, "*")                                                                           \
	X(DIVIDE, "/")                                                                             \
	X(REMAINDER, "%")                                                                          \
	X(ADD, "+")                                                                                \
	X(SUBTRACT, "-")                                                                           \
	X(SHIFT_LEFT, "<<")                                                                        \
	X(SHIFT_RIGHT, ">>")                                                                       \
	X(LESS, "<")                                                                               \
	X(LESS_EQUAL, "<=")                                                                        \
	X(GREATER, ">")                                                                            \
	X(GREATER_EQUAL, ">=")                                                                     \
	X(EQUAL, "==")                                                                             \
	X(NOT_EQUAL, "!=")                                                                         \
	X(MATCH, "~")                                                                              \
	X(BIT_AND, "&")                                                                            \
	X(BIT_XOR, "^")                                                                            \
	X(BIT_OR, "|")                                                                             \
	X(AND, "&&")                                                                               \
	X(OR, "||")

enum expr_op {
	EXPR_NUMBER, /* number */
	EXPR_STRING, /* string */
	EXPR_FIELD,  /* index: the scope's number of the field */
	EXPR_CALL,   /* index: enum expr_function; args */
	EXPR_NOT,    /* !args[0] */
	EXPR_INVERT, /* ~args[0] */
	EXPR_NEGATE, /* -args[0] */
	EXPR_CHOOSE, /* args[0] ? args[1] : args[2] */
#define X(NAME, ...) EXPR_##NAME,
	EXPR_BINARY(X) /* args[0] OP args[1] */
#undef X
};

/* X(NAME, "name", number of arguments, type of the result). All arguments are numbers. */
#define EXPR_FUNCTIONS(X)                                                                          \
	X(COMM_GET, "comm_get", 1, EXPR_TEXT) /* (tid): a task's name, on the event's side */      \
	X(EXIT_REASON_STR, "exit_reason_str", 2, EXPR_TEXT) /* (isa, reason) */                    \
	X(NTOHS, "ntohs", 1, EXPR_UNSIGNED)                                                        \
	X(NTOHL, "ntohl", 1, EXPR_UNSIGNED)

enum expr_function {
#define X(NAME, ...) EXPR_##NAME,
	EXPR_FUNCTIONS(X)
#undef X
};

/* The nodes of arguments precede the node that has them. */
struct expr_node {
	uint8_t op;      /* enum expr_op */
	uint8_t type;    /* enum expr_type of its value */
	uint8_t args[3]; /* indices of nodes */
	uint16_t index;
	uint16_t at; /* position in the source text */
	uint64_t number;
	uint16_t string; /* offset in strings */
};

struct expr {
	size_t n; /* the last node is the root; 0: no expression */
	struct expr_node nodes[EXPR_NODES_MAX];
	size_t strings_used;
	char strings[EXPR_STRINGS_BYTES];
};

/* What was wrong, for people: where, what was expected, and the nearest name. */
struct expr_error {
	size_t at; /* position in the text, from 0 */
	char text[200];
};
/* Sets *error to a position and a text, which is cut if it is too long. Returns `err`. */
int expr_fail(struct expr_error *error, int err, size_t at, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The names that an expression may use. */
struct expr_scope {
	/* Finds a field. Returns true with its number and its type. */
	bool (*field)(const void *context, const char *name, uint16_t *index, enum expr_type *type);
	/* Returns the i-th name, to suggest it instead of a mistyped one; NULL after the last. */
	const char *(*name)(const void *context, size_t i);
	const void *context;
};

/* Parses text[0..len-1]. Returns 0, or -EINVAL with *error; *out is unspecified then. */
int expr_parse(const char *text, size_t len, const struct expr_scope *scope, struct expr *out,
	       struct expr_error *error);

/* Prints the error, the text and a mark below the place of the error. `what`: what the text is. */
void expr_error_print(const struct expr_error *error, const char *what, const char *text, FILE *to);

struct expr_value {
	enum expr_type type; /* EXPR_NONE: it is missing */
	uint64_t number;     /* of a signed value: its two's complement */
	const char *text;
};

/* The values of one event. */
struct expr_source {
	struct expr_value (*field)(void *context, uint16_t index);
	/* Calls COMM_GET or EXIT_REASON_STR. */
	struct expr_value (*call)(void *context, enum expr_function function,
				  const struct expr_value *args);
	void *context;
};

/* Computes the value. A text is valid as long as what the source returned and `e`. */
struct expr_value expr_eval(const struct expr *e, const struct expr_source *from);
/* Returns true if the value is present and not 0; a text if it is not empty. */
bool expr_is_true(struct expr_value value);
/* Compares a text with a pattern of the shell: '*', '?', and sets in brackets. The time is bounded
 * by the product of both lengths. */
bool expr_glob(const char *pattern, const char *text);

#endif
