/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delivers the events that a user chose, in time order over both sides, with the values of their
 * fields. Subscribes to a model; knows nothing of pairs and lists.
 */
#ifndef EVENT_EVENT_READER_H
#define EVENT_EVENT_READER_H

#include "host-collector/analyze/event/choices.h"
#include "host-collector/model/narrow.h"
#include "proto/user_event.h"

struct event_reader;

/* One event that one choice selects. Valid during the call. */
struct event_row {
	struct event_reader *reader;
	const struct event_choice *choice;
	size_t number; /* index of the choice */
	struct host_ns t;
	uint32_t err_ns; /* bound on the error of t */
	uint32_t source; /* VS_SOURCE_HOST or the VM */
	uint32_t boot;   /* of a guest */
	const struct vs_event *event;
	const struct user_hit *hit; /* of an event that a user chose: its values; else NULL */
	/* The VM and the vCPU that it concerns: use event_row_vcpu(). */
	bool placed, vm_known, vcpu_known;
	uint32_t vm, vcpu;
};

/* Events of this CPU were lost within an interval. */
struct event_loss {
	uint32_t source;
	uint16_t cpu;
	uint64_t count;       /* 0: unknown */
	struct host_ns t;     /* when it became known */
	struct host_ns since; /* not after t */
	struct host_ns until; /* INT64_MAX: until `lost_over` */
};

struct event_sink {
	/* Receives each event once for each choice that selects it. */
	void (*row)(void *context, struct event_row *row);
	void (*lost)(void *context, const struct event_loss *loss); /* may be NULL */
	/* The losses of this CPU whose end was unknown ended at `t`. May be NULL. */
	void (*lost_over)(void *context, uint32_t source, uint16_t cpu, struct host_ns t);
	void *context;
};

/* Subscribes to the model; `choices` is borrowed. Feed the model no more after
 * event_reader_free(). Returns NULL on ENOMEM. */
struct event_reader *event_reader_new(struct model *m, const struct event_choices *choices,
				      const struct event_sink *sink);
void event_reader_free(struct event_reader *r); /* NULL is allowed */
const struct model *event_reader_model(const struct event_reader *r);

/* Finds the VM and the vCPU that the event concerns: that of its thread, of its guest CPU, or the
 * one that an interrupt is addressed to. Returns false if it concerns no vCPU, or an unknown one.
 */
bool event_row_vcpu(struct event_row *row);
/* Returns whether `n` selects the event, by its time, VM, vCPU and task. An event that concerns no
 * vCPU is selected by neither VM nor vCPU. */
bool event_row_selected(struct event_row *row, const struct narrow *n);
/* Returns the task on the event's CPU, or -1 if it is unknown. */
int32_t event_row_task(const struct event_row *row);
/* Returns the name of a task of the event's side, or "". Borrowed until the next event. */
const char *event_row_task_name(const struct event_row *row, int32_t tid);
/* Computes an expression that was parsed in the scope of the row's event. */
struct expr_value event_row_eval(struct event_row *row, const struct expr *e);
/* Returns the value of one of the event's own fields. A text is valid until the fourth call after
 * this one. */
struct expr_value event_row_field(const struct event_row *row, size_t field);
/* Returns whether people read the number in hexadecimal: if its schema says so, or if it is so
 * large that it is an address (of kmalloc's caller, which its tracepoint declares as a number). */
bool event_field_is_hex(const struct event_schema_field *f, const struct expr_value *value);
/* Writes that value for people: a number in its base, with its meaning if it has one. Returns
 * `out`. */
const char *event_row_field_text(const struct event_row *row, size_t field, char *out,
				 size_t out_bytes);
/* Writes what one of the event's own numbers means, such as the name of a task. Returns false if
 * it has no name. */
bool event_row_field_meaning(const struct event_row *row, const struct event_schema_field *field,
			     char *out, size_t out_bytes);
/* Returns the stack that the event names, or that was taken with it; NULL: none is known. */
const struct stack *event_row_stack(const struct event_row *row);

#endif
