// SPDX-License-Identifier: GPL-2.0-only
/* The capacity doubles, so appending n bytes one by one copies O(n) bytes in total. */
#include "proto/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_FIRST_BYTES = 256 };

int byte_buffer_reserve(struct byte_buffer *b, size_t more)
{
	size_t capacity;
	uint8_t *data;

	if (b->data && more <= b->capacity - b->len)
		return 0;
	if (more > SIZE_MAX / 2 - b->len)
		return -ENOMEM;
	capacity = b->capacity ? b->capacity : BUFFER_FIRST_BYTES;
	while (capacity < b->len + more)
		capacity *= 2;
	data = realloc(b->data, capacity);
	if (!data)
		return -ENOMEM;
	b->data = data;
	b->capacity = capacity;
	return 0;
}

int byte_buffer_append(struct byte_buffer *b, const void *data, size_t len)
{
	int err = byte_buffer_reserve(b, len);

	if (err)
		return err;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	return 0;
}

void byte_buffer_consume(struct byte_buffer *b, size_t n)
{
	if (!n)
		return;
	memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
}

void byte_buffer_fini(struct byte_buffer *b)
{
	free(b->data);
	*b = (struct byte_buffer){0};
}
