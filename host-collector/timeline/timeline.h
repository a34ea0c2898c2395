/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Merges decoded batches of the host and the guests into one stream of events in the order of host
 * time: a k-way merge of one run per source and CPU. An event is released when every live source
 * has promised, by watermark or heartbeat, that it will send no older event. Memory is bounded: if
 * a source is silent for `silence_limit_ns` of host time, or if the buffer is full, events are
 * released without its promise. Older events that this source sends later are counted as late.
 *
 * The output is ordered by time. An event that is older than the output, but by no more than its
 * own error, gets the time of the newest output, and its error grows by the shift: such events
 * occur when a clock map becomes more precise while it is in use, and their order was never known.
 * An event that is older than that is late: it is dropped, counted and replaced by a LOST event
 * before the next event of its CPU. Late LOST and TASK_NAME events are never dropped, because they
 * stay valid: they get the time of the newest output.
 */
#ifndef TIMELINE_TIMELINE_H
#define TIMELINE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/types.h"
#include "proto/event.h"

struct timeline_event {
	struct host_ns t;
	uint32_t err_ns;       /* saturates at UINT32_MAX */
	uint32_t source;       /* VS_SOURCE_HOST or a VM */
	struct vs_event event; /* event.time is in the stream's own clock */
};

struct timeline;

enum { TIMELINE_REORDER = 64 };

struct timeline_options {
	size_t memory_bytes;      /* for waiting events; 0: 32 MiB */
	int64_t silence_limit_ns; /* 0: 30 s; INT64_MAX offline */
};

/* Receives the events in time order, one or more at a time. They are borrowed for the call. */
typedef void (*timeline_emit)(void *context, const struct timeline_event *events, size_t n);

/* Returns NULL on ENOMEM. timeline_free() discards the events that wait, and accepts NULL. */
struct timeline *timeline_new(const struct timeline_options *options, timeline_emit emit,
			      void *context);
void timeline_free(struct timeline *t);
/* Adds a source that the merge waits for, or adds a removed source again. Returns 0 or -ENOMEM. */
int timeline_add_source(struct timeline *t, uint32_t source);
/* Stops waiting for a source. */
void timeline_remove_source(struct timeline *t, uint32_t source);
/* Adds events of one CPU, with times already converted to host time. They must be nearly in order:
 * an event up to TIMELINE_REORDER places late is moved to its place. One that is later than that
 * gets the time of the earliest place that it can reach. May emit events if memory is full. Returns
 * 0, -ENOMEM, -ENOENT (no such source) or -EINVAL (cpu >= VS_CPUS_MAX). */
int timeline_push(struct timeline *t, uint32_t source, uint16_t cpu,
		  const struct timeline_event *events, size_t n);
/* Promises that the source sends no event older than `until`. */
void timeline_promise(struct timeline *t, uint32_t source, struct host_ns until);
/* Releases the events that need not wait. `now` is the host's time, for the silence limit. */
void timeline_run(struct timeline *t, struct host_ns now);
/* Releases all events, at the end of a recording. */
void timeline_finish(struct timeline *t);

struct timeline_stats {
	uint64_t merged; /* emitted events, without LOST events made by the merge */
	uint64_t late;
	uint64_t forced;  /* merged events that were released without a promise */
	uint64_t clamped; /* merged events whose time was changed to keep the order */
	size_t waiting_events;
	size_t memory_bytes; /* memory for waiting events, now */
	struct host_ns released_until;
};
/* Returns the totals since timeline_new(). */
void timeline_stats_get(const struct timeline *t, struct timeline_stats *out);
/* Returns the number of late events of one source, or 0 if there is no such source. */
uint64_t timeline_late(const struct timeline *t, uint32_t source);

#endif
