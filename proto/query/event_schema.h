/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The names, sides and fields of the events that a user can name. The events that every capture
 * takes come from the event catalogue (proto/events.def) and have the names that the kernel gives
 * them. Events that a user chose are added with their own fields.
 *
 * A field is found by the kernel's name, then as one of the fields that every event has
 * (EVENT_COMMON_FIELDS), then by the name in the catalogue.
 */
#ifndef QUERY_EVENT_SCHEMA_H
#define QUERY_EVENT_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/query/event_spec.h"
#include "proto/query/expr.h"
#include "proto/event_catalog.h"
#include "proto/message.h"

/* X(NAME, "name", type, meaning): what every event has beside its own fields. */
#define EVENT_COMMON_FIELDS(X)                                                                     \
	X(CPU, "cpu", EXPR_UNSIGNED, "the CPU, of the host or of the guest")                       \
	X(TID, "tid", EXPR_SIGNED, "the task on that CPU")                                         \
	X(PID, "pid", EXPR_SIGNED, "the process of that task")                                     \
	X(COMM, "comm", EXPR_TEXT, "the name of that task")                                        \
	X(VM, "vm", EXPR_TEXT, "the name of the VM that it concerns")                              \
	X(VCPU, "vcpu", EXPR_UNSIGNED, "the vCPU that it concerns, the same number on both sides") \
	X(GTASK, "gtask", EXPR_SIGNED, "the task that the guest was running on that vCPU")         \
	X(STATE, "state", EXPR_TEXT, "the state of that vCPU")

enum event_common_field {
	EVENT_COMMON_BASE = 0x100, /* fields in expressions: common fields have numbers from here
				      on, own fields of the event lower ones */
	/* Gives the first common field the number EVENT_COMMON_BASE. */
	EVENT_COMMON_BEFORE = EVENT_COMMON_BASE - 1,
#define X(NAME, ...) EVENT_COMMON_##NAME,
	EVENT_COMMON_FIELDS(X)
#undef X
		EVENT_COMMON_END,
};

enum { EVENT_SCHEMA_FIELDS_MAX = 32 };

struct event_schema_field {
	char name[EXPR_NAME_BYTES];
	/* The name in the catalogue, and the name in another kernel; "": none. */
	char plain[EVENT_FIELD_NAME_BYTES], other[EVENT_FIELD_NAME_BYTES];
	uint8_t type;     /* enum expr_type */
	uint8_t base;     /* in which a number is shown: 10 or 16; 0: a task */
	const char *unit; /* "ns", "us", "bytes" or "" */
	/* Of an event of the catalogue: its place in struct vs_event. NULL: the field of this
	 * number in the description (proto/user_event.h). */
	const struct event_field *place;
};

struct event_schema {
	enum event_spec_kind kind;
	char system[EVENT_SPEC_NAME_BYTES], name[EVENT_SPEC_NAME_BYTES];
	uint8_t sides; /* bits of enum event_side */
	/* The type of its records. If the type has several tracepoints, arg0 is `constant`. */
	uint16_t type;
	bool by_constant;
	uint64_t constant;
	/* Of an event that a user chose: its stream, and its id there. type is VS_EVENT_USER. */
	uint32_t source, id;
	bool stacks; /* its last field is the number of the hit's stack (USER_STACKS) */
	char path[EVENT_SPEC_PATH_BYTES]; /* of uprobe and usdt */
	/* Another tracepoint that became the same records; its events cannot be distinguished from
	 * these. */
	char also[EVENT_SPEC_NAME_BYTES];
	size_t n_fields;
	struct event_schema_field fields[EVENT_SCHEMA_FIELDS_MAX];
};

/* All events that can be named. */
struct event_schemas;

/* Allocates the list of the catalogue's events. Returns NULL on ENOMEM. */
struct event_schemas *event_schemas_new(void);
void event_schemas_free(struct event_schemas *s); /* NULL is allowed */
/* Adds a copy of a schema. Returns 0 or -ENOMEM. */
int event_schemas_add(struct event_schemas *s, const struct event_schema *schema);
/* Adds an event that a user chose when recording, unless it is known. Returns 0 or -ENOMEM. */
int event_schemas_describe(struct event_schemas *s, uint32_t source,
			   const struct message_user_event *e);
/* Returns schema number i, or NULL past the last. Valid until the next event_schemas_add(). */
const struct event_schema *event_schemas_get(const struct event_schemas *s, size_t i);

/* Finds the events that `spec` names, and stores their numbers (for event_schemas_get()) to
 * out[0..max-1]. A name that both sides have needs a side or a pattern. Returns their number, or
 * -ENOENT or -EINVAL with *error. */
int event_schemas_find(const struct event_schemas *s, const struct event_spec *spec, size_t *out,
		       size_t max, struct expr_error *error);
/* Returns the scope in which the expressions of this event are parsed. */
struct expr_scope event_schema_scope(const struct event_schema *schema);
/* Parses an expression that stands in the text of an event. Positions in *error count from the
 * begin of that text. Returns 0, also if it is absent (out->n is 0), or -EINVAL. */
int event_spec_expr(const struct event_schema *schema, const struct event_spec_text *text,
		    struct expr *out, struct expr_error *error);
/* Returns the name of a common field, or NULL. Static. */
const char *event_common_name(uint16_t index);

#endif
