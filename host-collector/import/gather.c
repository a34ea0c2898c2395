// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/import/gather.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host-collector/import/line.h"
#include "host-collector/util/progress.h"
#include "proto/array.h"
#include "proto/event_fields.h"

static const uint64_t second_ns = 1000000000, silence_ns = 60000000000;
static const uint64_t kvm_types = 1ull << VS_EVENT_KVM_ENTRY | 1ull << VS_EVENT_KVM_EXIT |
				  1ull << VS_EVENT_KVM_USERSPACE_EXIT;

int gather_init(struct gather *g, const struct gather_options *options)
{
	memset(g, 0, sizeof(*g));
	g->options = *options;
	g->thread_slots = 1024;
	g->threads = calloc(g->thread_slots, sizeof(*g->threads));
	g->others = other_events_new();
	return g->threads && g->others ? 0 : -ENOMEM;
}

void gather_fini(struct gather *g)
{
	free(g->events);
	free(g->threads);
	other_events_free(g->others);
	g->others = NULL;
	g->events = NULL;
	g->threads = NULL;
}

static struct gather_thread *slot_of(struct gather_thread *slots, size_t n, int32_t tid)
{
	size_t at = ((uint32_t)tid * 2654435761u) & (n - 1);

	while (slots[at].tid && slots[at].tid != tid)
		at = (at + 1) & (n - 1);
	return &slots[at];
}

const struct gather_thread *gather_thread_find(const struct gather *g, int32_t tid)
{
	const struct gather_thread *t = tid ? slot_of(g->threads, g->thread_slots, tid) : NULL;

	return t && t->tid ? t : NULL;
}

static int threads_grow(struct gather *g)
{
	size_t n = g->thread_slots * 2;
	struct gather_thread *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < g->thread_slots; i++) {
		if (g->threads[i].tid)
			*slot_of(slots, n, g->threads[i].tid) = g->threads[i];
	}
	free(g->threads);
	g->threads = slots;
	g->thread_slots = n;
	return 0;
}

static int event_push(struct gather *g, const struct vs_event *e, bool waking)
{
	if (ARRAY_RESERVE(&g->events, g->n_events, &g->capacity, 4096))
		return -ENOMEM;
	g->events[g->n_events] = (struct gather_event){.e = *e, .waking = waking};
	g->events[g->n_events].e.seq = (vs_u32)g->n_events;
	g->n_events++;
	return 0;
}

static int name_push(struct gather *g, const struct gather_thread *t, uint16_t cpu, uint64_t time)
{
	struct vs_event e = {.time = time,
			     .cpu = cpu,
			     .type = VS_EVENT_TASK_NAME,
			     .pid = t->tid,
			     .pid2 = t->tgid};

	ev_set_task_comm(&e, t->comm);
	return event_push(g, &e, false);
}

/* The thread's entry; says so in the stream if its name is news. */
static int thread_take(struct gather *g, const struct import_task *task, uint16_t cpu,
		       uint64_t time, struct gather_thread **out)
{
	struct gather_thread *t;
	bool news;
	int err;

	*out = NULL;
	if (!task->known || task->tid == 0)
		return 0;
	if (g->n_threads * 2 >= g->thread_slots) {
		err = threads_grow(g);
		if (err)
			return err;
	}
	t = slot_of(g->threads, g->thread_slots, task->tid);
	*out = t;
	g->n_threads += !t->tid;
	t->tid = task->tid;
	if (task->tgid)
		t->tgid = task->tgid;
	news = task->comm[0] && strcmp(t->comm, task->comm);
	if (!news)
		return 0;
	memcpy(t->comm, task->comm, sizeof(t->comm));
	return name_push(g, t, cpu, time);
}

