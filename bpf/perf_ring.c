/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf_ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <perf/core.h>
#include <perf/cpumap.h>
#include <perf/event.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/mmap.h>
#include <perf/threadmap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct perf_ring {
	struct perf_cpu_map *cpus;
	struct perf_thread_map *threads;
	struct perf_evlist *list; /* owns the events */
	struct perf_mmap *map;    /* owned by list */
};

/* What sample_type below puts behind a sample's header, and at the end of other records but for
 * the raw data. */
struct sample_id {
	uint32_t tgid, tid;
	uint64_t time;
};

struct sample {
	struct perf_event_header header;
	struct sample_id id;
	uint32_t raw_bytes;
	uint8_t raw[];
};

static int say_nothing(enum libperf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
	return 0;
}

static int tracepoint_add(struct perf_ring *r, int id, bool names)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_TRACEPOINT,
		.config = (uint64_t)id,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.sample_id_all = 1,
		.disabled = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		/* Nobody polls: no wake-up, as far as the kernel lets us say so. */
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
		.comm = names,
		.comm_exec = names,
	};
	struct perf_evsel *event = perf_evsel__new(&attr);

	if (!event)
		return -ENOMEM;
	perf_evlist__add(r->list, event);
	return 0;
}

static int explain(char *why, size_t why_bytes, int cpu, size_t page_count, int error)
{
	if (error == -EACCES || error == -EPERM) {
		snprintf(why, why_bytes,
			 "perf may not trace all CPUs: run as root (CAP_PERFMON), or sysctl "
			 "kernel.perf_event_paranoid=-1");
		return -EPERM;
	}
	if (error == -EMFILE)
		snprintf(why, why_bytes,
			 "perf needs a file descriptor per CPU and tracepoint: raise ulimit -n");
	else if (error == -EINVAL)
		snprintf(why, why_bytes,
			 "perf refuses stamps of CLOCK_MONOTONIC on CPU %d: needs Linux 4.1 or "
			 "later",
			 cpu);
	else
		snprintf(why, why_bytes, "perf ring of %zu pages on CPU %d: %s", page_count, cpu,
			 strerror(-error));
	return error;
}

int perf_ring_open(int cpu, const int *ids, size_t n, bool names, size_t page_count,
		   struct perf_ring **out, char *why, size_t why_bytes)
{
	struct perf_ring *r = calloc(1, sizeof(*r));
	char cpu_list[16];
	int error = -ENOMEM;

	*out = NULL;
	if (!r)
		goto out;
	libperf_init(say_nothing);
	snprintf(cpu_list, sizeof(cpu_list), "%d", cpu);
	r->cpus = perf_cpu_map__new(cpu_list);
	r->threads = perf_thread_map__new_dummy();
	r->list = perf_evlist__new();
	if (!r->cpus || !r->threads || !r->list)
		goto out;
	for (size_t i = 0; i < n; i++) {
		/* One event reports the names for all. */
		error = tracepoint_add(r, ids[i], names && i == 0);
		if (error)
			goto out;
	}
	perf_evlist__set_maps(r->list, r->cpus, r->threads);
	error = perf_evlist__open(r->list);
	if (error)
		goto out;
	errno = 0;
	if (perf_evlist__mmap(r->list, (int)page_count)) {
		error = errno ? -errno : -ENOMEM;
		goto out;
	}
	r->map = perf_evlist__next_mmap(r->list, NULL, false);
	perf_evlist__enable(r->list);
	*out = r;
	return 0;
out:
	perf_ring_close(r);
	return explain(why, why_bytes, cpu, page_count, error);
}

void perf_ring_close(struct perf_ring *r)
{
	struct perf_evsel *event;

	if (!r)
		return;
	if (r->list) {
		/* perf_evsel__delete() of this libperf forgets the references it holds. */
		perf_evlist__for_each_evsel(r->list, event)
		{
			perf_cpu_map__put(perf_evsel__cpus(event));
			perf_thread_map__put(perf_evsel__threads(event));
		}
	}
	perf_evlist__delete(r->list);
	perf_thread_map__put(r->threads);
	perf_cpu_map__put(r->cpus);
	free(r);
}

static bool sample_read(const union perf_event *event, struct perf_record *out)
{
	const struct sample *s = (const void *)event;
	const size_t begin = offsetof(struct sample, raw);

	if (s->header.size < begin || s->raw_bytes > s->header.size - begin)
		return false;
	out->time = s->id.time;
	out->tid = (int32_t)s->id.tid;
	out->tgid = (int32_t)s->id.tgid;
	out->raw = s->raw;
	out->raw_bytes = s->raw_bytes;
	return true;
}

/* A name is followed by as many zeros as make it a multiple of 8 bytes, then by the sample's id. */
static bool name_read(const union perf_event *event, char name[16], struct perf_record *out)
{
	const struct perf_record_comm *c = (const void *)event;
	const size_t begin = offsetof(struct perf_record_comm, comm);
	struct sample_id id;
	size_t bytes;

	if (c->header.size < begin + sizeof(id))
		return false;
	bytes = c->header.size - begin - sizeof(id);
	memcpy(&id, (const char *)event + c->header.size - sizeof(id), sizeof(id));
	memset(name, 0, 16);
	memcpy(name, c->comm, strnlen(c->comm, bytes < 15 ? bytes : 15));
	out->time = id.time;
	out->tid = (int32_t)c->tid;
	out->tgid = (int32_t)c->pid;
	out->comm = name;
	return true;
}

size_t perf_ring_read(struct perf_ring *r, size_t max,
		      void (*record)(void *context, const struct perf_record *record),
		      void *context)
{
	union perf_event *event;
	size_t n = 0;

	if (perf_mmap__read_init(r->map) < 0)
		return 0;
	while (n < max && (event = perf_mmap__read_event(r->map))) {
		struct perf_record out = {0};
		char name[16];
		bool known = false;

		if (event->header.type == PERF_RECORD_SAMPLE) {
			known = sample_read(event, &out);
		} else if (event->header.type == PERF_RECORD_COMM) {
			known = name_read(event, name, &out);
		} else if (event->header.type == PERF_RECORD_LOST) {
			out.lost = event->lost.lost;
			known = true;
		}
		if (known)
			record(context, &out);
		n++;
		perf_mmap__consume(r->map);
	}
	/* Not perf_mmap__read_done(): it would skip what has arrived since. */
	return n;
}
