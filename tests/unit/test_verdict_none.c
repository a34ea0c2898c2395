/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests stories without a stall, stalls that have not ended, and ticks and handlers that were
 * not recorded. */
#include "tests/unit/verdict_story.h"

static void computes(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 2200000, 50);
	ADD(t, WAKEUP(VM, 2199000, 0, 60, 50, 0));
	ADD(t, SWITCH(VM, 2200000, 0, 50, 60, 0));
}

static void computes_under_steal(struct tale *t)
{
	computes(t);
	for (int64_t at = 205000; at < 2190000; at += 100000)
		tale_away(t, at, at + 7000, VS_TASK_RUNNING, 500);
}

static void computes_under_exits(struct tale *t)
{
	computes(t);
	for (int64_t at = 205000; at < 2190000; at += 1000) {
		ADD(t, KVM(at, 0, EXIT, TID0, 1 | 1ull << 32));
		ADD(t, KVM(at + 40, 0, ENTRY, TID0, 0));
	}
}

static void idles(struct tale *t)
{
	tale_begin(t);
	ADD(t, SWITCH(VM, 201000, 0, 50, 0, 1));
	tale_away(t, 202000, 2200000, VS_TASK_INTERRUPTIBLE, 0);
	ADD(t, SWITCH(VM, 2200100, 0, 0, 42, 0));
}

static void idles_without_agent(struct tale *t)
{
	t->n = t->n_vmm = 0;
	ADD(t, SWITCH(HOST, 0, 0, 0, TID0, 0));
	tale_away(t, 202000, 2200000, VS_TASK_INTERRUPTIBLE, 0);
	ADD(t, SWITCH(HOST, 2300000, 0, TID0, 0, 1));
}

static void computes_without_agent(struct tale *t)
{
	t->n = t->n_vmm = 0;
	ADD(t, SWITCH(HOST, 0, 0, 0, TID0, 0));
	ADD(t, SWITCH(HOST, 2300000, 0, TID0, 0, 1));
}

static void computes_without_host(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 2200000, 50);
	ADD(t, SWITCH(VM, 2200000, 0, 50, 60, 0));
	for (size_t i = 0; i < t->n; i++) {
		if (t->events[i].source == HOST)
			t->events[i--] = t->events[--t->n];
	}
}

static void switches_all_the_time(struct tale *t)
{
	tale_begin(t);
	for (int64_t at = 210000; at < 2000000; at += 20000) {
		ADD(t, SWITCH(VM, at, 0, 50, 42, 0));
		ADD(t, SWITCH(VM, at + 10000, 0, 42, 50, 0));
	}
	tale_away(t, 500000, 580000, VS_TASK_RUNNING, 500); /* shorter than asked for */
}

static void loses_guest_events(struct tale *t)
{
	/* 500 ms without an event, because they were lost: no stretch is proven. */
	tale_begin(t);
	tale_ticks(t, 204000, 250000, 50);
	ADD(t, WAKEUP(VM, 240000, 0, 60, 50, 0));
	ADD(t, LOST(VM, 750000, 0));
	ADD(t, SWITCH(VM, 750000, 0, 50, 60, 0));
	ADD(t, SWITCH(VM, 760000, 0, 60, 42, 1));
}

static const struct {
	const char *name;
	void (*emit)(struct tale *t);
	size_t healthy; /* stretches listed by --all */
} decoys[] = {
	{"computes for 2 s, nothing waits", computes, 2},
	{"computes for 2 s, the host takes 7 % in short pieces", computes_under_steal, 2},
	{"computes for 2 s with many exits", computes_under_exits, 2},
	{"idles for 2 s", idles, 1},
	{"idles for 2 s, no agent", idles_without_agent, 0},
	{"computes for 2 s, no agent", computes_without_agent, 0},
	{"computes for 2 s, no host capture", computes_without_host, 2},
	{"switches, and a preemption below the threshold", switches_all_the_time, 1},
	{"loses its events for 500 ms", loses_guest_events, 1},
};

/* A task on a CPU that never ticked while it was watched denies another for 610 ms. */
static struct report *spin_report(bool handlers_counted)
{
	struct report_options options = {.than_ns = 100000000};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);
	struct report *r;

	script_vm(m, 2, "tcg");
	if (handlers_counted)
		assert_int_equal(model_handlers_counted(m, VM), 0);
	tale_begin(&tale);
	ADD(&tale, SWITCH(HOST, 0, 1, 0, TID1, 0));
	ADD(&tale, SWITCH(VM, 1, 1, 7, 0, 1));
	ADD(&tale, SWITCH(VM, 200000, 1, 0, 60, 0));
	tale_ticks(&tale, 204000, 800000, 50);
	ADD(&tale, SWITCH(VM, 800000, 1, 60, 0, 1));
	ADD(&tale, SWITCH(VM, 810000, 0, 50, 42, 1));
	tale_play(&tale, m);
	model_finish(m);
	r = report_builder_finish(b);
	report_builder_free(b);
	model_free(m);
	assert_int_equal(r->n_incidents, 1);
	return r;
}

