/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf/perf_chosen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/arch/perf_registers.h"
#include "bpf/capture/event_limits.h"
#include "bpf/capture/event_pmu.h"
#include "bpf/perf/perf_hit.h"
#include "clock/sample.h"
#include "proto/event_fields.h"

enum {
	/* Room for the hits between two drains, of all CPUs. */
	EVENT_RINGS_BYTES = 4 << 20,
	CPU_RING_BYTES_MIN = 64 << 10,
	RING_RECORDS_MAX = 1 << 20, /* of one read */
};

struct chosen {
	uint32_t id; /* 0: the slot is free */
	struct capture_event event;
	struct perf_ring_event ring_event;
	struct perf_ring_probe probe;
	uint64_t vms;
	bool untraced;
	uint64_t until_ns; /* CLOCK_MONOTONIC; later hits do not count */
	bool detached;
	struct perf_input *inputs;  /* by CPU; NULL: the place is free */
	struct vs_user_state *cpus; /* by CPU, as of the replay */
	struct event_flood flood;
};

struct perf_chosen {
	struct capture_perf *c;
	uint32_t last_id;
	uint32_t all_per_window;   /* 0: no limit */
	struct vs_user_state *all; /* by CPU */
	struct chosen chosen[VS_USER_SLOTS_MAX];
	/* For on_record(). */
	struct chosen *reading;
	struct perf_input *reading_input;
};

struct perf_chosen *perf_chosen_new(struct capture_perf *c)
{
	struct perf_chosen *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->c = c;
	p->all = calloc(c->n_cpus, sizeof(*p->all));
	if (p->all)
		return p;
	free(p);
	return NULL;
}

/* Frees the place. */
static void chosen_fini(struct chosen *e, size_t n_cpus)
{
	for (size_t cpu = 0; e->inputs && cpu < n_cpus; cpu++) {
		perf_ring_close(e->inputs[cpu].ring);
		perf_queue_fini(&e->inputs[cpu].queue);
	}
	free(e->inputs);
	free(e->cpus);
	*e = (struct chosen){0};
}

void perf_chosen_free(struct perf_chosen *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < VS_USER_SLOTS_MAX; i++)
		chosen_fini(&p->chosen[i], p->c->n_cpus);
	free(p->all);
	free(p);
}

/* ---- opening ---- */

static int request_fill(struct chosen *e)
{
	struct event_pmu pmu;
	int error = event_pmu_find(&e->event, &pmu);

	if (error)
		return error;
	if (e->event.kind == USER_TRACEPOINT) {
		e->ring_event.id = (int)pmu.config;
		return 0;
	}
	if (!PERF_REGISTERS_MASK)
		return -ENOTSUP;
	e->probe = (struct perf_ring_probe){.type = pmu.type,
					    .config = pmu.config,
					    .config1 = pmu.config1,
					    .config2 = pmu.config2};
	e->ring_event.probe = &e->probe;
	return 0;
}

static int input_open(struct perf_chosen *p, struct chosen *e, size_t cpu)
{
	const struct perf_ring_options options = {
		.cpu = (int)cpu,
		.layout = e->ring_event.probe ? PERF_LAYOUT_PROBE : PERF_LAYOUT_PLAIN,
		.events = &e->ring_event,
		.n_events = 1,
		.page_count = capture_perf_ring_pages(EVENT_RINGS_BYTES / p->c->n_cpus >
								      CPU_RING_BYTES_MIN
							      ? EVENT_RINGS_BYTES / p->c->n_cpus
							      : CPU_RING_BYTES_MIN,
						      1),
	};
	char why[256];

	e->inputs[cpu].cpu = (uint16_t)cpu;
	return perf_ring_open(&options, &e->inputs[cpu].ring, why, sizeof(why));
}

static void inputs_close(struct perf_chosen *p, struct chosen *e)
{
	for (size_t cpu = 0; cpu < p->c->n_cpus; cpu++) {
		perf_ring_close(e->inputs[cpu].ring);
		e->inputs[cpu].ring = NULL;
	}
}

static int inputs_open(struct perf_chosen *p, struct chosen *e)
{
	int error = 0;

	for (size_t cpu = 0; cpu < p->c->n_cpus && !error; cpu++) {
		if (p->c->cpus[cpu].ring)
			error = input_open(p, e, cpu);
	}
	if (error)
		inputs_close(p, e);
	return error;
}

/* Opens the rings with the kernel's filter, or without it if the kernel refuses it and the filter
 * may be omitted. */
