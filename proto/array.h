/* SPDX-License-Identifier: GPL-2.0-only */
/* Arrays that grow while elements are added. */
#ifndef PROTO_ARRAY_H
#define PROTO_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* As ARRAY_RESERVE(); bytes: size of an element. */
static inline int array_reserve(void *array, size_t n, size_t *capacity, size_t first, size_t bytes)
{
	const size_t more = *capacity ? 2 * *capacity : first;
	void *items, *grown;

	if (n < *capacity)
		return 0;
	memcpy(&items, array, sizeof(items));
	grown = reallocarray(items, more, bytes);
	if (!grown)
		return -ENOMEM;
	memcpy(array, &grown, sizeof(grown));
	*capacity = more;
	return 0;
}

/*
 * Makes room for one more element. array: address of the pointer to the elements, which may move.
 * n: number of elements in use. capacity: address of the number of elements that have room, which
 * is 0 at the beginning, then `first`, and doubles. Returns 0 or -ENOMEM, which changes nothing.
 */
#define ARRAY_RESERVE(array, n, capacity, first)                                                   \
	array_reserve((array), (n), (capacity), (first), sizeof(**(array)))

#endif
