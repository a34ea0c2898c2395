/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/relay.h"

void relay_init(struct relay *r)
{
	*r = (struct relay){.published = 0};
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->published_more, NULL);
	pthread_cond_init(&r->taken_enough, NULL);
}

void relay_fini(struct relay *r)
{
	pthread_cond_destroy(&r->taken_enough);
	pthread_cond_destroy(&r->published_more);
	pthread_mutex_destroy(&r->lock);
}

/* In the lock: until no more than `enough` are on their way. */
static void taken_await(struct relay *r, size_t enough)
{
	r->enough = enough;
	r->writer_waits = true;
	while (r->published - r->taken > enough)
		pthread_cond_wait(&r->taken_enough, &r->lock);
	r->writer_waits = false;
}

void relay_publish(struct relay *r)
{
	pthread_mutex_lock(&r->lock);
	r->published++;
	if (r->reader_waits && r->published - r->taken >= RELAY_CHUNKS / 2)
		pthread_cond_signal(&r->published_more);
	if (r->published - r->taken == RELAY_CHUNKS)
		taken_await(r, RELAY_CHUNKS / 2);
	pthread_mutex_unlock(&r->lock);
}

void relay_settle(struct relay *r)
{
	pthread_mutex_lock(&r->lock);
	pthread_cond_signal(&r->published_more);
	taken_await(r, 0);
	pthread_mutex_unlock(&r->lock);
}

void relay_end(struct relay *r)
{
	pthread_mutex_lock(&r->lock);
	r->ended = true;
	pthread_cond_signal(&r->published_more);
	pthread_mutex_unlock(&r->lock);
}

bool relay_await(struct relay *r, size_t *index)
{
	bool any;

	pthread_mutex_lock(&r->lock);
	r->reader_waits = true;
	while (r->published == r->taken && !r->ended)
		pthread_cond_wait(&r->published_more, &r->lock);
	r->reader_waits = false;
	any = r->published != r->taken;
	*index = r->taken % RELAY_CHUNKS;
	pthread_mutex_unlock(&r->lock);
	return any;
}

void relay_return(struct relay *r)
{
	pthread_mutex_lock(&r->lock);
	r->taken++;
	if (r->writer_waits && r->published - r->taken <= r->enough)
		pthread_cond_signal(&r->taken_enough);
	pthread_mutex_unlock(&r->lock);
}
