/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The timeline: decoded batches of host and guests in, one stream of events in host time out.
 * A k-way merge over per-(source, CPU) runs. An event is released once every live source has
 * promised (by watermark or heartbeat) that nothing older follows. Memory is bounded: a source
 * that stays silent for `silence_limit_ns` of the host's time, or a full buffer, releases the rest
 * without it, and what it brings later than that is counted as late, not merged.
 *
 * The output never goes back in time. An event older than what is already out, but by no more
 * than its own error, is put at the edge (its error grows by the shift): that is what a clock map
 * that tightens while it is in use does, and the order of such events was never known. An older
 * one is late: dropped, counted, and shown as a LOST event before the next of its CPU; but LOST and
 * TASK_NAME, which hold from then on, are put at the edge however old.
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
	uint32_t err_ns;       /* saturates */
	uint32_t source;       /* VS_SOURCE_HOST or a VM */
	struct vs_event event; /* event.time: still in the stream's own clock */
};

struct timeline;

enum { TIMELINE_REORDER = 64 };

struct timeline_options {
	size_t memory_bytes;      /* for waiting events; 0: 32 MiB */
	int64_t silence_limit_ns; /* 0: 30 s; INT64_MAX offline */
};

/* Called in time order; borrowed for the call. */
typedef void (*timeline_emit)(void *context, const struct timeline_event *event);

/* NULL on ENOMEM. What waits when it is freed is not emitted. NULL is allowed. */
struct timeline *timeline_new(const struct timeline_options *options, timeline_emit emit,
			      void *context);
void timeline_free(struct timeline *t);
/* A source to wait for from now on; adding it again revives it. 0, -ENOMEM. */
int timeline_add_source(struct timeline *t, uint32_t source);
void timeline_remove_source(struct timeline *t, uint32_t source); /* no longer waited for */
/* Events of one CPU, already mapped to host time, nearly in order: an event up to TIMELINE_REORDER
 * places behind its slot is put right, one further behind gets the time of that place. 0, -ENOMEM,
 * -ENOENT (no such source), -EINVAL (cpu >= VS_CPUS_MAX). May emit, if memory is full. */
int timeline_push(struct timeline *t, uint32_t source, uint16_t cpu,
		  const struct timeline_event *events, size_t n);
/* Nothing older than `t` follows from this source. */
void timeline_promise(struct timeline *t, uint32_t source, struct host_ns until);
/* Releases what can be released. now: the host's time, for the silence limit. */
void timeline_run(struct timeline *t, struct host_ns now);
/* Releases everything: the end of a recording. */
void timeline_finish(struct timeline *t);

struct timeline_stats {
	uint64_t merged; /* events emitted, without the LOST events made here */
	uint64_t late;
	uint64_t forced;  /* of merged: released without waiting for a silent source */
	uint64_t clamped; /* of merged: moved to keep the order */
	size_t waiting_events;
	size_t memory_bytes; /* held for waiting events, now */
	struct host_ns released_until;
};
/* Since it was made. */
void timeline_stats_get(const struct timeline *t, struct timeline_stats *out);
/* Events of one source that came too late; 0 if there is no such source. */
uint64_t timeline_late(const struct timeline *t, uint32_t source);

#endif
