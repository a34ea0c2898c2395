/* SPDX-License-Identifier: GPL-2.0-only */
/* A growable byte buffer that owns its storage. A buffer of all zeros is empty. */
#ifndef PROTO_BUFFER_H
#define PROTO_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct byte_buffer {
	uint8_t *data;
	size_t len;
	size_t capacity;
};

/* Reserves space for `more` bytes behind data[len - 1]. On success data is not NULL, even if
 * `more` is 0. Returns 0 or -ENOMEM. */
int byte_buffer_reserve(struct byte_buffer *b, size_t more);
/* Appends `len` bytes. Returns 0, or -ENOMEM and leaves the buffer unchanged. */
int byte_buffer_append(struct byte_buffer *b, const void *data, size_t len);
/* Removes the first `n` bytes and moves the rest to the front. */
void byte_buffer_consume(struct byte_buffer *b, size_t n);
/* Frees the storage. The buffer is empty afterwards and can be used again. */
void byte_buffer_fini(struct byte_buffer *b);

#endif
