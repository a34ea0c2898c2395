/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/fifo_memory.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Memory is returned in multiples of this, which is a multiple of all page sizes. */
enum { RETURN_BYTES = 64 << 10 };

struct fifo_memory {
	uint8_t *bytes;
	size_t size, largest;
	bool empty;
	size_t begin;    /* offset of the oldest item */
	size_t end;      /* offset behind the newest item */
	size_t returned; /* memory from here to the oldest item was not returned yet */
};

static size_t whole(size_t bytes, size_t multiple)
{
	return (bytes + multiple - 1) / multiple * multiple;
}

size_t fifo_memory_room(size_t bytes)
{
	return whole(bytes, alignof(max_align_t));
}

struct fifo_memory *fifo_memory_new(size_t most_bytes, size_t largest_bytes)
{
	struct fifo_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->empty = true;
	m->largest = fifo_memory_room(largest_bytes);
	/* An item that does not fit at the end leaves a gap there, and the newest item must not
	 * reach memory that is still to be returned. */
	m->size = whole(most_bytes + 2 * m->largest, RETURN_BYTES) + 2 * RETURN_BYTES;
	m->bytes = mmap(NULL, m->size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->bytes == MAP_FAILED) {
		free(m);
		return NULL;
	}
	/* A huge page would use memory for items that do not exist. */
	madvise(m->bytes, m->size, MADV_NOHUGEPAGE);
	return m;
}

void fifo_memory_free(struct fifo_memory *m)
{
	if (!m)
		return;
	munmap(m->bytes, m->size);
	free(m);
}

void *fifo_memory_add(struct fifo_memory *m, size_t bytes)
{
	const size_t room = fifo_memory_room(bytes);
	const bool wrapped = !m->empty && m->end <= m->begin;
	size_t at = m->end;

	if (!bytes || bytes > m->largest)
		return NULL;
	if (!wrapped && room > m->size - at)
		at = 0;
	/* Memory from `returned` on is returned later: no item may be there. */
	if ((wrapped || !at) && !m->empty && room > m->returned - at)
		return NULL;
	if (m->empty)
		m->begin = at;
	m->empty = false;
	m->end = at + room;
	return m->bytes + at;
}

/* Returns the memory from m->returned to `end`. */
static void memory_return(struct fifo_memory *m, size_t end)
{
	madvise(m->bytes + m->returned, end - m->returned, MADV_DONTNEED);
	m->returned = end;
}

void fifo_memory_keep(struct fifo_memory *m, const void *oldest)
{
	size_t unused;

	if (!oldest) {
		m->returned = 0;
		memory_return(m, m->size);
		m->returned = m->begin = m->end = 0;
		m->empty = true;
		return;
	}
	m->begin = (size_t)((const uint8_t *)oldest - m->bytes);
	if (m->begin < m->returned) { /* all items are at the beginning again */
		memory_return(m, m->size);
		m->returned = 0;
	}
	unused = m->begin / RETURN_BYTES * RETURN_BYTES;
	if (unused > m->returned)
		memory_return(m, unused);
}
