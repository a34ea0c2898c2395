/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads and writes the fields of an event by their names in the catalogue (events.def):
 * ev_NAME_FIELD(e) returns a field, ev_set_NAME_FIELD(e, value) sets it. No other code knows where
 * a field lies. BPF programs may include this header.
 */
#ifndef PROTO_EVENT_FIELDS_H
#define PROTO_EVENT_FIELDS_H

#include "proto/event.h"

/* X(TYPE, C type, base in which it is shown: 10, 16, or 0 for a task): the types of fields. */
#define EVENT_FIELD_TYPES(X)                                                                       \
	X(TASK, vs_s32, 0)                                                                         \
	X(U32, vs_u32, 10)                                                                         \
	X(U64, vs_u64, 10)                                                                         \
	X(S32, vs_s32, 10)                                                                         \
	X(S64, vs_s64, 10)                                                                         \
	X(X32, vs_u32, 16)                                                                         \
	X(X64, vs_u64, 16)                                                                         \
	X(NS, vs_u64, 10) /* nanoseconds */

#define X(TYPE, c_type, base) typedef c_type ev_c_##TYPE;
EVENT_FIELD_TYPES(X)
#undef X

#define EV_MASK(width) (~0ull >> (64 - (width)))

#define EV_c_pid  vs_s32
#define EV_c_pid2 vs_s32
#define EV_c_arg0 vs_u64
#define EV_c_arg1 vs_u64

#define FIELD(event, field, place, shift, width, type, ...)                                        \
	static inline ev_c_##type ev_##event##_##field(const struct vs_event *e)                   \
	{                                                                                          \
		return (ev_c_##type)((vs_u64)e->place >> (shift)&EV_MASK(width));                  \
	}                                                                                          \
	static inline void ev_set_##event##_##field(struct vs_event *e, ev_c_##type value)         \
	{                                                                                          \
		e->place = (EV_c_##place)(((vs_u64)e->place & ~(EV_MASK(width) << (shift))) |      \
					  ((vs_u64)value & EV_MASK(width)) << (shift));            \
	}
#include "proto/events.def"

/* Copies the name of a TASK_NAME event; it ends with a NUL. */
static inline void ev_task_comm(const struct vs_event *e, char comm[16])
{
	__builtin_memcpy(comm, &e->arg0, 8);
	__builtin_memcpy(comm + 8, &e->arg1, 8);
	comm[15] = 0;
}

/* Sets the name of a TASK_NAME event. */
static inline void ev_set_task_comm(struct vs_event *e, const char comm[16])
{
	__builtin_memcpy(&e->arg0, comm, 8);
	__builtin_memcpy(&e->arg1, comm + 8, 8);
}

/* Returns the number of a handler, which its entry and its exit have in common: the irq, the
 * softirq or the enum vs_vector. For the types IRQ_ENTRY to VECTOR_EXIT. */
static inline vs_u64 ev_handler_number(const struct vs_event *e)
{
	return ev_irq_entry_number(e); /* all of them have it in this place: test_event_catalog */
}

static inline void ev_set_handler_number(struct vs_event *e, vs_u64 number)
{
	ev_set_irq_entry_number(e, number);
}

/* Sets the two values of a USER or USER_MORE event. */
static inline void ev_set_user_values(struct vs_event *e, vs_u64 first, vs_u64 second)
{
	ev_set_user_first(e, first); /* both have them in this place: test_event_catalog */
	ev_set_user_second(e, second);
}

#endif
