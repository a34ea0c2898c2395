/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queue of the records of one CPU, between its perf ring and the user of the capture.
 *
 * perf stamps a record before it reserves space in the ring. An interrupt in between writes its
 * record first, so a ring is not in the order of time. Records wait in the queue, sorted by time,
 * until no older record can follow. Then they get their sequence numbers. A loss is a gap in the
 * sequence numbers before the next record. Not thread-safe.
 */
#ifndef PERF_PERF_QUEUE_H
#define PERF_PERF_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event.h"

/* An array that grows; it never shrinks. */
struct event_array {
	struct vs_event *events;
	size_t n, capacity;
};

struct perf_queue {
	struct event_array waiting; /* sorted by time; seq: number of events lost before it */
	/* events with their sequence numbers, to be delivered */
	struct event_array ready;
	uint32_t lost; /* records lost since the last push */
	/* emitted includes the dropped ones */
	uint64_t emitted, dropped;
};

/* Frees the events. Does not free `q` itself. */
void perf_queue_fini(struct perf_queue *q);
/* Counts `n` records that the kernel lost. The next pushed record carries the count. */
void perf_queue_lose(struct perf_queue *q, uint64_t n);
/* Inserts a copy of a record in the order of time. Counts it as lost on ENOMEM. */
void perf_queue_push(struct perf_queue *q, const struct vs_event *event);
/* Returns the oldest waiting record after the first `taken` ones if its time is at most `until`,
 * else NULL. Borrowed until the next push or drop. */
const struct vs_event *perf_queue_oldest(const struct perf_queue *q, size_t taken, uint64_t until);
/* Counts `lost` events as lost, gives a copy of `event` the next sequence number and makes it
 * ready. On ENOMEM the event counts as dropped. */
void perf_queue_emit(struct perf_queue *q, const struct vs_event *event, uint32_t lost);
/* Removes the first n waiting records. */
void perf_queue_drop_waiting(struct perf_queue *q, size_t n);

#endif
