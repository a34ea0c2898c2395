/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames waiting for the host, in the order they were made, in bounded memory.
 *
 * Two rings of bytes: bulk (batches; when full the oldest go first, and each is reported to the
 * owner with its event count) and control (heartbeats, kernel log; small, kept when bulk drops). A
 * common order number restores the order on the way out, because a heartbeat promises that nothing
 * older follows. Memory is touched only as far as the backlog has ever grown.
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
	uint16_t cpu;    /* bulk: whose batch it is */
	uint32_t events; /* bulk: events lost if it is dropped */
};

/* A frame was thrown away to make room, or never fitted. */
typedef void (*send_queue_dropped)(void *context, const struct send_item *item);

struct send_queue;

/* Limits in bytes, frames' own sizes plus 24 bytes each. NULL on ENOMEM. */
struct send_queue *send_queue_new(size_t bulk_limit, size_t control_limit,
				  send_queue_dropped dropped, void *context);
void send_queue_free(struct send_queue *q);
/* Copies the frame in, dropping the oldest of its class until it fits. */
void send_queue_push(struct send_queue *q, const struct send_item *item, const uint8_t *frame,
		     size_t len);
/* Appends the oldest frame to `out` and removes it. 1, 0 if nothing waits, -ENOMEM. */
int send_queue_pop(struct send_queue *q, struct send_item *item, struct byte_buffer *out);

struct send_queue_stats {
	size_t waiting_bytes;
	uint64_t dropped_frames[SEND_CLASSES];
	uint64_t dropped_events;
};
/* Since it was made. */
void send_queue_stats_get(const struct send_queue *q, struct send_queue_stats *out);

#endif
