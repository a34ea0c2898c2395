/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf_rows.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SETS_MAX = 8,
	FILTER_BYTES = 4000, /* the kernel takes a page */
	FAULT_RING_PAGES = 16,
	RING_RECORDS_MAX = 1 << 20, /* of one read */
};

/* Events that were opened together, with one filter. */
struct row_set {
	bool has[PERF_TRACEPOINTS_MAX]; /* by the capture's index */
	bool faults;
	/* The filter, for the rows whose scope is the followed threads' own. */
	bool everybody;
	pid_t *tids; /* NULL if everybody */
	size_t n_tids;
	pid_t newer_than;
	char filter[FILTER_BYTES];
	struct perf_input *inputs; /* by CPU */
};

struct perf_rows {
	struct capture_perf *c;
	size_t n_sets;
	struct row_set sets[SETS_MAX];
	bool opened[VS_TRACEPOINTS_MAX]; /* by row */
	size_t n_opened;
	/* For on_record(). */
	struct perf_input *reading;
	size_t reading_set;
};

struct perf_rows *perf_rows_new(struct capture_perf *c)
{
	struct perf_rows *r = calloc(1, sizeof(*r));

	if (r)
		r->c = c;
	return r;
}

static void set_fini(struct row_set *s, size_t n_cpus)
{
	for (size_t cpu = 0; s->inputs && cpu < n_cpus; cpu++) {
		perf_ring_close(s->inputs[cpu].ring);
		perf_queue_fini(&s->inputs[cpu].queue);
	}
	free(s->inputs);
	free(s->tids);
	*s = (struct row_set){0};
}

void perf_rows_free(struct perf_rows *r)
{
	for (size_t i = 0; r && i < r->n_sets; i++)
		set_fini(&r->sets[i], r->c->n_cpus);
	free(r);
}

/* ---- who is let through ---- */

/* The id that was given to a new task last. */
static pid_t pid_last(void)
{
	FILE *f = fopen("/proc/loadavg", "re");
	int last = 0;

	if (f) {
		if (fscanf(f, "%*f %*f %*f %*d/%*d %d", &last) != 1)
			last = 0;
		fclose(f);
	}
	return last;
}

static int tids_read(pid_t tgid, pid_t **out, size_t *n)
{
	char path[64];
	struct dirent *entry;
	DIR *threads;

	*out = NULL;
	*n = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", tgid);
	threads = opendir(path);
	while (threads && (entry = readdir(threads))) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		pid_t *more;

		if (!tid)
			continue;
		more = realloc(*out, (*n + 1) * sizeof(*more));
		if (!more)
			break;
		more[(*n)++] = tid;
		*out = more;
	}
	if (threads)
		closedir(threads);
	return *n ? 0 : -1;
}

/* Leaves the set without a filter if it cannot have one. */
static void set_filter(struct row_set *s, pid_t tgid)
{
	size_t used;

	s->newer_than = pid_last(); /* before the threads are read */
	s->everybody = s->newer_than <= 0 || tids_read(tgid, &s->tids, &s->n_tids);
	used = (size_t)snprintf(s->filter, sizeof(s->filter), "common_pid>%d", s->newer_than);
	for (size_t i = 0; i < s->n_tids && used < sizeof(s->filter); i++)
		used += (size_t)snprintf(s->filter + used, sizeof(s->filter) - used,
					 "||common_pid==%d", s->tids[i]);
	s->everybody |= used >= sizeof(s->filter);
}

static bool set_covers(const struct row_set *s, pid_t tid)
{
	if (s->everybody || tid > s->newer_than)
		return true;
	for (size_t i = 0; i < s->n_tids; i++) {
		if (s->tids[i] == tid)
			return true;
	}
	return false;
}

static bool is_filtered(const struct perf_rows *r, size_t tracepoint)
{
	return r->c->tracepoints[tracepoint].scope == VS_SCOPE_FOLLOWED;
}

/* ---- opening ---- */

static void input_open(struct perf_rows *r, struct row_set *s, size_t cpu)
{
	struct perf_ring_event events[PERF_TRACEPOINTS_MAX];
	struct perf_ring_options options = {
		.cpu = (int)cpu, .events = events, .page_count = r->c->ring_pages};
	char why[256];

	if (s->faults) {
		options.layout = PERF_LAYOUT_FAULT;
		options.events = NULL;
		options.page_count = FAULT_RING_PAGES;
	}
	for (size_t i = 0; i < r->c->n_tracepoints; i++) {
		if (s->has[i])
			events[options.n_events++] = (struct perf_ring_event){
				r->c->tracepoints[i].id,
				is_filtered(r, i) && !s->everybody ? s->filter : NULL};
	}
	s->inputs[cpu].cpu = (uint16_t)cpu;
	/* What cannot be opened is not observed. */
	perf_ring_open(&options, &s->inputs[cpu].ring, why, sizeof(why));
}

static void set_open(struct perf_rows *r, struct row_set *s)
{
	s->inputs = calloc(r->c->n_cpus, sizeof(*s->inputs));
	if (!s->inputs) {
		set_fini(s, r->c->n_cpus);
		return;
	}
	r->n_sets++;
	for (size_t cpu = 0; cpu < r->c->n_cpus; cpu++) {
		if (r->c->cpus[cpu].ring)
			input_open(r, s, cpu);
	}
}

/* Adds the rows to the capture's tracepoints that exist by now and did not before: the modules that
 * they belong to may be loaded later than we are. Returns how many. */
