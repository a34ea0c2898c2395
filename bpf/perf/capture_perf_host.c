/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of the perf backend that only a host capture uses. A filter of perf cannot select the
 * tasks that hold a CPU for which a followed thread waits. So the capture receives every switch of
 * every CPU and discards those that concern no followed thread (perf_follow.h). The kernel filters
 * the other events (perf_rows.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/perf/capture_perf.h"
#include "clock/sample.h"
#include "bpf/perf/perf_chosen.h"
#include "bpf/perf/perf_follow.h"
#include "bpf/perf/perf_rows.h"
#include "bpf/perf/perf_stacks.h"
#include "bpf/capture/task_scan.h"

enum { NAMES_PER_READ = 256 }; /* few, so that rings do not fill up while names are read */

/* A queue of which some records have been replayed. */
struct merge_input {
	struct perf_queue *queue;
	size_t taken;
	uint64_t time; /* of the oldest record that was not replayed */
	uint16_t cpu;
};

struct perf_host {
	struct perf_follow *follow;
	struct perf_rows *rows;
	struct perf_chosen *chosen;
	struct perf_stacks *stacks; /* NULL: not wanted */
	struct merge_input *inputs;
	struct merge_input *
		*heap; /* queues with records that were not replayed, the oldest first */
	size_t n_inputs, inputs_capacity, n_heap;
	bool *unreported; /* by CPU: perf sees all its switches, so they are not reported twice */
	size_t names;
};

/* ---- calls of the replay ---- */

static void on_emit(void *context, const struct vs_event *event)
{
	struct capture_perf *c = context;
	struct perf_cpu_state *cpu = &c->cpus[event->cpu];

	perf_queue_emit(&cpu->queue, event, (uint32_t)cpu->lost);
	cpu->lost = 0;
}

static void on_missed(void *context, uint16_t cpu)
{
	((struct capture_perf *)context)->cpus[cpu].lost++;
}

static void on_slept(void *context, const struct vs_event *event, const struct task *task,
		     enum vs_stack_role role, bool sampled)
{
	const struct perf_host *h = ((struct capture_perf *)context)->host;

	if (h->stacks)
		perf_stacks_slept(h->stacks, event, task, role, sampled);
}

static void on_woke(void *context, const struct vs_event *event, const struct task *woken,
		    const struct task *waker)
{
	const struct perf_host *h = ((struct capture_perf *)context)->host;

	if (h->stacks)
		perf_stacks_woke(h->stacks, event, woken, waker);
}

/* ---- life cycle ---- */

static void on_task(void *context, pid_t tid, pid_t tgid, const char comm[16])
{
	struct capture_perf *c = context;

	perf_follow_name(c->host->follow, tid, tgid, comm);
	if (++c->host->names % NAMES_PER_READ == 0)
		capture_perf_read(c);
}

int perf_host_open(struct capture_perf *c, char *why, size_t why_bytes)
{
	const struct perf_follow_sink sink = {on_emit, on_missed, on_slept, on_woke, c};
	struct perf_host *h = calloc(1, sizeof(*h));
	int error;

	snprintf(why, why_bytes, "out of memory");
	if (!h)
		return -ENOMEM;
	c->host = h;
	h->follow = perf_follow_new(&sink, c->options.wait_threshold_ns);
	h->rows = perf_rows_new(c);
	h->chosen = perf_chosen_new(c);
	h->unreported = calloc(c->n_cpus, sizeof(*h->unreported));
	if (c->options.stacks)
		h->stacks = perf_stacks_new(c);
	if (!h->follow || !h->rows || !h->chosen || !h->unreported ||
	    (c->options.stacks && !h->stacks))
		return -ENOMEM;
	error = task_scan(on_task, c);
	if (error)
		snprintf(why, why_bytes, "/proc: %s", strerror(-error));
	return error;
}

void perf_host_close(struct capture_perf *c)
{
	struct perf_host *h = c->host;

	if (!h)
		return;
	perf_stacks_free(h->stacks);
	perf_chosen_free(h->chosen);
	perf_rows_free(h->rows);
	perf_follow_free(h->follow);
	free(h->inputs);
	free(h->heap);
	free(h->unreported);
	free(h);
	c->host = NULL;
}

void perf_host_cpu_open(struct capture_perf *c, size_t cpu)
{
	c->host->unreported[cpu] = false;
	perf_rows_cpu_open(c->host->rows, cpu);
	perf_chosen_cpu_open(c->host->chosen, cpu);
	if (c->host->stacks)
		perf_stacks_cpu_open(c->host->stacks, cpu);
}

void perf_host_cpu_close(struct capture_perf *c, size_t cpu)
{
	perf_rows_cpu_close(c->host->rows, cpu);
	perf_chosen_cpu_close(c->host->chosen, cpu);
	if (c->host->stacks)
		perf_stacks_cpu_close(c->host->stacks, cpu);
}

int perf_host_add(struct capture_perf *c, pid_t tid, pid_t tgid, uint32_t vm, bool is_vcpu)
{
	struct perf_host *h = c->host;
	int error;

	perf_rows_cover(h->rows, tid, tgid, is_vcpu);
	error = perf_follow_add(h->follow, clock_monotonic_ns(), tid, tgid, vm, is_vcpu);
	if (!error && is_vcpu && h->stacks)
		error = perf_stacks_watch(h->stacks, tid);
	return error;
}

int perf_host_remove(struct capture_perf *c, pid_t tid)
{
	return perf_follow_remove(c->host->follow, clock_monotonic_ns(), tid);
}

/* ---- replay, in the order of time ---- */

static void heap_sift(struct perf_host *h, size_t at)
{
	for (;;) {
		size_t first = at;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < h->n_heap; child++) {
			if (h->heap[child]->time < h->heap[first]->time)
				first = child;
		}
		if (first == at)
			return;
		struct merge_input *swap = h->heap[at];

		h->heap[at] = h->heap[first];
		h->heap[first] = swap;
		at = first;
	}
}

