/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf/perf_stack_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	RECORD_BYTES_MAX = 24576,      /* 16 KiB of stack, frames, registers, the tracepoint's */
	THREAD_RING_BYTES = 128 << 10, /* holds the newest seven records */
};

struct perf_stack_ring {
	int tid, cpu;
	int anchor_fd; /* an event without hits that owns the ring */
	int fd;        /* -1: no event writes into the ring yet */
	bool backward;
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	size_t bytes, map_bytes; /* bytes: a power of two */
	uint64_t tail;           /* of the ring of a CPU: where the next read begins */
	size_t peeked;
	uint8_t record[RECORD_BYTES_MAX];
};

static int event_open(const struct perf_stack_ring *r, uint32_t type, uint64_t config)
{
	struct perf_event_attr attr = {
		.type = type, .config = config, .write_backward = r->backward};

	perf_sample_describe(PERF_LAYOUT_STACK, &attr);
	return (int)syscall(SYS_perf_event_open, &attr, r->tid, r->cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static struct perf_stack_ring *ring_open(int tid, int cpu, size_t bytes)
{
	struct perf_stack_ring *r = calloc(1, sizeof(*r));
	void *map;
	int error;

	if (!r)
		return NULL;
	r->tid = tid;
	r->cpu = cpu;
	r->fd = -1;
	r->backward = tid >= 0;
	r->bytes = bytes;
	r->map_bytes = bytes + (size_t)sysconf(_SC_PAGESIZE);
	r->anchor_fd = event_open(r, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	if (r->anchor_fd < 0)
		goto fail;
	/* The kernel overwrites old records in a ring that is mapped read-only. */
	map = mmap(NULL, r->map_bytes, PROT_READ | (r->backward ? 0 : PROT_WRITE), MAP_SHARED,
		   r->anchor_fd, 0);
	if (map == MAP_FAILED)
		goto fail;
	r->page = map;
	r->data = (const uint8_t *)map + (r->map_bytes - bytes);
	return r;
fail:
	error = errno;
	perf_stack_ring_close(r);
	errno = error;
	return NULL;
}

struct perf_stack_ring *perf_stack_ring_open_cpu(int cpu, size_t bytes)
{
	return ring_open(-1, cpu, bytes);
}

struct perf_stack_ring *perf_stack_ring_open_thread(int tid)
{
	return ring_open(tid, -1, THREAD_RING_BYTES);
}

int perf_stack_ring_watch(struct perf_stack_ring *r, int id, const char *filter)
{
	const int fd = event_open(r, PERF_TYPE_TRACEPOINT, (uint64_t)id);
	int error;

	if (fd < 0)
		return -errno;
	if ((filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter)) ||
	    ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, r->anchor_fd) ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
		error = -errno;
		close(fd);
		return error;
	}
	if (r->fd >= 0)
		close(r->fd);
	r->fd = fd;
	return 0;
}

void perf_stack_ring_close(struct perf_stack_ring *r)
{
	if (!r)
		return;
	if (r->page)
		munmap(r->page, r->map_bytes);
	if (r->fd >= 0)
		close(r->fd);
	if (r->anchor_fd >= 0)
		close(r->anchor_fd);
	free(r);
}

static void bytes_copy(const struct perf_stack_ring *r, uint64_t position, void *to, size_t bytes)
{
	const size_t at = position & (r->bytes - 1);
	const size_t first = bytes < r->bytes - at ? bytes : r->bytes - at;

	memcpy(to, r->data + at, first);
	memcpy((uint8_t *)to + first, r->data, bytes - first);
}

static uint64_t head_read(const struct perf_stack_ring *r)
{
	return __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
}

/* Copies the record at `position`, which has at most `most` bytes. Returns its size, or 0 if it is
 * not valid. */
static size_t record_copy(struct perf_stack_ring *r, uint64_t position, uint64_t most)
{
	struct perf_event_header header;

	if (most < sizeof(header))
		return 0;
	bytes_copy(r, position, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size > most || header.size > sizeof(r->record))
		return 0;
	bytes_copy(r, position, r->record, header.size);
	/* It may have been overwritten since its size was read. */
	memcpy(r->record, &header, sizeof(header));
	return header.size;
}

static bool record_parse(struct perf_stack_ring *r, struct perf_record *record,
			 struct perf_stack *stack)
{
	const struct perf_event_header *header = (const void *)r->record;

	return header->type == PERF_RECORD_SAMPLE &&
	       perf_sample_read(PERF_LAYOUT_STACK, header, record, stack);
}

void perf_stack_ring_pop(struct perf_stack_ring *r)
{
	r->tail += r->peeked;
	r->peeked = 0;
	__atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
}

bool perf_stack_ring_peek(struct perf_stack_ring *r, struct perf_record *record,
			  struct perf_stack *stack)
{
	for (;;) {
		const uint64_t head = head_read(r);

		if (!r->peeked)
			r->peeked = record_copy(r, r->tail, head - r->tail);
		if (!r->peeked)
			return false;
		if (record_parse(r, record, stack))
			return true;
		perf_stack_ring_pop(r); /* a record of a loss; the caller counts missing stacks */
	}
}

/* The newest record is at the head, older ones at higher addresses. A record is valid if the kernel
 * has not overwritten it meanwhile, not even with the record that it writes now. */
static bool newest_try(struct perf_stack_ring *r, uint64_t from, uint64_t until, bool *overwritten,
		       struct perf_record *record, struct perf_stack *stack)
{
	const uint64_t head = head_read(r);
	uint64_t at = 0;

	*overwritten = false;
	while (at < -head && at + RECORD_BYTES_MAX <= r->bytes - RECORD_BYTES_MAX) {
		const size_t bytes = record_copy(r, head + at, -head - at);
		const uint64_t written = head - head_read(r);

		*overwritten = written + RECORD_BYTES_MAX + at + RECORD_BYTES_MAX > r->bytes;
		if (!bytes || *overwritten)
			return false;
		if (record_parse(r, record, stack)) {
			if (record->time < from)
				return false;
			if (record->time <= until)
				return true;
		}
		at += bytes;
	}
	return false;
}

bool perf_stack_ring_newest(struct perf_stack_ring *r, uint64_t from, uint64_t until,
			    struct perf_record *record, struct perf_stack *stack)
{
	enum { ATTEMPTS = 3 };
	bool overwritten = true, found = false;

	for (int i = 0; i < ATTEMPTS && overwritten; i++)
		found = newest_try(r, from, until, &overwritten, record, stack);
	return found;
}