static size_t rows_resolve(struct perf_rows *r)
{
	struct capture_perf *c = r->c;
	size_t n, found = 0;
	const struct tracepoint_source *rows = tracepoint_sources(&n);

	for (size_t i = 0; i < n && c->n_tracepoints < PERF_TRACEPOINTS_MAX; i++) {
		struct perf_tracepoint *t = &c->tracepoints[c->n_tracepoints];

		if (r->opened[i] ||
		    perf_tracepoint_resolve_row(c->tep, &rows[i], c->options.tracepoints, t) ||
		    t->id >= PERF_TRACEPOINT_IDS)
			continue;
		c->by_id[t->id] = (uint8_t)++c->n_tracepoints;
		r->opened[i] = true;
		r->n_opened++;
		found++;
	}
	return found;
}

static bool is_covered(const struct perf_rows *r, pid_t tid)
{
	for (size_t i = 0; i < r->n_sets; i++) {
		if (!r->sets[i].faults && set_covers(&r->sets[i], tid))
			return true;
	}
	return false;
}

/* Before each but the last set there is room for one more. */
static struct row_set *set_next(struct perf_rows *r)
{
	return r->n_sets < SETS_MAX ? &r->sets[r->n_sets] : NULL;
}

void perf_rows_cover(struct perf_rows *r, pid_t tid, pid_t tgid)
{
	const size_t known = r->c->n_tracepoints;
	struct row_set *s;

	if (!r->c->options.tracepoints)
		return;
	if (!r->n_sets) {
		r->sets[0].faults = true;
		set_open(r, &r->sets[0]);
	}
	s = set_next(r);
	if (s && rows_resolve(r)) {
		/* Those of a module that came late are not filtered: others may need them, too. */
		if (known == r->c->n_base)
			set_filter(s, tgid);
		else
			s->everybody = true;
		for (size_t i = known; i < r->c->n_tracepoints; i++)
			s->has[i] = true;
		set_open(r, s);
	}
	s = set_next(r);
	if (!s || r->c->n_tracepoints == r->c->n_base || is_covered(r, tid))
		return;
	if (r->n_sets == SETS_MAX - 1)
		s->everybody = true;
	else
		set_filter(s, tgid);
	for (size_t i = r->c->n_base; i < r->c->n_tracepoints; i++)
		s->has[i] = is_filtered(r, i);
	set_open(r, s);
}

void perf_rows_cpu_open(struct perf_rows *r, size_t cpu)
{
	for (size_t i = 0; i < r->n_sets; i++)
		input_open(r, &r->sets[i], cpu);
}

/* ---- reading ---- */

/* Whether an earlier set sees this hit, too. */
static bool is_seen_before(const struct perf_rows *r, size_t tracepoint, pid_t tid)
{
	for (size_t i = 0; i < r->reading_set; i++) {
		if (r->sets[i].has[tracepoint] && set_covers(&r->sets[i], tid))
			return true;
	}
	return false;
}

static bool record_decode(const struct perf_rows *r, const struct perf_record *record,
			  struct vs_event *event)
{
	const struct perf_tracepoint *t;

	if (r->sets[r->reading_set].faults) {
		*event = (struct vs_event){.time = record->time,
					   .type = VS_EVENT_MAJOR_FAULT,
					   .pid = record->tid,
					   .arg0 = record->address,
					   .arg1 = record->instruction};
		return true;
	}
	t = capture_perf_tracepoint_of(r->c, record);
	return t && perf_tracepoint_decode(t, record, event);
}

static void on_record(void *context, const struct perf_record *record)
{
	struct perf_rows *r = context;
	struct perf_queue *q = &r->reading->queue;
	const struct perf_tracepoint *t;
	struct vs_event event;

	if (record->lost) {
		perf_queue_lose(q, record->lost);
		return;
	}
	if (!record_decode(r, record, &event)) {
		perf_queue_lose(q, 1);
		return;
	}
	t = capture_perf_tracepoint_of(r->c, record);
	if (t && is_seen_before(r, (size_t)(t - r->c->tracepoints), event.pid))
		return;
	event.cpu = r->reading->cpu;
	if (event.time > r->c->cutoff)
		perf_queue_push(q, &event);
	else if (perf_host_late(r->c, &event))
		perf_queue_lose(q, 1);
}

static void input_read(struct perf_rows *r, size_t set, size_t cpu)
{
	r->reading_set = set;
	r->reading = &r->sets[set].inputs[cpu];
	if (r->reading->ring)
		perf_ring_read(r->reading->ring, RING_RECORDS_MAX, on_record, r);
}

void perf_rows_read(struct perf_rows *r)
{
	for (size_t i = 0; i < r->n_sets; i++) {
		for (size_t cpu = 0; cpu < r->c->n_cpus; cpu++)
			input_read(r, i, cpu);
	}
}

void perf_rows_cpu_close(struct perf_rows *r, size_t cpu)
{
	for (size_t i = 0; i < r->n_sets; i++) {
		input_read(r, i, cpu);
		perf_ring_close(r->sets[i].inputs[cpu].ring);
		r->sets[i].inputs[cpu].ring = NULL;
	}
}

size_t perf_rows_n_inputs(const struct perf_rows *r)
{
	return r->n_sets * r->c->n_cpus;
}

size_t perf_rows_inputs(struct perf_rows *r, struct perf_input **out)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_sets; i++) {
		for (size_t cpu = 0; cpu < r->c->n_cpus; cpu++)
			out[n++] = &r->sets[i].inputs[cpu];
	}
	return n;
}

size_t perf_rows_n_tracepoints(const struct perf_rows *r)
{
	return r->n_opened;
}
