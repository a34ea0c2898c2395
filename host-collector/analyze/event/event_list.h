/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes one line for each chosen event: its time, the bound on the time's error, its place, its
 * task and its fields. */
#ifndef EVENT_EVENT_LIST_H
#define EVENT_EVENT_LIST_H

#include <stdio.h>

#include "host-collector/analyze/event/event_reader.h"

enum event_list_format { EVENT_LIST_TEXT, EVENT_LIST_JSON, EVENT_LIST_CSV };

struct event_list_options {
	enum event_list_format format;
	uint64_t top;                /* largest number of lines; 0: all */
	const struct narrow *narrow; /* the events that it selects; NULL: all. Borrowed. */
	FILE *out;
};

struct event_list;

/* Subscribes to the model and writes while it runs. Returns NULL on ENOMEM. */
struct event_list *event_list_new(struct model *m, const struct event_choices *choices,
				  const struct event_list_options *options);
void event_list_free(struct event_list *l); /* NULL is allowed */
/* Returns the number of events that were not written, because of `top`. */
uint64_t event_list_left_out(const struct event_list *l);
/* Returns the number of events that were written. */
uint64_t event_list_written(const struct event_list *l);
/* Writes one event as a line of text, without its stack. The line shows its time since
 * `origin_ns`. */
void event_text_write(struct event_row *row, int64_t origin_ns, FILE *out);
/* Writes the event's stack if its choice shows stacks: an indented line for each frame, leaf first.
 */
void event_stack_write(const struct event_row *row, FILE *out);
/* Writes one field as a member of a JSON object. base: of struct event_schema_field. value: not
 * EXPR_NONE. */
void event_json_field(const char *name, uint8_t base, const struct expr_value *value, FILE *out);
/* Writes the values of the event's own fields that are shown, as a JSON object. */
void event_json_fields(struct event_row *row, FILE *out);
/* Writes a text as a JSON string that is safe to print. */
void event_json_text(const char *text, FILE *out);

#endif
