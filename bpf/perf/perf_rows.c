/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf/perf_rows.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SETS_MAX = 8,
	FILTER_BYTES = 4000, /* the kernel accepts a page */
	FAULT_RING_PAGES = 16,
	RING_RECORDS_MAX = 1 << 20, /* of one read */
	NOBODY = -1,                /* a thread id that only a set without a filter covers */
};

/* Events that were opened together, with one filter. */
struct row_set {
	bool has[PERF_TRACEPOINTS_MAX]; /* by the capture's index */
	bool faults;
	/* The filter of the rows that only take events of followed threads. */
	bool everybody;
	pid_t *tids; /* NULL: all threads */
	size_t n_tids;
	pid_t newer_than;
	char filter_current[FILTER_BYTES]; /* by the current task */
	char filter_pid[FILTER_BYTES];     /* by the task in the record's field `pid` */
	struct perf_input *inputs;         /* by CPU */
};

struct perf_rows {
	struct capture_perf *c;
	size_t n_sets;
	struct row_set sets[SETS_MAX];
	bool faults;
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

/* ---- filters ---- */

/* Returns the id that the kernel gave to a new task last. */
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

/* Returns false if the filter is too long. */
static bool filter_write(const struct row_set *s, const char *field, char filter[FILTER_BYTES])
{
	size_t used = (size_t)snprintf(filter, FILTER_BYTES, "%s>%d", field, s->newer_than);

	for (size_t i = 0; i < s->n_tids && used < FILTER_BYTES; i++)
		used += (size_t)snprintf(filter + used, FILTER_BYTES - used, "||%s==%d", field,
					 s->tids[i]);
	return used < FILTER_BYTES;
}

/* Leaves the set without a filter if it cannot have one. */
static void set_filter(struct row_set *s, pid_t tgid)
{
	s->newer_than = pid_last(); /* must be read before the threads */
	s->everybody = s->newer_than <= 0 || tids_read(tgid, &s->tids, &s->n_tids) ||
		       !filter_write(s, "common_pid", s->filter_current) ||
		       !filter_write(s, "pid", s->filter_pid);
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

/* Returns the filter that the kernel applies, or NULL for no filter. */
static const char *filter_of(const struct perf_rows *r, const struct row_set *s, size_t tracepoint)
{
	const struct perf_tracepoint *t = &r->c->tracepoints[tracepoint];

	if (s->everybody)
		return NULL;
	if (!t->is_row)
		return s->filter_pid;
	return t->scope == VS_SCOPE_FOLLOWED ? s->filter_current : NULL;
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
				.id = r->c->tracepoints[i].id, .filter = filter_of(r, s, i)};
	}
	s->inputs[cpu].cpu = (uint16_t)cpu;
	/* Tracepoints that cannot be opened are not observed. */
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

/* Adds the rows whose tracepoints did not exist before: their modules may be loaded later than this
 * program. Returns their number. */
static size_t rows_resolve(struct perf_rows *r)
{
	struct capture_perf *c = r->c;
	const struct event_tracepoint *row;
	size_t found = 0;

	for (size_t i = 0; c->n_tracepoints < PERF_TRACEPOINTS_MAX && (row = tracepoint_row(i));
	     i++) {
		struct perf_tracepoint *t = &c->tracepoints[c->n_tracepoints];

		if (r->opened[i] ||
		    perf_tracepoint_resolve_row(c->tep, row, c->options.tracepoints, t) ||
		    t->id >= PERF_TRACEPOINT_IDS)
			continue;
		c->by_id[t->id] = (uint8_t)++c->n_tracepoints;
		r->opened[i] = true;
		r->n_opened++;
		found++;
	}
	return found;
}

/* Returns true if one of the first sets passes the events of this thread, or those that concern it.
 */
static bool is_covered(const struct perf_rows *r, size_t n_sets, size_t tracepoint, pid_t tid)
{
	for (size_t i = 0; i < n_sets; i++) {
		const struct row_set *s = &r->sets[i];

		if (s->has[tracepoint] && (!filter_of(r, s, tracepoint) || set_covers(s, tid)))
			return true;
	}
	return false;
}

static void faults_open(struct perf_rows *r)
{
	if (r->faults)
		return;
	r->faults = true;
	r->sets[r->n_sets].faults = true;
	set_open(r, &r->sets[r->n_sets]);
}

void perf_rows_cover(struct perf_rows *r, pid_t tid, pid_t tgid, bool is_vcpu)
{
	const bool rows_before = r->n_opened > 0;
	size_t rows_new = 0;
	bool uncovered = false;
	struct row_set *s;

	if (r->n_sets + 2 > SETS_MAX)
		return; /* the last set covers all threads */
	if (is_vcpu && r->c->options.tracepoints) {
		faults_open(r);
		rows_new = rows_resolve(r);
	}
	for (size_t i = r->c->n_base; i < r->c->n_tracepoints && !uncovered; i++)
		uncovered = !is_covered(r, r->n_sets, i, tid);
	if (!uncovered)
		return;
	s = &r->sets[r->n_sets];
	/* Rows of a module that was loaded late have no filter, because other sets may need them.
	 */
	s->everybody = (rows_before && rows_new) || r->n_sets + 3 > SETS_MAX;
	for (size_t i = r->c->n_base; i < r->c->n_tracepoints; i++)
		s->has[i] = !is_covered(r, r->n_sets, i, s->everybody ? NOBODY : tid);
	if (!s->everybody)
		set_filter(s, tgid);
	set_open(r, s);
}

void perf_rows_cpu_open(struct perf_rows *r, size_t cpu)
{
	for (size_t i = 0; i < r->n_sets; i++)
		input_open(r, &r->sets[i], cpu);
}

/* ---- reading ---- */

static bool record_decode(const struct perf_rows *r, const struct perf_record *record,
			  struct vs_event *event)
{
	struct perf_tracepoint *t;

	if (r->sets[r->reading_set].faults) {
		*event = (struct vs_event){
			.time = record->time, .type = VS_EVENT_MAJOR_FAULT, .pid = record->tid};
		ev_set_major_fault_address(event, record->address);
		ev_set_major_fault_rip(event, record->instruction);
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
	/* An earlier set sees this hit, too. */
	if (t && is_covered(r, r->reading_set, (size_t)(t - r->c->tracepoints), event.pid))
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
