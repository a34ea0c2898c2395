// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/send_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct entry_header {
	uint64_t order;
	uint32_t len;
	uint32_t events;
	uint16_t cpu;
};

/* A ring of bytes; entries may wrap around its end. */
struct ring {
	uint8_t *bytes;
	size_t capacity, head, used;
};

struct send_queue {
	struct ring rings[SEND_CLASSES];
	uint64_t next_order;
	send_queue_dropped dropped;
	void *context;
	struct send_queue_stats stats;
};

static void ring_put(struct ring *r, const void *data, size_t len)
{
	size_t at = (r->head + r->used) % r->capacity;
	size_t first = r->capacity - at < len ? r->capacity - at : len;

	memcpy(r->bytes + at, data, first);
	memcpy(r->bytes, (const uint8_t *)data + first, len - first);
	r->used += len;
}

static void ring_peek(const struct ring *r, size_t offset, void *data, size_t len)
{
	size_t at = (r->head + offset) % r->capacity;
	size_t first = r->capacity - at < len ? r->capacity - at : len;

	memcpy(data, r->bytes + at, first);
	memcpy((uint8_t *)data + first, r->bytes, len - first);
}

static void ring_skip(struct ring *r, size_t len)
{
	r->used -= len;
	/* An empty ring starts over, so that a short backlog stays within few pages. */
	r->head = r->used ? (r->head + len) % r->capacity : 0;
}

struct send_queue *send_queue_new(size_t bulk_limit, size_t control_limit,
				  send_queue_dropped dropped, void *context)
{
	struct send_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->dropped = dropped;
	q->context = context;
	q->rings[SEND_BULK].capacity = bulk_limit;
	q->rings[SEND_CONTROL].capacity = control_limit;
	for (size_t class = 0; class < SEND_CLASSES; class ++) {
		q->rings[class].bytes = malloc(q->rings[class].capacity);
		if (!q->rings[class].bytes) {
			send_queue_free(q);
			return NULL;
		}
	}
	return q;
}

void send_queue_free(struct send_queue *q)
{
	if (!q)
		return;
	for (size_t class = 0; class < SEND_CLASSES; class ++)
		free(q->rings[class].bytes);
	free(q);
}

static void item_dropped(struct send_queue *q, const struct send_item *item)
{
	q->stats.dropped_frames[item->class]++;
	q->stats.dropped_events += item->events;
	if (q->dropped)
		q->dropped(q->context, item);
}

static void oldest_drop(struct send_queue *q, enum send_class class)
{
	struct ring *r = &q->rings[class];
	struct entry_header header;

	ring_peek(r, 0, &header, sizeof(header));
	ring_skip(r, sizeof(header) + header.len);
	item_dropped(
		q, &(struct send_item){.class = class, .cpu = header.cpu, .events = header.events});
}

void send_queue_push(struct send_queue *q, const struct send_item *item, const uint8_t *frame,
		     size_t len)
{
	struct ring *r = &q->rings[item->class];
	struct entry_header header = {
		.order = q->next_order++,
		.len = (uint32_t)len,
		.events = item->events,
		.cpu = item->cpu,
	};

	if (len > UINT32_MAX || sizeof(header) + len > r->capacity) {
		item_dropped(q, item);
		return;
	}
	while (r->capacity - r->used < sizeof(header) + len)
		oldest_drop(q, item->class);
	ring_put(r, &header, sizeof(header));
	ring_put(r, frame, len);
}

int send_queue_pop(struct send_queue *q, struct send_item *item, struct byte_buffer *out)
{
	struct entry_header oldest = {.order = UINT64_MAX};
	struct ring *from = NULL;
	int err;

	for (size_t class = 0; class < SEND_CLASSES; class ++) {
		struct entry_header header;

		if (!q->rings[class].used)
			continue;
		ring_peek(&q->rings[class], 0, &header, sizeof(header));
		if (header.order < oldest.order) {
			oldest = header;
			from = &q->rings[class];
		}
	}
	if (!from)
		return 0;
	err = byte_buffer_reserve(out, oldest.len);
	if (err)
		return err;
	ring_peek(from, sizeof(oldest), out->data + out->len, oldest.len);
	out->len += oldest.len;
	ring_skip(from, sizeof(oldest) + oldest.len);
	*item = (struct send_item){
		.class = (enum send_class)(from - q->rings),
		.cpu = oldest.cpu,
		.events = oldest.events,
	};
	return 1;
}

void send_queue_stats_get(const struct send_queue *q, struct send_queue_stats *out)
{
	*out = q->stats;
	for (size_t class = 0; class < SEND_CLASSES; class ++)
		out->waiting_bytes += q->rings[class].used;
}
