/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event catalogue (events.def) as tables, for user space: the properties of the types, their
 * fields, and the tracepoints that become events. A type that the catalogue does not define (a
 * newer peer sends it) has no properties.
 */
#ifndef PROTO_EVENT_CATALOG_H
#define PROTO_EVENT_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event_fields.h"

enum event_side { EVENT_HOST = 1, EVENT_GUEST = 2 };

/* The field that holds the task that was on the event's CPU. */
enum event_current {
	EVENT_CURRENT_NONE,
	EVENT_CURRENT_PID,
	EVENT_CURRENT_PID2_OF_GUEST, /* pid2; in the host's stream, no field */
	EVENT_CURRENT_SWITCH,        /* pid before the event, pid2 after it */
};

enum event_flags {
	EVENT_LASTS = 1,    /* still true if it arrives late: a loss, a name */
	EVENT_IN_GUEST = 2, /* the guest's kernel reports it at once, on the CPU where it happens */
	EVENT_VCPU_STATE = 4, /* the states of a vCPU derive from it; captured at every level */
	EVENT_EVIDENCE = 8,   /* no analysis reads it: reports and exports show its fields */
};

struct event_type {
	const char *name; /* NULL: not in the catalogue */
	uint8_t sides;    /* bits of enum event_side */
	uint8_t current;  /* enum event_current */
	uint8_t scope;    /* enum vs_scope */
	uint8_t flags;    /* bits of enum event_flags */
};

/* By number. Use event_type_of(), which accepts every number. */
extern const struct event_type event_types[VS_EVENT_TYPE_LIMIT];

/* Returns the properties of `type`; those of VS_EVENT_NONE, all zero, if it is not known. */
static inline const struct event_type *event_type_of(uint16_t type)
{
	return &event_types[type < VS_EVENT_TYPE_LIMIT ? type : VS_EVENT_NONE];
}

static inline bool event_type_known(uint16_t type)
{
	return event_type_of(type)->name != NULL;
}

static inline bool event_type_is(uint16_t type, enum event_flags flag)
{
	return event_type_of(type)->flags & flag;
}

/* Returns true if an event of the host's stream names the task on its CPU: `pid`, or both tasks of
 * a switch. */
static inline bool event_names_host_current(uint16_t type)
{
	const uint8_t current = event_type_of(type)->current;

	return current == EVENT_CURRENT_PID || current == EVENT_CURRENT_SWITCH;
}

enum event_place { EVENT_PLACE_pid, EVENT_PLACE_pid2, EVENT_PLACE_arg0, EVENT_PLACE_arg1 };

enum { EVENT_FIELD_NAME_BYTES = 32 };

struct event_field {
	const char *name;
	const char *kernel; /* names in the tracepoint's record, separated by '|'; NULL: none */
	uint8_t place;      /* enum event_place */
	uint8_t shift, width;
	uint8_t base; /* in which the value is shown: 10 or 16; 0: it is a task's id */
	bool is_signed;
};

/* Returns the fields of `type` and sets *n to their number. */
const struct event_field *event_fields(uint16_t type, size_t *n);
/* Returns the value of a field, sign-extended if the field is signed. */
uint64_t event_field_get(const struct event_field *field, const struct vs_event *e);
/* Sets a field to the low bits of `value`. */
void event_field_set(const struct event_field *field, struct vs_event *e, uint64_t value);
/* Writes the value of a field as text. Returns `out`. */
const char *event_field_text(const struct event_field *field, const struct vs_event *e, char *out,
			     size_t out_bytes);
/* Writes the names and values of the fields except `pid`, separated by spaces: "number=10 code=-6".
 * Cuts what does not fit. Returns `out`. */
const char *event_text(const struct vs_event *e, char *out, size_t out_bytes);
/* Copies the name in the record of part number `part` of field->kernel ("a|b" has two). Returns
 * false if there is no such part, or if its name is too long. */
bool event_field_kernel_name(const struct event_field *field, size_t part,
			     char out[EVENT_FIELD_NAME_BYTES]);

/* Who makes events from a tracepoint. */
enum tracepoint_users {
	BY_ROW = 1,    /* the host's capture, which reads the fields from the record */
	BY_HOST = 2,   /* the host's capture, with a program of its own for BPF */
	BY_GUEST = 4,  /* the guest's capture */
	BY_IMPORT = 8, /* the import of other tracers' recordings */
};

struct event_tracepoint {
	const char *system, *name;
	uint16_t type;
	uint8_t users;     /* bits of enum tracepoint_users */
	uint64_t constant; /* added to arg0 */
};

/* Returns the constant of the tracepoint that became the event. For types whose tracepoints have
 * constants: these types have no other field in arg0. */
static inline uint64_t event_constant(const struct vs_event *e)
{
	return e->arg0;
}

/* Sets the type and the constant of an event without fields. */
static inline void event_begin(struct vs_event *e, const struct event_tracepoint *from)
{
	*e = (struct vs_event){.type = from->type, .arg0 = from->constant};
}

/* Returns the tracepoints of the catalogue, in its order, and sets *n to their number. */
const struct event_tracepoint *event_tracepoints(size_t *n);

/* A set of event types. All zero: empty. */
struct event_set {
	uint64_t words[(VS_EVENT_TYPE_LIMIT + 63) / 64];
};

/* Returns the set of the types of a list that ends with 0. */
struct event_set event_set_of(const uint16_t *types);
#define EVENT_SET(...) event_set_of((const uint16_t[]){__VA_ARGS__, 0})

/* Returns the set of the types that have a flag. */
struct event_set event_set_flagged(enum event_flags flag);

/* Types that the catalogue does not define are in no set. */
static inline bool event_set_has(const struct event_set *set, uint16_t type)
{
	return type < VS_EVENT_TYPE_LIMIT && set->words[type / 64] >> type % 64 & 1;
}

/* Adds the types of `more`; if `more` is empty, adds all types. */
void event_set_add(struct event_set *set, const struct event_set *more);

#endif