static int inputs_open_filtered(struct perf_chosen *p, struct chosen *e)
{
	int error;

	if (e->event.kernel_filter[0] && !e->ring_event.probe) {
		e->ring_event.filter = e->event.kernel_filter;
		error = inputs_open(p, e);
		if (error != -EINVAL)
			return error;
		e->ring_event.filter = NULL;
	}
	e->event.kernel_filter_exact = false;
	return perf_hit_can(&e->event) ? inputs_open(p, e) : -ENOTSUP;
}

/* ---- the calls of capture_event.h ---- */

static int chosen_open(struct perf_chosen *p, struct chosen *e)
{
	const size_t n_cpus = p->c->n_cpus;
	int error;

	if (!perf_hit_can(&e->event))
		return -ENOTSUP;
	e->inputs = calloc(n_cpus, sizeof(*e->inputs));
	e->cpus = calloc(n_cpus, sizeof(*e->cpus));
	if (!e->inputs || !e->cpus)
		return -ENOMEM;
	error = request_fill(e);
	return error ? error : inputs_open_filtered(p, e);
}

int perf_chosen_add(struct perf_chosen *p, const struct capture_event *event, uint64_t vms,
		    uint32_t *id)
{
	struct chosen *e = p->chosen;
	int error;

	while (e < p->chosen + VS_USER_SLOTS_MAX && e->id)
		e++;
	if (e == p->chosen + VS_USER_SLOTS_MAX || p->last_id == VS_USER_ID_MAX)
		return -ENOSPC;
	*e = (struct chosen){
		.event = *event, .vms = vms, .untraced = event->untraced, .until_ns = UINT64_MAX};
	error = chosen_open(p, e);
	if (error)
		chosen_fini(e, p->c->n_cpus);
	else
		*id = e->id = ++p->last_id;
	return error;
}

static struct chosen *chosen_of(struct perf_chosen *p, uint32_t id)
{
	for (size_t i = 0; id && i < VS_USER_SLOTS_MAX; i++) {
		if (p->chosen[i].id == id)
			return &p->chosen[i];
	}
	return NULL;
}

void perf_chosen_vms(struct perf_chosen *p, uint32_t id, uint64_t vms)
{
	struct chosen *e = chosen_of(p, id);

	if (!e)
		return;
	e->vms = vms;
	if (!vms)
		chosen_fini(e, p->c->n_cpus);
}

void perf_chosen_stop(struct perf_chosen *p, uint32_t id)
{
	struct chosen *e = chosen_of(p, id);

	if (e && e->until_ns == UINT64_MAX)
		e->until_ns = clock_monotonic_ns();
}

void perf_chosen_limit(struct perf_chosen *p, uint32_t rate)
{
	p->all_per_window = rate ? event_limit_per_window(rate) : 0;
}

int perf_chosen_state(struct perf_chosen *p, uint32_t id, uint64_t now_ms,
		      struct capture_event_state *out)
{
	struct chosen *e = chosen_of(p, id);

	if (!e)
		return -ENOENT;
	*out = (struct capture_event_state){0};
	for (size_t cpu = 0; cpu < p->c->n_cpus; cpu++) {
		out->kept += e->cpus[cpu].kept;
		out->limited += e->cpus[cpu].limited;
	}
	if (event_flood_check(&e->flood, out, now_ms) && !e->detached) {
		inputs_close(p, e);
		e->detached = true;
	}
	out->detached = e->detached;
	return 0;
}

void perf_chosen_cpu_open(struct perf_chosen *p, size_t cpu)
{
	for (struct chosen *e = p->chosen; e < p->chosen + VS_USER_SLOTS_MAX; e++) {
		if (e->id && !e->detached)
			input_open(p, e, cpu); /* the CPU may be offline again */
	}
}

/* ---- reading ---- */

static size_t n_records(const struct capture_event *e)
{
	return e->n_values > 2 ? (e->n_values + 1) / 2 : 1;
}

static void hit_push(const struct perf_chosen *p, const struct perf_record *record)
{
	const struct capture_event *from = &p->reading->event;
	const uint16_t cpu = p->reading_input->cpu;

	for (size_t i = 0; i < n_records(from); i++) {
		const struct vs_event event = {
			.time = record->time,
			.cpu = cpu,
			.type = i ? VS_EVENT_USER_MORE : VS_EVENT_USER,
			.pid = record->tid,
			.pid2 = (vs_s32)(p->reading->id | (uint32_t)i << 16),
			.arg0 = 2 * i < from->n_values
					? perf_hit_value(record, cpu, &from->values[2 * i])
					: 0,
			.arg1 = 2 * i + 1 < from->n_values
					? perf_hit_value(record, cpu, &from->values[2 * i + 1])
					: 0,
		};

		perf_queue_push(&p->reading_input->queue, &event);
	}
}

