/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests properties of the model over random histories.
 *
 *   - For any input (garbage, losses, any order), spans abut and sum to the covered time, and
 *     the breakdown of every reported interval sums to its duration.
 *   - The model's statements are true: a small scheduler moves threads between pCPUs, a share
 *     of its events is lost, and every span that is not unknown must agree with the scheduler
 *     at each instant.
 */
#include "tests/unit/model_script.h"
#include "tests/unit/balance.h"

#include <stdlib.h>

#include "host-collector/analyze/stall/builder.h"

enum { PCPUS = 3, THREADS = 4, GUEST_CPUS = 2, STEPS = 3000, RUNS = 200 };

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

/* ---- spans abut ---- */

struct sums {
	int64_t vcpu_end[THREADS], vcpu_begin[THREADS], vcpu_sum[THREADS];
	int64_t guest_end[GUEST_CPUS], guest_begin[GUEST_CPUS], guest_sum[GUEST_CPUS];
};

static void sum_vcpu(void *context, const struct vcpu_span *span)
{
	struct sums *s = context;
	uint32_t k = span->vcpu;

	assert_true(span->end.ns > span->begin.ns);
	assert_true(span->state < VCPU_STATE_COUNT);
	if (s->vcpu_end[k] < 0)
		s->vcpu_begin[k] = span->begin.ns;
	else
		assert_int_equal(span->begin.ns, s->vcpu_end[k]);
	s->vcpu_end[k] = span->end.ns;
	s->vcpu_sum[k] += span->end.ns - span->begin.ns;
}

static void sum_guest(void *context, const struct guest_span *span)
{
	struct sums *s = context;
	uint16_t k = span->cpu;

	assert_true(span->end.ns > span->begin.ns);
	if (s->guest_end[k] < 0)
		s->guest_begin[k] = span->begin.ns;
	else
		assert_int_equal(span->begin.ns, s->guest_end[k]);
	s->guest_end[k] = span->end.ns;
	s->guest_sum[k] += span->end.ns - span->begin.ns;
}

static struct model *model_of(const struct model_observer *observer)
{
	struct model *m = model_new();

	script_vm(m, THREADS, "kvm");
	assert_int_equal(model_observe(m, observer), 0);
	return m;
}

/* Any event at all, about the threads we know more often than not. */
static struct timeline_event garbage(int64_t t)
{
	static const uint16_t types[] = {0, 1,  2,  2,  2,  3,  3,  4,  5,  6,  7,  8,
					 9, 10, 11, 12, 13, 14, 15, 32, 33, 34, 63, 200};
	struct timeline_event e = {.t = {t}, .source = random_below(3) ? HOST : VM};

	e.event.type = types[random_below(COUNT(types))];
	e.event.cpu = (uint16_t)random_below(e.source == HOST ? PCPUS : GUEST_CPUS);
	e.event.pid =
		random_below(4) ? TID0 + (int)random_below(THREADS) : (int)random_below(200) - 9;
	e.event.pid2 = random_below(3) ? TID0 + (int)random_below(THREADS) : (int)random_below(200);
	e.event.arg0 = random_below(6) ? random_below(5) : random_state;
	e.event.arg1 = random_below(6) ? random_below(5) : random_state;
	return e;
}

static void garbage_never_breaks_the_sums(void **state)
{
	(void)state;
	for (uint64_t run = 0; run < RUNS; run++) {
		struct sums s;
		struct model_observer observer = {
			.vcpu_span = sum_vcpu, .guest_span = sum_guest, .context = &s};
		struct model *m = model_of(&observer);
		int64_t t = 1000, first_guest[GUEST_CPUS] = {-1, -1};

		memset(&s, 0xff, sizeof(s));
		memset(s.vcpu_sum, 0, sizeof(s.vcpu_sum));
		memset(s.guest_sum, 0, sizeof(s.guest_sum));
		random_state = run;
		for (int i = 0; i < STEPS; i++) {
			struct timeline_event e = garbage(t);

			if (e.source == VM && first_guest[e.event.cpu] < 0)
				first_guest[e.event.cpu] = t;
			(void)model_push(m, &e, 1);
			t += random_below(20) ? random_below(5000) : random_below(100000000);
			if (random_below(50) == 0)
				model_advance(m, (struct host_ns){t});
		}
		model_advance(m, (struct host_ns){t});
		model_finish(m);
		for (int k = 0; k < THREADS; k++) {
			assert_int_equal(s.vcpu_begin[k], 1000);
			assert_int_equal(s.vcpu_end[k], t);
			assert_int_equal(s.vcpu_sum[k], t - 1000);
		}
		for (int k = 0; k < GUEST_CPUS; k++) {
			assert_int_equal(s.guest_begin[k], first_guest[k]);
			assert_int_equal(s.guest_sum[k], t - first_guest[k]);
		}
		model_free(m);
	}
}

