/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The records of one CPU between its perf ring and the capture's user. perf stamps a record before
 * it claims its place in the ring, so an interrupt in between overtakes it: records wait here,
 * ordered by time, until nothing older can follow. Then they get their sequence numbers; a loss is
 * a jump of these before the record that came after it.
 */
#ifndef PERF_PERF_QUEUE_H
#define PERF_PERF_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event.h"

/* A growing array. */
struct event_array {
	struct vs_event *events;
	size_t n, capacity;
};

struct perf_queue {
	struct event_array waiting; /* seq: events lost before it */
	struct event_array ready;
	uint32_t lost; /* since the last record */
	uint64_t emitted, dropped;
};

/* Frees what waits; the queue itself is the caller's. */
void perf_queue_fini(struct perf_queue *q);
/* Counts `n` records that the kernel lost; told with the next one that is taken. */
void perf_queue_lose(struct perf_queue *q, uint64_t n);
/* Puts a record where its time belongs. If memory lacks it counts as lost. */
void perf_queue_push(struct perf_queue *q, const struct vs_event *event);
/* The oldest waiting record if it is not younger than `until`, else NULL. */
const struct vs_event *perf_queue_oldest(const struct perf_queue *q, size_t taken, uint64_t until);
/* Gives an event the next sequence number, after `lost` that were lost, and makes it ready. */
void perf_queue_emit(struct perf_queue *q, const struct vs_event *event, uint32_t lost);
/* Forgets the first n waiting records. */
void perf_queue_drop_waiting(struct perf_queue *q, size_t n);

#endif