/* Nanoseconds of this machine's clock, moved to the host's. false: no such time. */
static bool time_take(struct gather *g, const struct import_record *r, uint64_t *ns)
{
	uint64_t time = r->time;
	int64_t moved;

	if (r->ticks) {
		unsigned __int128 wide = (unsigned __int128)r->time * second_ns;

		if (!g->options.tick_hz) {
			g->tickless++;
			return false;
		}
		wide /= g->options.tick_hz;
		if (wide > INT64_MAX)
			return false;
		time = (uint64_t)wide;
	}
	if (__builtin_add_overflow((int64_t)time, g->options.offset_ns, &moved) || moved < 0 ||
	    moved > INT64_MAX / 2)
		return false;
	*ns = (uint64_t)moved;
	if (r->unit > g->unit)
		g->unit = r->unit;
	return true;
}

static void time_check(struct gather *g, uint16_t cpu, uint64_t ns)
{
	if (g->started[cpu] && ns < g->newest[cpu]) {
		g->backwards++;
		g->steps_back += g->newest[cpu] - ns > second_ns;
	}
	g->started[cpu] = true;
	g->newest[cpu] = ns;
	if (g->lost_open[cpu]) {
		struct vs_event *lost = &g->events[g->lost_open[cpu] - 1].e;

		if (!lost->time || lost->time > ns)
			lost->time = ns;
		ev_set_lost_end(lost, ns);
		g->lost_open[cpu] = 0;
	}
	if (cpu >= g->n_cpus)
		g->n_cpus = (uint16_t)(cpu + 1);
}

/* Sets thread and CPU of a KVM event whose line was cut before them, from its vCPU. Returns false
 * if the CPU remains unknown. */
static bool place_invent(struct gather *g, struct import_record *r, bool kvm)
{
	if (!r->task.known && kvm) {
		if (!r->vcpu_known || r->vcpu >= GATHER_CPUS)
			return false;
		r->task.known = true;
		r->task.tid = r->e.pid = GATHER_INVENTED_TID + (int32_t)r->vcpu;
		g->invented++;
	}
	if (!r->cpu_known && kvm && r->vcpu_known && r->vcpu < GATHER_CPUS) {
		r->cpu_known = true;
		r->cpu = (uint16_t)r->vcpu;
	}
	return r->cpu_known;
}

int gather_record(struct gather *g, struct import_record *r, const char *source)
{
	bool kvm = kvm_types >> r->e.type & 1;
	struct gather_thread *t;
	uint64_t ns;
	int err = 0;

	if (!place_invent(g, r, kvm)) {
		g->placeless++;
		gather_malformed(g, source);
		return 0;
	}
	if (!time_take(g, r, &ns)) {
		gather_malformed(g, source);
		return 0;
	}
	time_check(g, r->cpu, ns);
	err = thread_take(g, &r->task, r->cpu, ns, &t);
	if (!err && t && kvm) {
		t->kvm = t->kvm_read = true;
		if (r->vcpu_known) {
			t->vcpu_known = true;
			t->vcpu = r->vcpu;
		}
	}
	for (size_t i = 0; i < 2 && !err; i++)
		err = thread_take(g, &r->named[i], r->cpu, ns, &t);
	if (err)
		return err;
	g->taken++;
	g->reasons_unknown += r->reason_unknown;
	r->e.time = ns;
	r->e.cpu = r->cpu;
	return event_push(g, &r->e, !strcmp(r->event, "sched_waking"));
}

int gather_other(struct gather *g, struct import_record *r, const struct other_hit *hit,
		 const char *source)
{
	struct vs_event e = {.type = VS_EVENT_USER, .pid = r->task.known ? r->task.tid : 0};
	struct gather_thread *t;
	uint64_t ns, at;
	uint32_t id;
	int err;

	if (!r->cpu_known) {
		gather_unused(g, r->event);
		return 0;
	}
	if (!time_take(g, r, &ns)) {
		gather_malformed(g, source);
		return 0;
	}
	err = other_events_take(g->others, hit, &id, &at);
	if (err == -ENOSPC) {
		gather_unused(g, r->event);
		return 0;
	}
	time_check(g, r->cpu, ns);
	if (!err)
		err = thread_take(g, &r->task, r->cpu, ns, &t);
	if (err)
		return err;
	g->taken++;
	g->other++;
	e.time = ns;
	e.cpu = r->cpu;
	ev_set_user_id(&e, id);
	ev_set_user_first(&e, at);
	return event_push(g, &e, false);
}

