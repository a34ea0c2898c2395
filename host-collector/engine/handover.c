/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/engine/handover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/util/relay.h"

enum { CHUNK_EVENTS = 1024, CHUNK_FACTS = 64 };

struct chunk {
	size_t n, n_facts;
	struct timeline_event events[CHUNK_EVENTS];
	struct placed_fact {
		size_t after; /* so many of the events */
		struct handover_fact fact;
	} facts[CHUNK_FACTS];
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

void handover_push(struct handover *h, const struct timeline_event *events, size_t n)
{
	while (n) {
		struct chunk *c = chunk_in_hand(h);
		size_t fit = n < CHUNK_EVENTS - c->n ? n : CHUNK_EVENTS - c->n;

		memcpy(&c->events[c->n], events, fit * sizeof(*events));
		c->n += fit;
		events += fit;
		n -= fit;
		if (c->n == CHUNK_EVENTS)
			relay_publish(&h->relay);
	}
}

void handover_fact(struct handover *h, const struct handover_fact *fact)
{
	struct chunk *c = chunk_in_hand(h);

	c->facts[c->n_facts++] = (struct placed_fact){.after = c->n, .fact = *fact};
	if (c->n_facts == CHUNK_FACTS)
		relay_publish(&h->relay);
}

void handover_settle(struct handover *h)
{
	const struct chunk *c = chunk_in_hand(h);

	if (c->n || c->n_facts)
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

int handover_fact_give(struct model *m, const struct handover_fact *fact)
{
	switch (fact->kind) {
	case HANDOVER_ADVANCE:
		model_advance(m, fact->now);
		return 0;
	case HANDOVER_STEAL:
		return model_guest_steal(m, &fact->steal);
	case HANDOVER_CLOCK:
		return model_guest_clock(m, &fact->clock);
	case HANDOVER_WATCHDOG:
		return model_guest_watchdog(m, fact->watchdog.vm, fact->watchdog.seconds);
	}
	return -EINVAL;
}

/* Gives the model the events from *done up to `until`. */
static void events_give(struct handover *h, const struct chunk *c, size_t *done, size_t until)
{
	if (model_push(h->model, &c->events[*done], until - *done) == -ENOMEM)
		h->error = -ENOMEM;
	*done = until;
}

void handover_take(struct handover *h)
{
	size_t index;

	while (relay_await(&h->relay, &index)) {
		struct chunk *c = &h->chunks[index];
		size_t done = 0;

		for (size_t i = 0; i < c->n_facts; i++) {
			events_give(h, c, &done, c->facts[i].after);
			handover_fact_give(h->model, &c->facts[i].fact);
		}
		events_give(h, c, &done, c->n);
		c->n = c->n_facts = 0;
		relay_return(&h->relay);
	}
}
