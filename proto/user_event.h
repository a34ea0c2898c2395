/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events that the user chose: their descriptions, and their values.
 *
 * A stream carries the descriptions in FRAME_USER_EVENTS (struct message_user_events, message.h).
 * It carries each hit as one USER event, which has two values, and as many USER_MORE events as the
 * other values need (events.def). The records of a hit have the same time and CPU, and consecutive
 * sequence numbers. A description says how many values a hit has and what they mean. The values
 * follow the order of the fields: a number takes one value, a text one for each 8 characters.
 *
 * The registry (struct user_events) keeps the descriptions of all streams; a reader of a model gets
 * it from model_user_events(). A struct user_hits puts the records of a hit together. A reader of
 * events uses them like this:
 *
 *	static void on_hit(void *context, const struct user_hit *hit)
 *	{
 *		const struct message_user_field *f;
 *		uint64_t value;
 *		size_t i;
 *
 *		if (hit->event && user_event_field(hit->event, "irq", &i) &&
 *		    user_hit_number(hit, i, &value))
 *			...
 *	}
 *
 *	hits = user_hits_new(model_user_events(m), on_hit, context);
 *	for each instant of type USER, USER_MORE, USER_LIMITED or LOST:
 *		user_hits_take(hits, VS_SOURCE_HOST, &i->event, i->t.ns, i->err_ns);
 *	at the end: user_hits_flush(hits);
 *
 * Any byte of a guest is hostile: everything here is bounded.
 */
#ifndef PROTO_USER_EVENT_H
#define PROTO_USER_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event.h"
#include "proto/message.h"

/* ---- the registry ---- */

struct user_events;

/* Largest number of descriptions of all streams together, and of one stream, so that one stream
 * cannot take the room of the others. */
enum { USER_EVENTS_KNOWN_MAX = 1024, USER_EVENTS_OF_STREAM_MAX = 256 };

struct user_events *user_events_new(void);    /* NULL if out of memory */
void user_events_free(struct user_events *r); /* NULL is allowed */
/* Learns the descriptions of a stream. One that the stream had before stays: events of it may still
 * arrive. Beyond either maximum, new ones are ignored. Returns 0 or -ENOMEM. */
int user_events_learn(struct user_events *r, uint32_t source, const struct message_user_events *m);
/* Returns the description, or NULL if it is not known. Valid as long as the registry; a later
 * user_events_learn() may change its flags, `limited` and `why`. */
const struct message_user_event *user_events_find(const struct user_events *r, uint32_t source,
						  uint32_t id);
/* Returns description number `i` in the order in which they were learned, and its stream; NULL past
 * the last. */
const struct message_user_event *user_events_at(const struct user_events *r, size_t i,
						uint32_t *source);
/* Returns the number of fields without the number of a stack (USER_STACKS), which means nothing to
 * people. */
size_t user_event_n_shown(const struct message_user_event *e);
/* Finds a field by its name. Returns false if the event does not have it. */
bool user_event_field(const struct message_user_event *e, const char *name, size_t *index);

/* ---- hits ---- */

struct user_hit {
	uint32_t source;
	const struct message_user_event *event; /* NULL: its description is missing */
	struct vs_event head;                   /* USER or USER_LIMITED */
	int64_t t_ns;                           /* as passed to user_hits_take() */
	uint32_t err_ns;
	/* Number of values that arrived. Without a description, 2. Fewer than the description says:
	 * a record was lost. */
	size_t n_values;
	uint64_t values[VS_USER_VALUES_MAX];
};

struct user_hits;
typedef void (*user_hit_taker)(void *context, const struct user_hit *hit);

/* Allocates a struct user_hits, which calls `take` for each hit when its last record has arrived,
 * or when a later record of its CPU shows that the rest is lost. Borrows the registry. Returns NULL
 * if out of memory. */
struct user_hits *user_hits_new(const struct user_events *known, user_hit_taker take,
				void *context);
void user_hits_free(struct user_hits *h); /* NULL is allowed */
/* Takes an event of a stream; the events of a CPU must come in order. A LOST event ends what its
 * CPU began; other types are ignored. */
void user_hits_take(struct user_hits *h, uint32_t source, const struct vs_event *e, int64_t t_ns,
		    uint32_t err_ns);
/* Delivers what still waits for records. */
void user_hits_flush(struct user_hits *h);

/* Gets the value of field number `field`, sign-extended if it is signed. Returns false if it did
 * not arrive, if there is no such field, or if it is a text. */
bool user_hit_number(const struct user_hit *hit, size_t field, uint64_t *value);
/* Writes the value of a field as text: a number in its base, a text as it is (escape it before you
 * show it), "?" if it did not arrive. Returns `out`. */
const char *user_hit_text(const struct user_hit *hit, size_t field, char *out, size_t out_bytes);

#endif
