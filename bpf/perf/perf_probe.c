/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf/perf_probe.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <perf/core.h>
#include <perf/cpumap.h>
#include <perf/event.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/mmap.h>
#include <perf/threadmap.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <traceevent/event-parse.h>

#include "bpf/capture/explain.h"
#include "bpf/capture/tracepoint_format.h"

enum { RING_PAGES = 64, STEP_MS = 10 };

/* What PERF_SAMPLE_RAW puts behind a record's header. */
struct raw_sample {
	uint32_t bytes;
	char data[];
};

struct probe {
	struct tep_handle *tep;
	struct tep_event *event; /* owned by tep */
	struct perf_cpu_map *cpus;
	struct perf_thread_map *threads;
	struct perf_evlist *list;
	struct perf_evsel *selector; /* owned by list */
};

static int say_nothing(enum libperf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
	return 0;
}

static int probe_read_format(struct probe *p, const char *system, const char *name, char *why,
			     size_t why_bytes)
{
	int error;

	p->tep = tep_alloc();
	error = p->tep ? tracepoint_format_parse(p->tep, system, name, &p->event) : -ENOMEM;
	if (error == -EACCES)
		return explain(why, why_bytes, error,
			       "tracefs may not be read: run as root (CAP_SYS_ADMIN)");
	if (error == -ENOENT)
		return explain(why, why_bytes, error,
			       "no tracepoint %s:%s under /sys/kernel/tracing: is tracefs mounted? "
			       "mount -t tracefs nodev /sys/kernel/tracing",
			       system, name);
	if (error == -ENOMEM)
		return explain(why, why_bytes, error, "out of memory");
	if (error)
		return explain(why, why_bytes, error, "the format of %s:%s is not understood",
			       system, name);
	return 0;
}

static int probe_open(struct probe *p, char *why, size_t why_bytes)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_TRACEPOINT,
		.config = (uint64_t)p->event->id,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_RAW,
		.disabled = 1,
	};
	int error;

	p->cpus = perf_cpu_map__new(NULL);
	p->threads = perf_thread_map__new_dummy();
	p->list = perf_evlist__new();
	p->selector = perf_evsel__new(&attr);
	if (!p->cpus || !p->threads || !p->list || !p->selector) {
		perf_evsel__delete(p->selector);
		p->selector = NULL;
		return explain(why, why_bytes, -ENOMEM, "out of memory");
	}
	perf_evlist__add(p->list, p->selector);
	perf_evlist__set_maps(p->list, p->cpus, p->threads);
	error = perf_evlist__open(p->list);
	if (error == -EACCES || error == -EPERM)
		return explain(why, why_bytes, error,
			       "perf may not trace all CPUs: run as root (CAP_PERFMON), or sysctl "
			       "kernel.perf_event_paranoid=-1");
	if (error)
		return explain(why, why_bytes, error, "perf_event_open: %s", strerror(-error));
	error = perf_evlist__mmap(p->list, RING_PAGES);
	if (error)
		return explain(why, why_bytes, error,
			       "perf rings of %d pages per CPU: %s; sysctl "
			       "kernel.perf_event_mlock_kb is the limit for users",
			       RING_PAGES, strerror(-error));
	return 0;
}

static void probe_close(struct probe *p)
{
	if (p->selector) {
		/* perf_evsel__delete() of this libperf forgets the references it holds. */
		perf_cpu_map__put(perf_evsel__cpus(p->selector));
		perf_thread_map__put(perf_evsel__threads(p->selector));
	}
	perf_evlist__delete(p->list);
	perf_thread_map__put(p->threads);
	perf_cpu_map__put(p->cpus);
	tep_free(p->tep);
}

/* A record of our tracepoint: its type says so, and it is as long as its fields. */
static bool sample_fits(const struct probe *p, const union perf_event *event)
{
	const struct raw_sample *raw = (const void *)(&event->header + 1);
	const size_t bytes = event->header.size - sizeof(event->header);
	const struct tep_format_field *last = p->event->format.fields;

	if (bytes < sizeof(*raw) || raw->bytes > bytes - sizeof(*raw) || raw->bytes < 2)
		return false;
	while (last && last->next)
		last = last->next;
	return tep_data_type(p->tep, &(struct tep_record){.data = (void *)raw->data,
							  .size = (int)raw->bytes}) ==
		       p->event->id &&
	       (!last || (size_t)(last->offset + last->size) <= raw->bytes);
}

static void probe_drain(const struct probe *p, struct perf_probe_result *out)
{
	struct perf_mmap *map;

	perf_evlist__for_each_mmap (p->list, map, false) {
		union perf_event *event;

		if (perf_mmap__read_init(map) < 0)
			continue;
		while ((event = perf_mmap__read_event(map))) {
			if (event->header.type == PERF_RECORD_LOST)
				out->lost += event->lost.lost;
			else if (event->header.type == PERF_RECORD_SAMPLE && sample_fits(p, event))
				out->events++;
			else
				out->strange++;
			perf_mmap__consume(map);
		}
		perf_mmap__read_done(map);
	}
}

int perf_probe_tracepoint(const char *system, const char *name, unsigned int window_ms,
			  struct perf_probe_result *out, char *why, size_t why_bytes)
{
	const struct timespec step = {0, STEP_MS * 1000000};
	struct probe p = {0};
	int error;

	*out = (struct perf_probe_result){0};
	libperf_init(say_nothing);
	error = probe_read_format(&p, system, name, why, why_bytes);
	if (!error)
		error = probe_open(&p, why, why_bytes);
	if (error)
		goto out;
	perf_evlist__enable(p.list);
	/* By the clock, not by waking up per event: as the capture would. */
	for (unsigned int waited = 0; waited < window_ms; waited += STEP_MS) {
		nanosleep(&step, NULL);
		probe_drain(&p, out);
	}
	perf_evlist__disable(p.list);
	probe_drain(&p, out);
out:
	probe_close(&p);
	return error;
}
