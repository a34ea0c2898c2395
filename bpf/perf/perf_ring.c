/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf/perf_ring.h"

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
#include <unistd.h>

#include "clock/sample.h"

struct perf_ring {
	struct perf_cpu_map *cpus;
	struct perf_thread_map *threads;
	struct perf_evlist *list;    /* owns the events */
	struct perf_mmap *map;       /* owned by list */
	struct perf_evsel *switches; /* owned by list; NULL: switches are not reported */
	enum perf_layout layout;
	size_t bytes;
	uint64_t lost;         /* number of lost events that were reported */
	uint64_t lost_records; /* sum of the ring's records of losses */
	/* CLOCK_MONOTONIC since which all events run. The kernel starts them one after the other,
	 * so an older sample may be an entry whose exit was not captured. */
	uint64_t all_run_ns;
};

static int say_nothing(enum libperf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
	return 0;
}

/* libperf exports this function, but its headers do not declare it. */
int perf_evsel__apply_filter(struct perf_evsel *event, const char *filter);

static int event_add(struct perf_ring *r, struct perf_event_attr *attr, bool counts_losses,
		     struct perf_evsel **out)
{
	perf_sample_describe(r->layout, attr);
	attr->read_format = counts_losses ? PERF_FORMAT_LOST : 0;
	*out = perf_evsel__new(attr);
	if (!*out)
		return -ENOMEM;
	perf_evlist__add(r->list, *out);
	return 0;
}

static int events_add(struct perf_ring *r, const struct perf_ring_options *o, bool counts_losses)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_PAGE_FAULTS_MAJ};
	struct perf_evsel *event;
	int error = 0;

	if (o->layout == PERF_LAYOUT_FAULT)
		return event_add(r, &attr, counts_losses, &event);
	for (size_t i = 0; i < o->n_events && !error; i++) {
		attr = (struct perf_event_attr){
			.type = PERF_TYPE_TRACEPOINT,
			.config = (uint64_t)o->events[i].id,
			/* One event reports the names for all. */
			.comm = o->names && i == 0,
			.comm_exec = o->names && i == 0,
		};
		if (o->events[i].probe) {
			attr.type = o->events[i].probe->type;
			attr.config = o->events[i].probe->config;
			attr.config1 = o->events[i].probe->config1;
			attr.config2 = o->events[i].probe->config2;
		}
		error = event_add(r, &attr, counts_losses, &event);
	}
	attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .context_switch = 1};
	if (o->switches && !error)
		error = event_add(r, &attr, counts_losses, &r->switches);
	return error;
}

static int filters_apply(struct perf_ring *r, const struct perf_ring_options *o)
{
	struct perf_evsel *event;
	size_t i = 0;
	int error = 0;

	perf_evlist__for_each_evsel(r->list, event)
	{
		if (i < o->n_events && o->events[i].filter && !error)
			error = perf_evsel__apply_filter(event, o->events[i].filter);
		i++;
	}
	return error ? -EINVAL : 0;
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

/* counts_losses: each event counts its losses, which kernels before 6.0 cannot do. */
static int ring_try(const struct perf_ring_options *o, bool counts_losses, struct perf_ring **out)
{
	struct perf_ring *r = calloc(1, sizeof(*r));
	char cpu_list[16];
	int error = -ENOMEM;

	if (!r)
		return error;
	r->layout = o->layout;
	r->bytes = o->page_count * (size_t)sysconf(_SC_PAGESIZE);
	snprintf(cpu_list, sizeof(cpu_list), "%d", o->cpu);
	r->cpus = perf_cpu_map__new(cpu_list);
	r->threads = perf_thread_map__new_dummy();
	r->list = perf_evlist__new();
	if (!r->cpus || !r->threads || !r->list)
		goto out;
	error = events_add(r, o, counts_losses);
	if (error)
		goto out;
	perf_evlist__set_maps(r->list, r->cpus, r->threads);
	error = perf_evlist__open(r->list);
	if (!error)
		error = filters_apply(r, o);
	if (error)
		goto out;
	errno = 0;
	if (perf_evlist__mmap(r->list, (int)o->page_count)) {
		error = errno ? -errno : -ENOMEM;
		goto out;
	}
	r->map = perf_evlist__next_mmap(r->list, NULL, false);
	perf_evlist__enable(r->list);
	r->all_run_ns = clock_monotonic_ns();
	*out = r;
	return 0;
out:
	perf_ring_close(r);
	return error;
}

int perf_ring_open(const struct perf_ring_options *options, struct perf_ring **out, char *why,
		   size_t why_bytes)
{
	int error;

	*out = NULL;
	libperf_init(say_nothing);
	error = ring_try(options, true, out);
	if (error == -EINVAL)
		error = ring_try(options, false, out);
	return error ? explain(why, why_bytes, options->cpu, options->page_count, error) : 0;
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

void perf_ring_switches_report(struct perf_ring *r, bool wanted)
{
	if (wanted)
		perf_evsel__enable(r->switches);
	else
		perf_evsel__disable(r->switches);
}

/* The kernel reports a loss in two ways: by a record before the next event that finds room,
 * which may never come, and by the counts of the events, which are expensive to read. In the end
 * both are equal. */
static uint64_t loss_emit(struct perf_ring *r, uint64_t lost_in_all)
{
	const uint64_t more = lost_in_all > r->lost ? lost_in_all - r->lost : 0;

	r->lost += more;
	return more;
}

static uint64_t losses_count(struct perf_ring *r)
{
	struct perf_counts_values counts;
	struct perf_evsel *event;
	uint64_t lost = 0;

	perf_evlist__for_each_evsel(r->list, event)
	{
		if (perf_evsel__attr(event)->read_format && !perf_evsel__read(event, 0, 0, &counts))
			lost += counts.lost;
	}
	return loss_emit(r, lost);
}

size_t perf_ring_read(struct perf_ring *r, size_t max,
		      void (*record)(void *context, const struct perf_record *record),
		      void *context)
{
	struct perf_record out;
	union perf_event *event;
	size_t n = 0, bytes = 0;

	if (perf_mmap__read_init(r->map) < 0)
		return 0;
	while (n < max && (event = perf_mmap__read_event(r->map))) {
		char name[16];
		bool known = false;

		bytes += event->header.size;
		if (event->header.type == PERF_RECORD_SAMPLE) {
			known = perf_sample_read(r->layout, &event->header, &out, NULL) &&
				out.time >= r->all_run_ns;
		} else if (event->header.type == PERF_RECORD_COMM) {
			known = perf_sample_name_read(&event->header, name, &out);
		} else if (event->header.type == PERF_RECORD_SWITCH_CPU_WIDE) {
			known = perf_sample_switch_read(&event->header, &out);
		} else if (event->header.type == PERF_RECORD_LOST) {
			r->lost_records += event->lost.lost;
			out = (struct perf_record){.lost = loss_emit(r, r->lost_records)};
			known = true;
		}
		if (known)
			record(context, &out);
		n++;
		perf_mmap__consume(r->map);
	}
	/* Not perf_mmap__read_done(), which would skip records that arrived since. */
	if (bytes >= r->bytes / 2) {
		out = (struct perf_record){.lost = losses_count(r)};
		if (out.lost)
			record(context, &out);
	}
	return n;
}
