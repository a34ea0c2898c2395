/* SPDX-License-Identifier: GPL-2.0-only */
/* A growable byte buffer; the one owning buffer type of the project. Zero-initialised is empty. */
#ifndef PROTO_BUFFER_H
#define PROTO_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct byte_buffer {
	uint8_t *data;
	size_t len;
	size_t capacity;
};

/* Room for `more` bytes past len, so that data + len may be written; data is never NULL afterwards,
 * not even for 0 more. 0 or -ENOMEM. */
int byte_buffer_reserve(struct byte_buffer *b, size_t more);
/* Appends `len` bytes. 0 or -ENOMEM (nothing appended). */
int byte_buffer_append(struct byte_buffer *b, const void *data, size_t len);
/* Drops `n` bytes from the front, keeping the rest in order. */
void byte_buffer_consume(struct byte_buffer *b, size_t n);
/* Frees the storage; the buffer is empty and usable again. */
void byte_buffer_fini(struct byte_buffer *b);

#endif
