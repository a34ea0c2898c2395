/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A queue of frames for the host, in bounded memory.
 *
 * It consists of two rings of bytes. The bulk ring holds batches and stacks; the control ring
 * holds heartbeats, the kernel's log and replies. If a ring is full, its oldest frames are
 * dropped, and each is reported with its number of events. The control ring is small and keeps its
 * frames when the bulk ring drops some.
 *
 * A common order number restores the order of both rings when frames are removed, because a
 * heartbeat promises that no older event follows. The queue touches only as much memory as its
 * largest backlog needed.
 */
#ifndef AGENT_SEND_QUEUE_H
#define AGENT_SEND_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/buffer.h"

enum send_class {
	SEND_CONTROL = 0,
	SEND_BULK = 1,
	SEND_CLASSES,
};

struct send_item {
	enum send_class class;
	uint16_t cpu;    /* bulk: CPU of the batch */
	uint32_t events; /* bulk: number of events in the frame */
};

/* Reports a frame that was dropped to make space or that is too large. */
typedef void (*send_queue_dropped)(void *context, const struct send_item *item);

struct send_queue;

/* Returns NULL if out of memory. Limits: in bytes; each frame needs its size plus 24 bytes. */
struct send_queue *send_queue_new(size_t bulk_limit, size_t control_limit,
				  send_queue_dropped dropped, void *context);
void send_queue_free(struct send_queue *q);
/* Copies the frame into the queue. Drops the oldest frames of its class until it fits. */
void send_queue_push(struct send_queue *q, const struct send_item *item, const uint8_t *frame,
		     size_t len);
/* Moves the oldest frame to the end of `out`. Returns 1, 0 if the queue is empty, or -ENOMEM. */
int send_queue_pop(struct send_queue *q, struct send_item *item, struct byte_buffer *out);

struct send_queue_stats {
	size_t waiting_bytes;
	uint64_t dropped_frames[SEND_CLASSES];
	uint64_t dropped_events;
};
/* Returns the waiting bytes, and the totals since send_queue_new(). */
void send_queue_stats_get(const struct send_queue *q, struct send_queue_stats *out);

#endif
