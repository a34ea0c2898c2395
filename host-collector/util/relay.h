/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The synchronization of a ring of RELAY_CHUNKS chunks between one writer thread and one reader
 * thread. The chunks themselves belong to the caller.
 *
 * The writer always has an empty chunk to fill. When all chunks are published, it waits until the
 * reader has returned half of them. A reader that finds no published chunk sleeps until half of the
 * chunks are published, or until the writer calls relay_settle() or relay_end(): a wake-up for each
 * chunk would cost more than the work itself.
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
	size_t published, taken; /* totals since relay_init() */
	size_t enough;           /* wake the writer when no more chunks than this are published */
	bool writer_waits, reader_waits, ended;
};

void relay_init(struct relay *r);
void relay_fini(struct relay *r);

/* Functions for the writer: */

/* Returns the index of the chunk that the writer may fill. */
static inline size_t relay_filled(const struct relay *r)
{
	return r->published % RELAY_CHUNKS;
}
/* Passes the filled chunk to the reader. Waits if no other chunk is empty. */
void relay_publish(struct relay *r);
/* Waits until the reader has returned all chunks. The writer then sees all changes that the reader
 * made. */
void relay_settle(struct relay *r);
/* Declares that no more chunks follow. */
void relay_end(struct relay *r);

/* Functions for the reader: */

/* Waits for a published chunk and sets *index to the oldest one. Returns false if the writer has
 * ended and no chunk is left. */
bool relay_await(struct relay *r, size_t *index);
/* Returns the oldest published chunk to the writer as empty. */
void relay_return(struct relay *r);

#endif