static int lost_push(struct gather *g, uint16_t cpu, uint64_t time, uint64_t n)
{
	struct vs_event e = {.time = time, .cpu = cpu, .type = VS_EVENT_LOST};
	int err;

	ev_set_lost_count(&e, n);
	err = event_push(g, &e, false);
	if (!err)
		g->lost_open[cpu] = g->n_events;
	return err;
}

int gather_lost(struct gather *g, uint16_t cpu, uint64_t n)
{
	int err = lost_push(g, cpu, g->started[cpu] ? g->newest[cpu] : 0, n);

	if (err)
		return err;
	g->lost_marks++;
	g->lost += n;
	return 0;
}

int gather_torn(struct gather *g, struct import_record *r, const char *source)
{
	struct gather_thread *t;
	uint64_t ns;
	int err;

	gather_malformed(g, source);
	if (!time_take(g, r, &ns))
		return 0;
	time_check(g, r->cpu, ns);
	err = thread_take(g, &r->task, r->cpu, ns, &t);
	if (err)
		return err;
	if (t)
		t->kvm = true;
	g->torn++;
	if (!g->architecture)
		g->architecture = r->architecture;
	/* One event is missing, which is counted; but it may have been anything, and readers draw
	 * conclusions from numbers. So a mark without a number follows. */
	err = lost_push(g, r->cpu, ns, 1);
	return err ? err : lost_push(g, r->cpu, ns, 0);
}

void gather_unused(struct gather *g, const char *event)
{
	size_t i = 0;

	g->unused++;
	while (i < g->n_names && strcmp(g->names[i].name, event))
		i++;
	if (i == g->n_names && i < GATHER_NAMES_MAX) {
		snprintf(g->names[i].name, sizeof(g->names[i].name), "%s", event);
		g->n_names++;
	}
	g->names[i].n++;
}

void gather_malformed(struct gather *g, const char *source)
{
	if (g->malformed < GATHER_EXAMPLES)
		snprintf(g->examples[g->malformed], GATHER_EXAMPLE_BYTES, "%s", source);
	g->malformed++;
}

/* One line without its end, cut at the buffer's size; NUL bytes become '?'. 1, 0 at the end. */
static int line_read(FILE *in, char *line, size_t bytes, bool *cut)
{
	size_t len = 0;
	int c;

	*cut = false;
	while ((c = getc_unlocked(in)) != EOF && c != '\n') {
		if (len + 1 < bytes)
			line[len++] = c ? (char)c : '?';
		else
			*cut = true;
	}
	line[len] = 0;
	return c != EOF || len;
}

/* An event of text for which there is no type, or none on this side. */
static int other_read(struct gather *g, struct import_record *r, const char *source)
{
	struct other_hit hit;

	other_hit_parse(&hit, r->system, r->event, r->text);
	return gather_other(g, r, &hit, source);
}

int gather_text(struct gather *g, FILE *in)
{
	char line[LINE_BYTES_MAX], source[GATHER_EXAMPLE_BYTES];
	struct progress progress;
	struct import_record r;
	struct stat status;
	uint64_t bytes = 0;
	int err = 0;
	bool cut;

	if (fileno(in) < 0 || fstat(fileno(in), &status) || !S_ISREG(status.st_mode))
		status.st_size = 0; /* unknown */
	progress_begin(&progress, "vcpuscope import", "reads the text", (uint64_t)status.st_size);
	while (!err && line_read(in, line, sizeof(line), &cut)) {
		g->lines++;
		bytes += strlen(line) + 1;
		progress_step(&progress, bytes);
		snprintf(source, sizeof(source), "%.*s", (int)sizeof(source) - 1, line);
		switch (cut ? LINE_MALFORMED : line_parse(line, &r)) {
		case LINE_EVENT:
			err = gather_has_type(g, r.e.type) ? gather_record(g, &r, source)
							   : other_read(g, &r, source);
			break;
		case LINE_OTHER:
			err = other_read(g, &r, source);
			break;
		case LINE_LOST:
			err = gather_lost(g, r.cpu, ev_lost_count(&r.e));
			break;
		case LINE_TORN:
			err = gather_has_type(g, r.e.type) ? gather_torn(g, &r, source)
							   : other_read(g, &r, source);
			break;
		case LINE_NOTHING:
			g->nothing++;
			break;
		case LINE_MALFORMED:
			gather_malformed(g, source);
			break;
		}
	}
	return err ? err : ferror(in) ? -EIO : 0;
}