/* It is judged by the rate of its neighbour. */
static void missing_ticks_are_seen_on_a_cpu_that_had_none(void **state)
{
	struct report *r = spin_report(false);

	(void)state;
	assert_int_equal(r->incidents[0].guest_cpu, 1);
	assert_int_equal(r->incidents[0].verdict, VERDICT_GUEST_SPIN);
	assert_false(r->incidents[0].missing & 1u << MISSING_HANDLERS);
	report_free(r);
}

/* Handlers that were only counted may have been a storm. */
static void short_handlers_untold_leave_a_doubt_and_are_named(void **state)
{
	struct report *r = spin_report(true);

	(void)state;
	assert_int_equal(r->incidents[0].verdict, VERDICT_GUEST_SPIN);
	assert_int_equal(r->incidents[0].confidence, CONFIDENCE_LIKELY);
	assert_true(r->incidents[0].missing & 1u << MISSING_HANDLERS);
	report_free(r);
}

static void what_is_no_stall_raises_no_incident(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(decoys); k++) {
		struct report *r = judge(decoys[k].emit, false);

		print_message("  %s\n", decoys[k].name);
		if (r->n_incidents)
			fail_msg("%s: %s", decoys[k].name, because_text(&r->incidents[0]).text);
		report_free(r);
		r = judge(decoys[k].emit, true);
		assert_int_equal(r->n_incidents, decoys[k].healthy);
		for (size_t i = 0; i < r->n_incidents; i++) {
			assert_true(r->incidents[i].healthy);
		}
		report_free(r);
	}
}

static void an_open_stall_is_seen_before_it_ends(void **state)
{
	static const struct timeline_event stop[] = {SIGNAL(299900, QEMU, 900, 19),
						     SWITCH(HOST, 300000, 0, TID0, 0, 0x104)};
	struct report_options options = {.than_ns = 100000000};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);
	struct incident ongoing[4];

	(void)state;
	script_vm(m, 1, "tcg");
	tale_begin(&tale);
	tale_play(&tale, m);
	assert_int_equal(report_builder_ongoing(b, ongoing, 4), 0);
	script_run(m, stop, COUNT(stop));
	model_advance(m, (struct host_ns){390000000});
	assert_int_equal(report_builder_ongoing(b, ongoing, 4), 0);
	model_advance(m, (struct host_ns){410000000});
	assert_int_equal(report_builder_ongoing(b, ongoing, 4), 1);
	assert_int_equal(ongoing[0].verdict, VERDICT_VM_PAUSED);
	assert_true(ongoing[0].ongoing);
	assert_int_equal(ongoing[0].end.ns - ongoing[0].begin.ns, 110000000);
	assert_incident_balances(&ongoing[0]);
	report_builder_free(b);
	model_free(m);
}

struct live {
	size_t reported;
	struct host_ns at;
	enum verdict verdict;
	size_t n_stacks;
	struct model *m;
};

static void live_incident(void *context, const struct report *r)
{
	struct live *live = context;

	live->reported++;
	live->at = model_now(live->m);
	live->verdict = r->incidents[0].verdict;
	live->n_stacks = r->n_stacks;
}

static void live_incidents_come_within_a_second(void **state)
{
	struct live live = {0};
	struct report_options options = {
		.than_ns = 100000000, .incident = live_incident, .context = &live};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);

	(void)state;
	live.m = m;
	script_vm(m, 1, "tcg");
	stacks(m);
	big_lock(&tale);
	tale_play(&tale, m);
	for (int64_t ms = 620; ms < 2000 && !live.reported; ms += 20)
		model_advance(m, (struct host_ns){ms * 1000000});
	assert_int_equal(live.reported, 1);
	assert_true(live.at.ns < 1610000000);
	assert_int_equal(live.verdict, VERDICT_VMM_LOCK);
	assert_int_equal(live.n_stacks, 1);
	report_builder_free(b);
	model_free(m);
}

static void a_stop_that_outlasts_the_recording_is_ongoing(void **state)
{
	struct report_options options = {.than_ns = 100000000};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);
	struct report *r;

	(void)state;
	script_vm(m, 1, "tcg");
	tale_begin(&tale);
	ADD(&tale, SIGNAL(299900, QEMU, 900, 19));
	ADD(&tale, SWITCH(HOST, 300000, 0, TID0, 0, 0x104));
	ADD(&tale, SWITCH(HOST, 900000, 1, 5, 6, 0));
	tale_play(&tale, m);
	model_finish(m);
	r = report_builder_finish(b);
	assert_int_equal(r->n_incidents, 1);
	assert_true(r->incidents[0].ongoing);
	assert_int_equal(r->incidents[0].verdict, VERDICT_VM_PAUSED);
	assert_balances(r);
	report_free(r);
	report_builder_free(b);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_ticks_are_seen_on_a_cpu_that_had_none),
		cmocka_unit_test(short_handlers_untold_leave_a_doubt_and_are_named),
		cmocka_unit_test(what_is_no_stall_raises_no_incident),
		cmocka_unit_test(an_open_stall_is_seen_before_it_ends),
		cmocka_unit_test(live_incidents_come_within_a_second),
		cmocka_unit_test(a_stop_that_outlasts_the_recording_is_ongoing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