static void on_record(void *context, const struct perf_record *record)
{
	struct perf_chosen *p = context;
	const struct chosen *e = p->reading;
	struct perf_queue *q = &p->reading_input->queue;

	if (record->lost)
		perf_queue_lose(q, record->lost * n_records(&e->event));
	else if (record->time > e->until_ns ||
		 !perf_hit_is_wanted(record, p->reading_input->cpu, &e->event))
		return;
	else if (record->time > p->c->cutoff)
		hit_push(p, record);
	else
		perf_queue_lose(q, n_records(&e->event));
}

static void input_read(struct perf_chosen *p, struct chosen *e, size_t cpu)
{
	if (!e->id || !e->inputs[cpu].ring)
		return;
	p->reading = e;
	p->reading_input = &e->inputs[cpu];
	perf_ring_read(e->inputs[cpu].ring, RING_RECORDS_MAX, on_record, p);
}

void perf_chosen_read(struct perf_chosen *p)
{
	for (struct chosen *e = p->chosen; e < p->chosen + VS_USER_SLOTS_MAX; e++) {
		for (size_t cpu = 0; e->id && cpu < p->c->n_cpus; cpu++)
			input_read(p, e, cpu);
	}
}

void perf_chosen_cpu_close(struct perf_chosen *p, size_t cpu)
{
	for (struct chosen *e = p->chosen; e < p->chosen + VS_USER_SLOTS_MAX; e++) {
		if (!e->id)
			continue;
		input_read(p, e, cpu);
		perf_ring_close(e->inputs[cpu].ring);
		e->inputs[cpu].ring = NULL;
	}
}

size_t perf_chosen_n_inputs(const struct perf_chosen *p)
{
	size_t n = 0;

	for (size_t i = 0; i < VS_USER_SLOTS_MAX; i++)
		n += p->chosen[i].id ? p->c->n_cpus : 0;
	return n;
}

size_t perf_chosen_inputs(struct perf_chosen *p, struct perf_input **out)
{
	size_t n = 0;

	for (struct chosen *e = p->chosen; e < p->chosen + VS_USER_SLOTS_MAX; e++) {
		for (size_t cpu = 0; e->id && cpu < p->c->n_cpus; cpu++)
			out[n++] = &e->inputs[cpu];
	}
	return n;
}

/* ---- the replay ---- */

static bool window_has_room(struct vs_user_state *s, uint64_t window, uint32_t most)
{
	if (s->window != window) {
		s->window = window;
		s->taken = 0;
	}
	return s->taken < most;
}

static bool all_have_room(struct perf_chosen *p, uint16_t cpu, uint64_t window)
{
	if (!p->all_per_window)
		return true;
	if (!window_has_room(&p->all[cpu], window, p->all_per_window))
		return false;
	p->all[cpu].taken++;
	return true;
}

bool perf_chosen_take(struct perf_chosen *p, const struct vs_event *hit,
		      const struct task *followed, struct vs_event *limited)
{
	struct chosen *e = chosen_of(p, (uint32_t)ev_user_id(hit));
	const uint64_t window = hit->time >> VS_USER_WINDOW_LOG2_NS;
	struct vs_user_state *s;

	limited->type = 0;
	if (!e || (!e->untraced && !(followed && e->vms >> (followed->vm & 63) & 1)))
		return false;
	s = &e->cpus[hit->cpu];
	if (!window_has_room(s, window, event_limit_per_window(e->event.rate)) ||
	    !all_have_room(p, hit->cpu, window)) {
		if (!s->skipped++)
			s->skipped_ns = hit->time;
		s->limited++;
		return false;
	}
	s->taken++;
	s->kept++;
	if (s->skipped) {
		*limited = (struct vs_event){.time = hit->time,
					     .cpu = hit->cpu,
					     .type = VS_EVENT_USER_LIMITED,
					     .pid = hit->pid,
					     .pid2 = (vs_s32)e->id,
					     .arg0 = s->skipped,
					     .arg1 = hit->time - s->skipped_ns};
		s->skipped = 0;
	}
	return true;
}
