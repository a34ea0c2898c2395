// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/dmesg_clock.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock/sample.h"

enum { ATTEMPTS = 5 };

struct dmesg_clock {
	int fd;
	size_t page_bytes;
	struct perf_event_mmap_page *page; /* one page of control, one of data */
};

int dmesg_clock_open(struct dmesg_clock **out)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.comm = 1,
		.sample_id_all = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	struct dmesg_clock *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	c->fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (c->fd < 0) {
		err = -errno;
		free(c);
		return err;
	}
	c->page = mmap(NULL, 2 * c->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
	if (c->page == MAP_FAILED) {
		err = -errno;
		close(c->fd);
		free(c);
		return err;
	}
	*out = c;
	return 0;
}

void dmesg_clock_close(struct dmesg_clock *c)
{
	if (!c)
		return;
	munmap(c->page, 2 * c->page_bytes);
	close(c->fd);
	free(c);
}

static void ring_copy(const struct dmesg_clock *c, uint64_t at, void *out, size_t n)
{
	const uint8_t *data = (const uint8_t *)c->page + c->page_bytes;

	for (size_t i = 0; i < n; i++)
		((uint8_t *)out)[i] = data[(at + i) % c->page_bytes];
}

/* Empties the ring; the time of the newest COMM record, 0 if there was none. */
static uint64_t comm_time_take(struct dmesg_clock *c)
{
	uint64_t head = __atomic_load_n(&c->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = c->page->data_tail;
	uint64_t time = 0;

	while (head - tail >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;

		ring_copy(c, tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			break;
		/* sample_id {u32 pid, tid; u64 time} ends every record */
		if (header.type == PERF_RECORD_COMM && header.size >= sizeof(header) + 16)
			ring_copy(c, tail + header.size - 8, &time, sizeof(time));
		tail += header.size;
	}
	__atomic_store_n(&c->page->data_tail, head, __ATOMIC_RELEASE);
	return time;
}

void dmesg_clock_sample(struct dmesg_clock *c, struct message_dmesg_point *out)
{
	char name[16];

	memset(out, 0, sizeof(*out));
	if (prctl(PR_GET_NAME, name) < 0)
		return;
	comm_time_take(c);
	for (int i = 0; i < ATTEMPTS; i++) {
		uint64_t begin, end, ns, err;

		begin = clock_tsc_read();
		if (prctl(PR_SET_NAME, name) < 0)
			return;
		end = clock_tsc_read();
		ns = comm_time_take(c);
		err = (end - begin) / 2 + 1;
		if (!ns || (out->known && err >= out->err))
			continue;
		*out = (struct message_dmesg_point){
			.known = true,
			.time = begin + (end - begin) / 2,
			.ns = ns,
			.err = err,
		};
	}
}
