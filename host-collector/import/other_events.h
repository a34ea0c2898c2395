/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the events of a foreign recording for which vcpuscope has no type. They become events like
 * those that a user chooses (proto/user_event.h): a description for each name, found while reading,
 * and the values of each hit. A description is complete only after the last hit: it has the fields
 * that every hit had; a field is a number if it was a number in every hit.
 *
 * Bounded: OTHER_EVENTS_MAX names, VS_USER_FIELDS_MAX fields of each, and texts are cut. Values
 * need 16 bytes of memory each, texts more.
 */
#ifndef IMPORT_OTHER_EVENTS_H
#define IMPORT_OTHER_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-collector/import/record.h"
#include "proto/message.h"
#include "proto/user_event.h"

enum {
	OTHER_EVENTS_MAX = USER_EVENTS_OF_STREAM_MAX,
	OTHER_SYSTEM_BYTES = 48,
	OTHER_FIELD_BYTES = 32,
	OTHER_TEXT_BYTES = 32,  /* of a field; longer texts are cut */
	OTHER_WHOLE_BYTES = 64, /* of a text without any field */
};

/* The system of events whose text does not name it. */
#define OTHER_SYSTEM_UNKNOWN "unknown"

struct other_value {
	char name[OTHER_FIELD_BYTES];
	enum user_field_type type;
	uint64_t number;              /* unless `type` is USER_TEXT */
	char text[OTHER_WHOLE_BYTES]; /* if it is; ends with NUL, or is full */
};

/* One hit as it was read. */
struct other_hit {
	char system[OTHER_SYSTEM_BYTES];
	char name[IMPORT_NAME_BYTES];
	size_t n;
	struct other_value values[VS_USER_FIELDS_MAX];
};

/* Adds a number. Ignores it if its name is not an identifier, or if the hit has the maximum of
 * fields. */
void other_hit_number(struct other_hit *h, const char *name, enum user_field_type type,
		      uint64_t number);
/* Adds `len` bytes of a text, which ends at a NUL among them. */
void other_hit_text(struct other_hit *h, const char *name, const char *text, size_t len);
/* Fills in `h` from the text that follows an event's name: each `name=value` becomes a field. A
 * text without any becomes one field, named `text`. An empty `system` becomes `unknown`. */
void other_hit_parse(struct other_hit *h, const char *system, const char *name, const char *text);

struct other_events;

struct other_events *other_events_new(void);    /* NULL if out of memory */
void other_events_free(struct other_events *o); /* NULL is allowed */
/* Keeps a hit. Sets *id to the number of its description, counted from 1, and *at to where its
 * values are. Returns 0, -ENOMEM, or -ENOSPC if there are too many names, or the
 * name of the event or of its system is malformed. */
int other_events_take(struct other_events *o, const struct other_hit *h, uint32_t *id,
		      uint64_t *at);
size_t other_events_count(const struct other_events *o);
/* Describes event number `id`. After the last hit. */
void other_events_describe(const struct other_events *o, uint32_t id,
			   struct message_user_event *out);
/* Gets the values of a hit, in the order of event `id`'s description. Returns their number. */
size_t other_events_values(const struct other_events *o, uint32_t id, uint64_t at,
			   uint64_t values[VS_USER_VALUES_MAX]);
/* Returns the number of hits of event `id`. */
uint64_t other_events_hits(const struct other_events *o, uint32_t id);

#endif
