/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the fields of one event after the event has passed, so that a pair can show them when its
 * second event has come. Texts are not escaped.
 */
#ifndef EVENT_PAIR_FIELDS_H
#define EVENT_PAIR_FIELDS_H

#include "host-collector/analyze/event/event_reader.h"

struct pair_field {
	const char *name;    /* borrowed from the event's description */
	enum expr_type type; /* EXPR_NONE: it has no value */
	uint8_t base;        /* of struct event_schema_field */
	bool is_number;      /* not shown in hexadecimal */
	int64_t number;      /* EXPR_UNSIGNED: its bits */
	const char *text;    /* of all that is not is_number, for people */
};

struct pair_fields {
	size_t n;
	struct pair_field items[];
};

/* Copies the fields that the event's choice shows into one block of memory. The caller frees it
 * with free(). Returns NULL on ENOMEM. */
struct pair_fields *pair_fields_new(const struct event_row *row);

#endif
