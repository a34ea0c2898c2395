/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf/perf_queue.h"

#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 256 };

static bool array_reserve(struct event_array *a)
{
	const size_t capacity = a->capacity ? 2 * a->capacity : CAPACITY_MIN;
	struct vs_event *events;

	if (a->n < a->capacity)
		return true;
	events = realloc(a->events, capacity * sizeof(*events));
	if (!events)
		return false;
	a->events = events;
	a->capacity = capacity;
	return true;
}

void perf_queue_fini(struct perf_queue *q)
{
	free(q->waiting.events);
	free(q->ready.events);
	*q = (struct perf_queue){0};
}

void perf_queue_lose(struct perf_queue *q, uint64_t n)
{
	q->lost += (uint32_t)n;
}

void perf_queue_push(struct perf_queue *q, const struct vs_event *event)
{
	struct event_array *a = &q->waiting;
	size_t at = a->n;

	if (!array_reserve(a)) {
		perf_queue_lose(q, 1);
		return;
	}
	while (at > 0 && a->events[at - 1].time > event->time)
		at--;
	memmove(a->events + at + 1, a->events + at, (a->n - at) * sizeof(*event));
	a->events[at] = *event;
	a->events[at].seq = q->lost;
	q->lost = 0;
	a->n++;
}

const struct vs_event *perf_queue_oldest(const struct perf_queue *q, size_t taken, uint64_t until)
{
	const struct event_array *a = &q->waiting;

	return taken < a->n && a->events[taken].time <= until ? &a->events[taken] : NULL;
}

void perf_queue_emit(struct perf_queue *q, const struct vs_event *event, uint32_t lost)
{
	const bool room = array_reserve(&q->ready);

	q->emitted += lost;
	q->dropped += lost;
	if (room) {
		q->ready.events[q->ready.n] = *event;
		q->ready.events[q->ready.n++].seq = (uint32_t)q->emitted;
	} else {
		q->dropped++;
	}
	q->emitted++;
}

void perf_queue_drop_waiting(struct perf_queue *q, size_t n)
{
	struct event_array *a = &q->waiting;

	if (!n)
		return;
	a->n -= n;
	memmove(a->events, a->events + n, a->n * sizeof(*a->events));
}
