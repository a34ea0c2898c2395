/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf/perf_queue.h"

#include <stdlib.h>
#include <string.h>

#include "proto/array.h"

enum { CAPACITY_MIN = 256 };

static bool one_more(struct event_array *a)
{
	return !ARRAY_RESERVE(&a->events, a->n, &a->capacity, CAPACITY_MIN);
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

	if (!one_more(a)) {
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
	const bool room = one_more(&q->ready);

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