static bool inputs_reserve(struct perf_host *h, size_t n)
{
	struct merge_input *inputs;
	struct merge_input **heap;

	if (n <= h->inputs_capacity)
		return true;
	inputs = realloc(h->inputs, n * sizeof(*inputs));
	if (inputs)
		h->inputs = inputs;
	heap = realloc(h->heap, n * sizeof(struct merge_input *));
	if (heap)
		h->heap = heap;
	if (inputs && heap)
		h->inputs_capacity = n;
	return inputs && heap;
}

/* Puts the queues that have records of the right age into the heap. Returns false without memory.
 */
static bool inputs_gather(struct capture_perf *c, uint64_t cutoff)
{
	struct perf_host *h = c->host;
	const size_t n = c->n_cpus + perf_rows_n_inputs(h->rows) + perf_chosen_n_inputs(h->chosen);
	struct perf_input **others;
	size_t n_others;

	if (!inputs_reserve(h, n))
		return false;
	others = calloc(n, sizeof(struct perf_input *));
	if (!others)
		return false;
	n_others = perf_rows_inputs(h->rows, others);
	n_others += perf_chosen_inputs(h->chosen, others + n_others);
	h->n_inputs = 0;
	h->n_heap = 0;
	for (size_t i = 0; i < c->n_cpus; i++)
		h->inputs[h->n_inputs++] =
			(struct merge_input){.queue = &c->cpus[i].queue, .cpu = (uint16_t)i};
	for (size_t i = 0; i < n_others; i++)
		h->inputs[h->n_inputs++] =
			(struct merge_input){.queue = &others[i]->queue, .cpu = others[i]->cpu};
	free(others);
	for (size_t i = 0; i < h->n_inputs; i++) {
		const struct vs_event *oldest = perf_queue_oldest(h->inputs[i].queue, 0, cutoff);

		if (!oldest)
			continue;
		h->inputs[i].time = oldest->time;
		h->heap[h->n_heap++] = &h->inputs[i];
	}
	for (size_t i = h->n_heap / 2; i > 0; i--)
		heap_sift(h, i - 1);
	return true;
}

static void lost_before(struct capture_perf *c, uint16_t cpu, uint32_t n)
{
	c->cpus[cpu].lost += n;
	if (n)
		perf_follow_lost(c->host->follow, cpu);
}

static void switches_choose(struct capture_perf *c)
{
	for (size_t cpu = 0; cpu < c->n_cpus; cpu++) {
		const bool sees_all = perf_follow_sees_all(c->host->follow, cpu);

		if (c->cpus[cpu].ring && sees_all != c->host->unreported[cpu]) {
			c->host->unreported[cpu] = sees_all;
			perf_ring_switches_report(c->cpus[cpu].ring, !sees_all);
		}
	}
}

