/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A queue of events in one array. It grows as needed. After a burst it gives memory back: every
 * EVENT_QUEUE_PERIOD removals it keeps room for twice the events that waited at most since then. A
 * queue that has become empty keeps room for at most EVENT_QUEUE_KEPT events.
 */
#ifndef BACKEND_EVENT_QUEUE_H
#define BACKEND_EVENT_QUEUE_H

#include <stddef.h>

#include "proto/array.h"
#include "proto/event.h"

enum { EVENT_QUEUE_PERIOD = 128, EVENT_QUEUE_MIN = 256, EVENT_QUEUE_KEPT = 16 << 10 };

/* All zero: empty. The first `n` elements of `events` wait, the oldest first. */
struct event_queue {
	struct vs_event *events;
	size_t n, capacity;
	size_t most;           /* largest n at a removal in the current period */
	unsigned int removals; /* in the current period */
};

/* Frees the memory. */
void event_queue_fini(struct event_queue *q);
/* Adds a copy of an event at the end. Returns 0 or -ENOMEM, which changes nothing. */
static inline int event_queue_add(struct event_queue *q, const struct vs_event *event)
{
	if (q->n == q->capacity && ARRAY_RESERVE(&q->events, q->n, &q->capacity, EVENT_QUEUE_MIN))
		return -ENOMEM;
	q->events[q->n++] = *event;
	return 0;
}
/* Removes the `n` oldest events. Call it with 0, too, when nothing waits: the calls are counted as
 * time. `n` must not exceed the number that wait. Pointers into `events` become invalid. */
void event_queue_remove(struct event_queue *q, size_t n);

#endif