static int time_order(const void *a, const void *b)
{
	const struct vs_event *x = &((const struct gather_event *)a)->e;
	const struct vs_event *y = &((const struct gather_event *)b)->e;

	if (x->time != y->time)
		return x->time > y->time ? 1 : -1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

struct waker {
	int32_t tid, waker;
};

/* Pieces of two recordings in one file, or a tracer that was switched off: what the threads did in
 * between is not known. */
static int silences_mark(struct gather *g)
{
	const size_t n = g->n_events;
	int err = 0;

	for (size_t i = 1; i < n && !err; i++) {
		const uint64_t from = g->events[i - 1].e.time, to = g->events[i].e.time;

		if (to - from < silence_ns)
			continue;
		g->silences++;
		g->silent_ns += to - from;
		for (uint16_t cpu = 0; cpu < g->n_cpus && !err; cpu++) {
			struct vs_event lost = {.time = from, .cpu = cpu, .type = VS_EVENT_LOST};

			ev_set_lost_end(&lost, to);
			if (g->started[cpu])
				err = event_push(g, &lost, false);
		}
	}
	if (!err && g->n_events > n)
		qsort(g->events, g->n_events, sizeof(*g->events), time_order);
	return err;
}

/*
 * Of a thread that no KVM event was understood of, nobody knows when it was in the guest: not even
 * from its switch to the CPU until the first event that was not understood.
 */
static int unread_mark(struct gather *g)
{
	const size_t n = g->n_events;
	uint64_t next[GATHER_CPUS] = {0}, after[GATHER_CPUS] = {0}; /* the CPU's next two times */
	int err = 0;

	for (size_t i = n; g->torn && i-- > 0 && !err;) {
		const struct vs_event e = g->events[i].e;
		const struct gather_thread *t =
			e.type == VS_EVENT_SCHED_SWITCH ? gather_thread_find(g, e.pid2) : NULL;
		struct vs_event lost = {.time = e.time, .cpu = e.cpu, .type = VS_EVENT_LOST};

		if (next[e.cpu] != e.time) {
			after[e.cpu] = next[e.cpu];
			next[e.cpu] = e.time;
		}
		if (!t || !t->kvm || t->kvm_read)
			continue;
		ev_set_lost_end(&lost, after[e.cpu]);
		err = event_push(g, &lost, false);
	}
	if (!err && g->n_events > n)
		qsort(g->events, g->n_events, sizeof(*g->events), time_order);
	return err;
}

/* Sets the waker of each wake-up. sched_wakeup is emitted by the task that carries the wake-up out,
 * the sched_waking before it by the task that requested it. If a recording has only sched_waking,
 * these events are its wake-ups. */
static int wakers_name(struct gather *g)
{
	size_t slots = 2, kept = 0;
	struct waker *wakers;
	bool wakeups = false, wakings = false;

	for (size_t i = 0; i < g->n_events; i++) {
		wakings |= g->events[i].waking;
		wakeups |= !g->events[i].waking && g->events[i].e.type == VS_EVENT_SCHED_WAKEUP;
	}
	if (!wakings || !wakeups)
		return 0;
	while (slots < 2 * g->n_threads + 2)
		slots *= 2;
	wakers = calloc(slots, sizeof(*wakers));
	if (!wakers)
		return -ENOMEM;
	for (size_t i = 0; i < g->n_events; i++) {
		struct gather_event *x = &g->events[i];
		size_t at = ((uint32_t)x->e.pid * 2654435761u) & (slots - 1);

		if (x->e.type == VS_EVENT_SCHED_WAKEUP && x->e.pid) {
			while (wakers[at].tid && wakers[at].tid != x->e.pid)
				at = (at + 1) & (slots - 1);
			if (x->waking)
				wakers[at] = (struct waker){x->e.pid, x->e.pid2};
			else if (wakers[at].tid)
				x->e.pid2 = wakers[at].waker;
		}
		if (!x->waking)
			g->events[kept++] = *x;
	}
	g->n_events = kept;
	free(wakers);
	return 0;
}

/*
 * Linux 4.18 writes each state one bit too high (bpf/perf/perf_tracepoint.c). The idle task, which
 * never sleeps, then seems to. A preempted task has its own bit, which reads as runnable.
 */
static void states_correct(struct gather *g)
{
	bool shifted = false;

	for (size_t i = 0; i < g->n_events && !shifted; i++) {
		const struct vs_event *e = &g->events[i].e;

		shifted = e->type == VS_EVENT_SCHED_SWITCH && !e->pid &&
			  ev_sched_switch_state(e) == VS_TASK_INTERRUPTIBLE;
	}
	for (size_t i = 0; i < g->n_events && shifted; i++) {
		struct vs_event *e = &g->events[i].e;
		const uint64_t state = ev_sched_switch_state(e);

		if (e->type != VS_EVENT_SCHED_SWITCH || !state)
			continue;
		/* The bit of an idle kernel thread is the one above a parked task's. */
		ev_set_sched_switch_state(e, state & VS_TASK_IDLE ? VS_TASK_PARKED : state >> 1);
		g->states_shifted++;
	}
}

/* Gives each hit its values: a USER event, and as many USER_MORE events as it needs. */
static int others_expand(struct gather *g)
{
	struct gather_event *out;
	uint64_t values[VS_USER_VALUES_MAX];
	size_t n = 0, more;

	if (!g->other)
		return 0;
	if (__builtin_mul_overflow(g->other, VS_USER_VALUES_MAX / 2 - 1, &more))
		return -ENOMEM;
	out = calloc(g->n_events + more, sizeof(*out));
	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < g->n_events; i++) {
		struct vs_event *e = &out[n].e;
		size_t n_values;

		out[n++] = g->events[i];
		e->seq = (vs_u32)(n - 1);
		if (e->type != VS_EVENT_USER)
			continue;
		n_values = other_events_values(g->others, ev_user_id(e), ev_user_first(e), values);
		ev_set_user_first(e, values[0]);
		ev_set_user_second(e, values[1]);
		for (size_t k = 2; k < n_values; k += 2) {
			struct vs_event *m = &out[n].e;

			*m = (struct vs_event){.time = e->time,
					       .cpu = e->cpu,
					       .type = VS_EVENT_USER_MORE,
					       .pid = e->pid,
					       .seq = (vs_u32)n};
			ev_set_user_more_id(m, ev_user_id(e));
			ev_set_user_more_part(m, (uint32_t)(k / 2));
			ev_set_user_more_first(m, values[k]);
			ev_set_user_more_second(m, k + 1 < n_values ? values[k + 1] : 0);
			n++;
		}
	}
	free(g->events);
	g->events = out;
	g->n_events = n;
	g->capacity = n;
	return 0;
}

int gather_finish(struct gather *g)
{
	int err;

	if (!g->n_events)
		return 0;
	qsort(g->events, g->n_events, sizeof(*g->events), time_order);
	states_correct(g);
	err = wakers_name(g);
	if (!err)
		err = unread_mark(g);
	if (!err)
		err = silences_mark(g);
	return err ? err : others_expand(g);
}