/* Replays the records of one hit together, so that they stay next to each other. */
static void hit_replay(struct capture_perf *c, struct merge_input *input,
		       const struct vs_event *event, uint64_t cutoff)
{
	struct perf_host *h = c->host;
	const struct vs_event hit = *event;
	const struct task *followed;
	struct vs_event limited;
	bool taken;

	perf_follow_until(h->follow, hit.time);
	followed = perf_follow_find(h->follow, hit.pid);
	taken = perf_chosen_take(h->chosen, &hit, followed, &limited);
	if (taken) {
		perf_follow_announce(h->follow, &hit, hit.pid);
		if (limited.type)
			on_emit(c, &limited);
		on_emit(c, &hit);
	}
	for (;;) {
		const struct vs_event *more =
			perf_queue_oldest(input->queue, input->taken + 1, cutoff);

		if (!more || more->type != VS_EVENT_USER_MORE)
			return;
		lost_before(c, input->cpu, more->seq);
		if (taken)
			on_emit(c, more);
		input->taken++;
	}
}

void perf_host_replay(struct capture_perf *c, uint64_t cutoff)
{
	struct perf_host *h = c->host;

	if (!inputs_gather(c, cutoff))
		return; /* the records wait */
	while (h->n_heap) {
		struct merge_input *input = h->heap[0];
		const struct vs_event *event =
			perf_queue_oldest(input->queue, input->taken, cutoff);

		lost_before(c, input->cpu, event->seq);
		if (event->type == VS_EVENT_USER)
			hit_replay(c, input, event, cutoff);
		else
			perf_follow_record(h->follow, event);
		event = perf_queue_oldest(input->queue, ++input->taken, cutoff);
		if (event)
			input->time = event->time;
		else
			h->heap[0] = h->heap[--h->n_heap];
		heap_sift(h, 0);
	}
	perf_follow_until(h->follow, cutoff);
	for (size_t i = 0; i < h->n_inputs; i++) {
		struct perf_queue *q = h->inputs[i].queue;

		perf_queue_drop_waiting(q, h->inputs[i].taken);
		/* The next record may come much later. */
		if (!q->waiting.n) {
			lost_before(c, h->inputs[i].cpu, q->lost);
			q->lost = 0;
		}
	}
	switches_choose(c);
	if (h->stacks)
		perf_stacks_tidy(h->stacks, h->follow, cutoff);
}

bool perf_host_late(struct capture_perf *c, const struct vs_event *event)
{
	if (event->type == PERF_SWITCHED_IN)
		return false; /* if this switch shows a loss, the next one does, too */
	/* It is unknown which task ran on the CPU until the next switch. */
	if (event->type == VS_EVENT_SCHED_SWITCH)
		perf_follow_lost(c->host->follow, event->cpu);
	return perf_follow_concerns(c->host->follow, event);
}

void perf_host_read(struct capture_perf *c)
{
	perf_rows_read(c->host->rows);
	perf_chosen_read(c->host->chosen);
}

void perf_host_drain(struct capture_perf *c, const struct capture_sink *sink)
{
	if (c->host->stacks)
		perf_stacks_deliver(c->host->stacks, sink);
}

int perf_host_wait_threshold(struct capture_perf *c, uint64_t ns)
{
	if (c->host)
		perf_follow_threshold(c->host->follow, ns);
	return c->host ? 0 : -ENOTSUP;
}

uint64_t perf_host_missed(const struct capture_perf *c)
{
	return perf_follow_unseen_wakeups(c->host->follow);
}

void perf_host_stats(const struct capture_perf *c, struct capture_host_stats *out)
{
	const struct perf_host *h = c->host;

	out->tracepoints = perf_rows_n_tracepoints(h->rows);
	out->threads = perf_follow_threads(h->follow);
	out->threads_waiting = perf_follow_waiting(h->follow, SIZE_MAX);
	out->threads_unfollowed = perf_follow_unfollowed(h->follow);
	out->stacks_dropped = h->stacks ? perf_stacks_dropped(h->stacks) : 0;
}

struct perf_chosen *perf_host_chosen(const struct capture_perf *c)
{
	return c->host->chosen;
}

long perf_host_waiting(const struct capture_perf *c, size_t cpu)
{
	return perf_follow_waiting(c->host->follow, cpu);
}
