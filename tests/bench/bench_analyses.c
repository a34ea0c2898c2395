/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures how many events of a busy VM (busy_scene.h) the model and all analyses process per
 * second of CPU time, from the events of the timeline, and the share of each analysis in this time.
 * Then measures the same for the whole path of `report`, from frames to findings.
 *
 * Exit code 1: the model with all analyses processes fewer than 3 M events/s.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host-collector/analyze/stall/builder.h"
#include "host-collector/tables/figures.h"
#include "host-collector/model/model.h"
#include "host-collector/engine/pipeline.h"
#include "proto/recording.h"
#include "tests/bench/busy_scene.h"
#include "tests/bench/figure.h"

enum { EVENTS = 1000000, ROUNDS = 5, SLICE = 4096, STALL_NS = 100000000, LIST_MAX = 31 };

#define LIMIT_PER_S 3e6

static void must(bool holds)
{
	if (holds)
		return;
	fprintf(stderr, "bench_analyses: out of memory, or its own scene makes no sense\n");
	exit(1);
}

static void *stalls_open(struct model *m, const struct figures_options *unused)
{
	const struct report_options options = {.than_ns = STALL_NS};

	(void)unused;
	return report_builder_new(m, &options);
}

static void stalls_close(void *x)
{
	report_free(report_builder_finish(x));
	report_builder_free(x);
}

static const struct analysis stalls = {
	.name = "stalls and verdicts", .new = stalls_open, .free = stalls_close};

/* The analysis of stalls and those of the tables. */
struct list {
	unsigned n;
	const struct analysis *kinds[LIST_MAX];
	void *opened[LIST_MAX];
};

/* A set of analyses has one bit for each. */
enum { NONE = 0, ALL = (1u << LIST_MAX) - 1 };

static void analyses_list(struct list *a)
{
	a->kinds[a->n++] = &stalls;
	for (const struct analysis *const *what = analyses_all; *what; what++) {
		must(a->n < LIST_MAX);
		a->kinds[a->n++] = *what;
	}
}

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Creates the analyses of the set, with the most detailed options that a report can have. */
static void open_all(struct list *a, struct model *m, unsigned set)
{
	static const struct figures_options finest = {.per_vcpu = true, .per_pcpu = true};

	for (unsigned i = 0; i < a->n; i++) {
		a->opened[i] = set >> i & 1 ? a->kinds[i]->new (m, &finest) : NULL;
		must(a->opened[i] || !(set >> i & 1));
	}
}

static void finish_all(struct list *a)
{
	for (unsigned i = 0; i < a->n; i++) {
		if (a->opened[i] && a->kinds[i]->finish)
			a->kinds[i]->finish(a->opened[i]);
	}
}

static void close_all(struct list *a)
{
	for (unsigned i = 0; i < a->n; i++) {
		if (a->opened[i])
			a->kinds[i]->free(a->opened[i]);
	}
}

/* ---- the model and its analyses alone ---- */

static void vm_announce(struct model *m)
{
	static struct message_vm_info info = {.vm = SYNTH_VM, .name = "busy", .accelerator = "kvm"};
	struct message_cpu cpus[BUSY_VCPUS];

	info.qemu_pid = SYNTH_QEMU_PID;
	info.n_threads = BUSY_VCPUS;
	for (uint32_t i = 0; i < BUSY_VCPUS; i++) {
		cpus[i] = (struct message_cpu){.cpu = i, .apic_id = i};
		info.threads[i] =
			(struct message_vm_thread){.tid = (int32_t)(SYNTH_QEMU_PID + 1 + i),
						   .is_vcpu = true,
						   .vcpu = i,
						   .apic_id_known = true,
						   .apic_id = i};
	}
	must(!model_vm(m, &info));
	must(!model_guest_cpus(m, SYNTH_VM, cpus, BUSY_VCPUS));
}

static double model_s(struct list *a, const struct timeline_event *events, size_t n, unsigned set)
{
	struct model *m = model_new();
	double began, took;

	must(m);
	vm_announce(m);
	open_all(a, m, set);
	began = cpu_s();
	for (size_t i = 0; i < n; i++) {
		must(!model_push(m, &events[i], 1));
		if (i % SLICE == SLICE - 1)
			model_advance(m, events[i].t);
	}
	model_finish(m);
	finish_all(a);
	took = cpu_s() - began;
	close_all(a);
	model_free(m);
	return took;
}

static double best_model_s(struct list *a, const struct timeline_event *events, size_t n,
			   unsigned set)
{
	double best = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		double s = model_s(a, events, n, set);

		if (!round || s < best)
			best = s;
	}
	return best;
}

/* Prints the median of the rounds. Returns false if it misses the goal. */
static bool speed_print(const char *name, double goal, const double *s, size_t n)
{
	const struct figure f = {.name = name,
				 .unit = "M events/CPU-s",
				 .goal_is = goal > 0 ? FIGURE_AT_LEAST : FIGURE_NO_GOAL,
				 .goal = goal};
	double speeds[ROUNDS];

	for (unsigned round = 0; round < ROUNDS; round++)
		speeds[round] = (double)n / s[round] / 1e6;
	return figure_print(&f, speeds, ROUNDS);
}

