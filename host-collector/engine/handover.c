/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/engine/handover.h"

#include <errno.h>
#include <stdlib.h>

#include "host-collector/util/relay.h"

enum { CHUNK_EVENTS = 1024 };

struct chunk {
	size_t n;
	bool advances; /* after the events: the time to advance to */
	struct host_ns now;
	struct timeline_event events[CHUNK_EVENTS];
};

struct handover {
	struct model *model;
	struct relay relay;
	int error; /* belongs to the taker; the reader looks at it only after relay_settle() */
	struct chunk chunks[RELAY_CHUNKS];
};

struct handover *handover_new(struct model *m)
{
	struct handover *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->model = m;
	relay_init(&h->relay);
	return h;
}

void handover_free(struct handover *h)
{
	if (!h)
		return;
	relay_fini(&h->relay);
	free(h);
}

/* ---- the reader ---- */

static struct chunk *chunk_in_hand(struct handover *h)
{
	return &h->chunks[relay_filled(&h->relay)];
}

void handover_push(struct handover *h, const struct timeline_event *event)
{
	struct chunk *c = chunk_in_hand(h);

	c->events[c->n++] = *event;
	if (c->n == CHUNK_EVENTS)
		relay_publish(&h->relay);
}

void handover_advance(struct handover *h, struct host_ns now)
{
	struct chunk *c = chunk_in_hand(h);

	c->advances = true;
	c->now = now;
	relay_publish(&h->relay);
}

void handover_settle(struct handover *h)
{
	if (chunk_in_hand(h)->n)
		relay_publish(&h->relay);
	relay_settle(&h->relay);
}

int handover_end(struct handover *h)
{
	int err;

	handover_settle(h);
	err = h->error;
	relay_end(&h->relay);
	return err;
}

/* ---- the taker ---- */

void handover_take(struct handover *h)
{
	size_t index;

	while (relay_await(&h->relay, &index)) {
		struct chunk *c = &h->chunks[index];

		for (size_t i = 0; i < c->n; i++) {
			/* other errors concern a malformed event */
			if (model_push(h->model, &c->events[i]) == -ENOMEM)
				h->error = -ENOMEM;
		}
		if (c->advances)
			model_advance(h->model, c->now);
		c->n = 0;
		c->advances = false;
		relay_return(&h->relay);
	}
}
