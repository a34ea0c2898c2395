/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory for items that are freed in the order in which they were allocated. The items follow each
 * other in one mapping; at its end, the next one goes to the beginning. The mapping never changes.
 * Memory of freed items is returned to the kernel.
 *
 * In malloc()'s heap, items that live for seconds lie between others that live long, so that the
 * heap keeps memory that it does not use. A mapping for each group of items would have the kernel
 * change its list of mappings again and again, for which it may wait for a lock.
 */
#ifndef UTIL_FIFO_MEMORY_H
#define UTIL_FIFO_MEMORY_H

#include <stddef.h>

struct fifo_memory;

/* Reserves addresses for items of most_bytes in total and one more, each of largest_bytes at most.
 * The sizes count as fifo_memory_room() rounds them. Only existing items use memory. Returns NULL
 * if there is no memory. */
struct fifo_memory *fifo_memory_new(size_t most_bytes, size_t largest_bytes);
void fifo_memory_free(struct fifo_memory *m); /* NULL is allowed */

/* Returns the size of an item, rounded so that the next one is aligned for all types. */
size_t fifo_memory_room(size_t bytes);
/* Allocates an item, aligned for all types. Returns NULL if bytes is 0 or more than largest_bytes,
 * or if there is no room. */
void *fifo_memory_add(struct fifo_memory *m, size_t bytes);
/* Frees all items that were allocated before `oldest`; NULL: all items. */
void fifo_memory_keep(struct fifo_memory *m, const void *oldest);

#endif
