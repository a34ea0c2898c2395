/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/backend/event_queue.h"

#include <stdlib.h>
#include <string.h>

void event_queue_fini(struct event_queue *q)
{
	free(q->events);
	*q = (struct event_queue){0};
}

/* Without memory, changes nothing. */
static void room_set(struct event_queue *q, size_t room)
{
	struct vs_event *events = realloc(q->events, room * sizeof(*events));

	if (!events)
		return;
	q->events = events;
	q->capacity = room;
}

void event_queue_remove(struct event_queue *q, size_t n)
{
	size_t room;

	if (q->n > q->most)
		q->most = q->n;
	q->n -= n;
	if (n && q->n)
		memmove(q->events, q->events + n, q->n * sizeof(*q->events));
	if (!q->n && q->capacity > EVENT_QUEUE_KEPT)
		room_set(q, EVENT_QUEUE_KEPT);
	if (++q->removals < EVENT_QUEUE_PERIOD)
		return;
	room = q->most > EVENT_QUEUE_MIN / 2 ? 2 * q->most : EVENT_QUEUE_MIN;
	/* Memory is returned only if that is at least half: less would soon be needed again. */
	if (q->capacity / 2 >= room)
		room_set(q, room);
	q->most = q->n;
	q->removals = 0;
}