/* Live reports of all stretches. */
static void incident_check(void *context, const struct report *r)
{
	const struct incident *i = &r->incidents[0];
	size_t *reported = context;

	assert_balances(r);
	assert_true(i->end.ns - i->begin.ns >= 1000000);
	for (size_t k = 0; k < i->n_culprits; k++)
		assert_true(i->culprits[k].share_ns >= 0);
	++*reported;
}

static void ongoing_check(struct report_builder *b, int64_t now)
{
	struct incident ongoing[8];
	size_t n = report_builder_ongoing(b, ongoing, 8);

	for (size_t i = 0; i < n; i++) {
		struct report one = {.n_incidents = 1, .incidents = &ongoing[i]};
		size_t reported = 0;

		incident_check(&reported, &one);
		assert_int_equal(ongoing[i].end.ns, now);
	}
}

static void every_breakdown_sums_to_its_duration(void **state)
{
	size_t reported = 0;
	struct report_options options = {
		.than_ns = 1000000, .all = true, .incident = incident_check, .context = &reported};

	(void)state;
	for (uint64_t run = 0; run < RUNS; run++) {
		struct model *m = model_new();
		struct report_builder *b = report_builder_new(m, &options);
		struct report *r;
		int64_t t = 1000;

		script_vm(m, THREADS, "kvm");
		random_state = run + 7;
		for (int i = 0; i < STEPS; i++) {
			struct timeline_event e = garbage(t);

			(void)model_push(m, &e, 1);
			t += random_below(20) ? random_below(50000) : random_below(10000000);
			if (random_below(50) == 0) {
				model_advance(m, (struct host_ns){t});
				ongoing_check(b, t);
			}
		}
		model_finish(m);
		r = report_builder_finish(b);
		assert_non_null(r);
		assert_int_equal(r->n_vcpus, THREADS);
		assert_balances(r);
		report_free(r);
		report_builder_free(b);
		model_free(m);
	}
	print_message("  %zu stretches\n", reported);
	assert_true(reported > 1000);
}

/* ---- what is claimed is true ---- */

enum truth { RUNNING, READY, SLEEPING, STOPPED };

struct change {
	int64_t t;
	enum truth is;
};

struct world {
	enum truth is[THREADS];
	int pcpu[THREADS];
	int on[PCPUS]; /* thread, or -1: somebody else */
	int64_t last[PCPUS];
	bool dropping[PCPUS];
	size_t n_changes[THREADS];
	struct change changes[THREADS][4 * STEPS];
	unsigned lost_in_1000;
	struct model *model;
	int64_t known_ns, unknown_ns;
};

static void world_check(void *context, const struct vcpu_span *span)
{
	static const int allowed[VCPU_STATE_COUNT] = {
		[VCPU_GUEST] = 1 << RUNNING,   [VCPU_RUNNABLE] = 1 << READY,
		[VCPU_HALTED] = 1 << SLEEPING, [VCPU_BLOCKED] = 1 << SLEEPING,
		[VCPU_STOPPED] = 1 << STOPPED,
	};
	struct world *w = context;
	const struct change *changes = w->changes[span->vcpu];
	size_t n = w->n_changes[span->vcpu];

	if (span->state == VCPU_UNKNOWN) {
		w->unknown_ns += span->end.ns - span->begin.ns;
		return;
	}
	w->known_ns += span->end.ns - span->begin.ns;
	for (size_t i = 0; i < n; i++) {
		int64_t until = i + 1 < n ? changes[i + 1].t : INT64_MAX;

		if (until <= span->begin.ns || changes[i].t >= span->end.ns)
			continue;
		if (!(allowed[span->state] & 1 << changes[i].is))
			fail_msg("vCPU %u was not %s at %lld..%lld", span->vcpu,
				 vcpu_state_name(span->state), (long long)span->begin.ns,
				 (long long)span->end.ns);
	}
}

static void world_set(struct world *w, int thread, int64_t t, enum truth is)
{
	w->is[thread] = is;
	w->changes[thread][w->n_changes[thread]++] = (struct change){t, is};
}

/* Emits an event, or loses it. A gap is told as a real stream tells it: where it began, as soon as
 * the merge reaches that point, which is before anything that happened later on other CPUs. */
