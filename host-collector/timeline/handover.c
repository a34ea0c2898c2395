/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A ring of chunks. The reader fills the one after those published, the taker works on the oldest
 * of those; only the counts of both are shared, under the lock. A reader that found the ring full
 * is woken when half of it is free, not for each chunk.
 */
#include "host-collector/timeline/handover.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { CHUNKS = 16, CHUNK_EVENTS = 1024 };

struct chunk {
	size_t n;
	bool advances; /* the events: up to `now` */
	struct host_ns now;
	struct timeline_event events[CHUNK_EVENTS];
};

struct handover {
	struct model *model;
	int error; /* the reader's copy */
	pthread_mutex_t lock;
	pthread_cond_t published_more, taken_enough;
	size_t published, taken; /* ever */
	bool reader_waits, taker_waits, ended;
	size_t enough; /* so few chunks on their way wake the reader */
	int model_error;
	struct chunk chunks[CHUNKS];
};

struct handover *handover_new(struct model *m)
{
	struct handover *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->model = m;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->published_more, NULL);
	pthread_cond_init(&h->taken_enough, NULL);
	return h;
}

void handover_free(struct handover *h)
{
	if (!h)
		return;
	pthread_cond_destroy(&h->taken_enough);
	pthread_cond_destroy(&h->published_more);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

/* ---- the reader ---- */

/* In the lock: until no more than `enough` chunks are on their way. */
static void taken_await(struct handover *h, size_t enough)
{
	h->enough = enough;
	h->reader_waits = true;
	while (h->published - h->taken > enough)
		pthread_cond_wait(&h->taken_enough, &h->lock);
	h->reader_waits = false;
	h->error = h->model_error;
}

/* Hands over the chunk in hand; afterwards there is an empty one. */
static void publish(struct handover *h)
{
	pthread_mutex_lock(&h->lock);
	h->published++;
	if (h->taker_waits)
		pthread_cond_signal(&h->published_more);
	if (h->published - h->taken == CHUNKS)
		taken_await(h, CHUNKS / 2);
	pthread_mutex_unlock(&h->lock);
}

static struct chunk *chunk_in_hand(struct handover *h)
{
	return &h->chunks[h->published % CHUNKS];
}

void handover_push(struct handover *h, const struct timeline_event *event)
{
	struct chunk *c = chunk_in_hand(h);

	c->events[c->n++] = *event;
	if (c->n == CHUNK_EVENTS)
		publish(h);
}

void handover_advance(struct handover *h, struct host_ns now)
{
	struct chunk *c = chunk_in_hand(h);

	c->advances = true;
	c->now = now;
	publish(h);
}

void handover_settle(struct handover *h)
{
	if (chunk_in_hand(h)->n)
		publish(h);
	pthread_mutex_lock(&h->lock);
	taken_await(h, 0);
	pthread_mutex_unlock(&h->lock);
}

int handover_error(const struct handover *h)
{
	return h->error;
}

void handover_end(struct handover *h)
{
	handover_settle(h);
	pthread_mutex_lock(&h->lock);
	h->ended = true;
	pthread_cond_signal(&h->published_more);
	pthread_mutex_unlock(&h->lock);
}

/* ---- the taker ---- */

/* The oldest chunk on its way, or NULL at the end. */
static struct chunk *chunk_await(struct handover *h)
{
	struct chunk *c = NULL;

	pthread_mutex_lock(&h->lock);
	h->taker_waits = true;
	while (h->published == h->taken && !h->ended)
		pthread_cond_wait(&h->published_more, &h->lock);
	h->taker_waits = false;
	if (h->published != h->taken)
		c = &h->chunks[h->taken % CHUNKS];
	pthread_mutex_unlock(&h->lock);
	return c;
}

static void chunk_return(struct handover *h, struct chunk *c, int err)
{
	c->n = 0;
	c->advances = false;
	pthread_mutex_lock(&h->lock);
	h->taken++;
	if (err)
		h->model_error = err;
	if (h->reader_waits && h->published - h->taken <= h->enough)
		pthread_cond_signal(&h->taken_enough);
	pthread_mutex_unlock(&h->lock);
}

void handover_take(struct handover *h)
{
	struct chunk *c;

	while ((c = chunk_await(h))) {
		int err = 0;

		for (size_t i = 0; i < c->n; i++) {
			/* Other errors are the event's: it makes no sense. */
			if (model_push(h->model, &c->events[i]) == -ENOMEM)
				err = -ENOMEM;
		}
		if (c->advances)
			model_advance(h->model, c->now);
		chunk_return(h, c, err);
	}
}