/* ---- the whole way ---- */

struct frames {
	struct byte_buffer bytes;
	size_t n;
	struct entry {
		uint32_t source;
		uint64_t arrival;
		size_t at, len;
	} * entries;
};

static void frame_keep(void *context, uint32_t source, uint64_t arrival,
		       const struct frame_view *frame)
{
	struct frames *f = context;

	if (!(f->n & (f->n + 1)) || !f->entries) {
		f->entries = realloc(f->entries, 2 * (f->n + 1) * sizeof(*f->entries));
		must(f->entries);
	}
	f->entries[f->n++] = (struct entry){source, arrival, f->bytes.len, frame->len};
	must(!byte_buffer_append(&f->bytes, frame->bytes, frame->len));
}

static void frames_make(struct frames *f, const struct timeline_event *events, size_t n)
{
	const struct synth_options options = {
		.entry = frame_keep, .context = f, .guest_tsc_offset = 123456789};
	struct synth *s = synth_new(&options);

	must(s);
	for (size_t i = 0; i < n; i++) {
		const struct timeline_event *e = &events[i];

		synth_at(s, e->t.ns);
		if (e->source == VS_SOURCE_HOST)
			synth_host_event(s, e->event.cpu, e->event);
		else
			synth_guest_event(s, e->event.cpu, e->event);
	}
	synth_free(s);
}

static void frames_play(const struct frames *f, struct pipeline *p,
			int (*sink)(struct pipeline *, uint32_t, uint64_t,
				    const struct frame_view *))
{
	for (size_t i = 0; i < f->n; i++) {
		const struct entry *e = &f->entries[i];
		struct frame_view view;

		must(!frame_parse(f->bytes.data + e->at, e->len, &view));
		must(!sink(p, e->source, e->arrival, &view));
	}
}

static double report_s(struct list *a, const struct frames *f, unsigned set)
{
	struct model *m = model_new();
	const struct pipeline_options options = {.model = m};
	struct pipeline *p = pipeline_new(&options);
	double began, took;

	must(m && p);
	open_all(a, m, set);
	began = cpu_s();
	frames_play(f, p, pipeline_learn);
	must(!pipeline_learned(p));
	frames_play(f, p, pipeline_frame);
	must(!pipeline_finish(p));
	finish_all(a);
	took = cpu_s() - began;
	close_all(a);
	pipeline_free(p);
	model_free(m);
	return took;
}

/* Stores the seconds of each round in `rounds`. Returns the shortest. */
static double rounds_s(struct list *a, const struct timeline_event *events, const struct frames *f,
		       size_t n, double *rounds)
{
	double best = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		rounds[round] = f ? report_s(a, f, ALL) : model_s(a, events, n, ALL);
		if (!round || rounds[round] < best)
			best = rounds[round];
	}
	return best;
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : EVENTS, n_host = 0;
	struct timeline_event *events = n ? busy_scene_new(n) : NULL;
	struct frames frames = {0};
	struct list a = {0};
	double all, alone, sum, whole, rounds[ROUNDS];
	bool good;

	must(events);
	analyses_list(&a);
	for (size_t i = 0; i < n; i++)
		n_host += events[i].source == VS_SOURCE_HOST;
	all = rounds_s(&a, events, NULL, n, rounds);
	good = speed_print("all analyses at once, from the timeline", LIMIT_PER_S / 1e6, rounds, n);
	alone = sum = best_model_s(&a, events, n, NONE);
	printf("all analyses at once: %.0f ns for each of %zu events, %.0f %% the host's; least of %d "
	       "rounds, of which\n",
	       all / (double)n * 1e9, n, 100.0 * (double)n_host / (double)n, ROUNDS);
	printf("  %5.1f %%  %4.0f ns  model, for all of them\n", 100 * alone / all,
	       alone / (double)n * 1e9);
	for (unsigned i = 0; i < a.n; i++) {
		double own = best_model_s(&a, events, n, 1u << i) - alone;

		sum += own;
		printf("  %5.1f %%  %4.0f ns  %s\n", 100 * own / all, own / (double)n * 1e9,
		       a.kinds[i]->name);
	}
	printf("  %5.1f %%  %4.0f ns  what they cost more together than one by one\n",
	       100 * (all - sum) / all, (all - sum) / (double)n * 1e9);
	frames_make(&frames, events, n);
	whole = rounds_s(&a, events, &frames, n, rounds);
	printf("from frames, as report does: %.0f %% of the time is before the model\n",
	       100 * (whole - all) / whole);
	speed_print("all analyses at once, from frames", 0, rounds, n);
	byte_buffer_fini(&frames.bytes);
	free(frames.entries);
	free(events);
	return !good;
}
