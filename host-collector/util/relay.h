/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A ring of RELAY_CHUNKS chunks between two threads, without the chunks: which of them the writer
 * fills, and which the reader works on. The writer's is always empty when it gets it, and at most
 * the others are on their way: a writer that is far ahead waits, until half of them are back. A
 * reader that has nothing to do sleeps until half of them are on their way, or the writer settles:
 * waking it for each costs both of them more than the work.
 */
#ifndef UTIL_RELAY_H
#define UTIL_RELAY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { RELAY_CHUNKS = 16 };

struct relay {
	pthread_mutex_t lock;
	pthread_cond_t published_more, taken_enough;
	size_t published, taken; /* ever */
	size_t enough;           /* so few on their way wake the writer */
	bool writer_waits, reader_waits, ended;
};

void relay_init(struct relay *r);
void relay_fini(struct relay *r);

/* The writer's. */

/* The index of the chunk that is filled. */
static inline size_t relay_filled(const struct relay *r)
{
	return r->published % RELAY_CHUNKS;
}
/* The filled one goes on its way; the next is empty. */
void relay_publish(struct relay *r);
/* Until all are back. What the reader did with them is seen from then on. */
void relay_settle(struct relay *r);
/* No more follow. */
void relay_end(struct relay *r);

/* The reader's. */

/* The index of the oldest chunk on its way, once there is one. False: no more follow. */
bool relay_await(struct relay *r, size_t *index);
/* It is empty again. */
void relay_return(struct relay *r);

#endif