static void world_emit(struct world *w, int64_t t, struct timeline_event e)
{
	int cpu = e.event.cpu;

	e.t.ns = t;
	if (random_below(1000) < w->lost_in_1000) {
		struct timeline_event lost = LOST(HOST, 0, 0);

		lost.t.ns = w->model ? model_now(w->model).ns : t;
		lost.event.cpu = (uint16_t)cpu;
		lost.event.time = 1;
		lost.event.arg0 = 1;
		lost.event.arg1 = 2;
		assert_int_equal(model_push(w->model, &lost, 1), 0);
		w->dropping[cpu] = true;
		return;
	}
	w->dropping[cpu] = false;
	assert_int_equal(model_push(w->model, &e, 1), 0);
	w->last[cpu] = t;
}

static void world_switch(struct world *w, int64_t t, int cpu, int out, uint32_t state, int in)
{
	struct timeline_event e = SWITCH(HOST, 0, 0, 0, 0, 0);

	e.event.cpu = (uint16_t)cpu;
	e.event.pid = out < 0 ? 900 + cpu : TID0 + out;
	e.event.pid2 = in < 0 ? 900 + cpu : TID0 + in;
	e.event.arg0 = state;
	world_emit(w, t, e);
	if (out >= 0)
		world_set(w, out, t, state == 0 ? READY : state & 4 ? STOPPED : SLEEPING);
	if (in >= 0) {
		world_set(w, in, t, RUNNING);
		w->pcpu[in] = cpu;
	}
	w->on[cpu] = in;
}

static void world_step(struct world *w, int64_t t)
{
	static const uint32_t states[] = {0, 0, 1, 1, 2, 0x104};
	int thread = (int)random_below(THREADS), cpu = w->pcpu[thread];

	if (w->is[thread] == RUNNING) {
		int next = -1;

		for (int k = 0; k < THREADS; k++) {
			if (w->is[k] == READY && w->pcpu[k] == cpu)
				next = k;
		}
		world_switch(w, t, cpu, thread, states[random_below(COUNT(states))], next);
	} else if (w->is[thread] == READY) {
		if (random_below(3) == 0) {
			struct timeline_event e = MIGRATE(HOST, 0, 0, 0, 0, 0);
			int to = (int)random_below(PCPUS);

			e.event.cpu = (uint16_t)to;
			e.event.pid = TID0 + thread;
			e.event.arg0 = (uint64_t)cpu;
			e.event.arg1 = (uint64_t)to;
			world_emit(w, t, e);
			w->pcpu[thread] = to;
		} else {
			world_switch(w, t, cpu, w->on[cpu], 0, thread);
		}
	} else {
		struct timeline_event e = WAKEUP(HOST, 0, 0, 0, 5, 0);
		int to = (int)random_below(PCPUS);

		e.event.cpu = (uint16_t)random_below(PCPUS);
		e.event.pid = TID0 + thread;
		e.event.arg0 = (uint64_t)to;
		world_emit(w, t, e);
		world_set(w, thread, t, READY);
		w->pcpu[thread] = to;
	}
}

static struct world world;

static void world_run(uint64_t seed, unsigned lost_in_1000)
{
	struct model_observer observer = {.vcpu_span = world_check, .context = &world};
	int64_t t = 1000;

	memset(&world, 0, sizeof(world));
	world.lost_in_1000 = 0;
	world.model = model_of(&observer);
	random_state = seed;
	for (int k = 0; k < THREADS; k++) {
		world_set(&world, k, 0, SLEEPING);
		world.on[k % PCPUS] = -1;
	}
	for (int i = 0; i < STEPS; i++) {
		t += 1 + (random_below(20) ? random_below(100000) : random_below(50000000));
		world_step(&world, t);
		if (i == 50)
			world.lost_in_1000 = lost_in_1000;
	}
	model_advance(world.model, (struct host_ns){t});
	model_finish(world.model);
	model_free(world.model);
}

static void what_is_claimed_is_true(void **state)
{
	static const unsigned losses[] = {0, 10, 200};

	(void)state;
	for (size_t k = 0; k < COUNT(losses); k++) {
		int64_t known = 0, unknown = 0;

		for (uint64_t run = 0; run < RUNS; run++) {
			world_run(run * 3 + k, losses[k]);
			known += world.known_ns;
			unknown += world.unknown_ns;
		}
		print_message("  %u in 1000 events lost: %.2f %% of the time unknown\n", losses[k],
			      (double)unknown * 100 / (double)(known + unknown));
		assert_true(known > 0);
		if (losses[k] == 0)
			assert_true(unknown * 50 < known); /* only before the first events */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage_never_breaks_the_sums),
		cmocka_unit_test(every_breakdown_sums_to_its_duration),
		cmocka_unit_test(what_is_claimed_is_true),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
