/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests the triggers of the flight recorder other than stalls, with stories of which each instant
 * is known, and with simulated runs that are played as the daemon receives them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/daemon/triggers.h"
#include "host-collector/engine/live.h"
#include "host-collector/simulate/simulate.h"
#include "proto/recording.h"
#include "tests/unit/model_script.h"

#define SECOND 1000000000ll

struct reported {
	size_t n;
	struct trigger_firing firings[64];
};

static void on_fired(void *context, const struct trigger_firing *firing)
{
	struct reported *t = context;

	if (t->n < 64)
		t->firings[t->n++] = *firing;
}

static size_t count(const struct reported *t, enum trigger trigger)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->firings[i].trigger == trigger;
	return n;
}

/* ---- stories ---- */

struct story {
	struct model *model;
	struct triggers *triggers;
	struct reported reported;
};

static void story_begin(struct story *s)
{
	uint64_t limits[TRIGGER_COUNT];
	struct triggers_options options = {
		.limits = limits, .fired = on_fired, .context = &s->reported};

	memset(s, 0, sizeof(*s));
	trigger_limits_default(limits);
	s->model = model_new();
	assert_non_null(s->model);
	s->triggers = triggers_new(s->model, &options);
	assert_non_null(s->triggers);
	script_vm(s->model, 2, "kvm");
}

static void story_end(struct story *s)
{
	model_free(s->model);
	triggers_free(s->triggers);
}

enum { HOG = 500, PREEMPTED = VS_TASK_RUNNING };

/* The vCPU waits for its pCPU from 10 ms until `until_us`, first on one pCPU, then on another. */
static void waits_for_pcpu(struct story *s, int64_t until_us)
{
	const struct timeline_event events[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		SWITCH(HOST, 10000, 0, TID0, HOG, PREEMPTED),
		MIGRATE(HOST, until_us / 2, 1, TID0, 0, 1),
		SWITCH(HOST, until_us, 1, HOG, TID0, PREEMPTED),
		SWITCH(HOST, until_us + 2000, 1, TID0, HOG, PREEMPTED),
		SWITCH(HOST, until_us + 4000, 1, HOG, TID0, PREEMPTED),
	};

	script_run(s->model, events, COUNT(events));
	model_advance(s->model, (struct host_ns){until_us * 1000 + SECOND});
	model_finish(s->model);
}

static void a_long_wait_fires_once(void **unused)
{
	struct story s;

	(void)unused;
	story_begin(&s);
	waits_for_pcpu(&s, 1300000);
	assert_int_equal(s.reported.n, 1);
	assert_int_equal(s.reported.firings[0].trigger, TRIGGER_RUNNABLE);
	assert_int_equal(s.reported.firings[0].vm, VM);
	assert_string_equal(s.reported.firings[0].text, "vCPU 0 wanted a pCPU for 1290 ms");
	story_end(&s);
}

static void a_short_wait_does_not(void **unused)
{
	struct story s;

	(void)unused;
	story_begin(&s);
	waits_for_pcpu(&s, 900000);
	assert_int_equal(s.reported.n, 0);
	story_end(&s);
}

/* A wait that lasts fires its trigger before its end, and does not fire it again at its end. */
static void an_endless_wait_fires_while_it_lasts(void **unused)
{
	const struct timeline_event begin[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		SWITCH(HOST, 10000, 0, TID0, HOG, PREEMPTED),
	};
	const struct timeline_event end[] = {
		SWITCH(HOST, 15000000, 0, HOG, TID0, PREEMPTED),
		SWITCH(HOST, 15001000, 0, TID0, HOG, PREEMPTED),
	};
	struct story s;

	(void)unused;
	story_begin(&s);
	script_run(s.model, begin, COUNT(begin));
	/* An earlier span was delivered, so the vCPU is known. This span was not delivered. */
	for (int second = 1; second < 10; second++)
		model_advance(s.model, (struct host_ns){second * SECOND});
	assert_int_equal(s.reported.n, 0);
	model_advance(s.model, (struct host_ns){11 * SECOND});
	assert_int_equal(s.reported.n, 1);
	assert_non_null(strstr(s.reported.firings[0].text, "goes on"));
	model_advance(s.model, (struct host_ns){14 * SECOND});
	script_run(s.model, end, COUNT(end));
	model_advance(s.model, (struct host_ns){16 * SECOND});
	assert_int_equal(s.reported.n, 1);
	story_end(&s);
}

static void steal_fires_when_it_begins(void **unused)
{
	static const int64_t percent[] = {10, 60, 70, 20, 80}; /* of 10 s each */
	struct story s;

	(void)unused;
	story_begin(&s);
	for (size_t i = 0; i < COUNT(percent) * 10; i++) {
		struct activity_row row = {.vm = VM, .vcpu = 1};

		row.state_ns[VCPU_RUNNABLE] = percent[i / 10] * SECOND / 100;
		triggers_activity(s.triggers, &row, 1, SECOND);
	}
	assert_int_equal(count(&s.reported, TRIGGER_STEAL), 2);
	assert_string_equal(s.reported.firings[0].text,
			    "vCPU 1 wanted a pCPU in 60 % of the last 10.0 s");
	assert_non_null(strstr(s.reported.firings[1].text, "80 %"));
	story_end(&s);
}

static void an_interrupt_that_takes_long_fires(void **unused)
{
	struct activity_row row = {.vm = VM, .latency_known = true, .latency_ns = SECOND / 3};
	struct story s;

	(void)unused;
	story_begin(&s);
	triggers_activity(s.triggers, &row, 1, SECOND);
	assert_int_equal(s.reported.n, 0);
	row.latency_ns = SECOND / 2;
	triggers_activity(s.triggers, &row, 1, SECOND);
	assert_int_equal(count(&s.reported, TRIGGER_INTERRUPT), 1);
	story_end(&s);
}

static void the_guests_watchdogs_are_known(void **unused)
{
	static const struct {
		const char *line;
		size_t fires;
	} lines[] = {
		{"watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [stress-ng:1234]", 1},
		{"NMI watchdog: Watchdog detected hard LOCKUP on cpu 2", 1},
		{"rcu: INFO: rcu_preempt self-detected stall on CPU", 1},
		{"rcu: INFO: rcu_sched detected stalls on CPUs/tasks:", 1},
		{"rcu: rcu_preempt kthread starved for 2500 jiffies!", 1},
		{"INFO: task jbd2/vda1-8:245 blocked for more than 120 seconds.", 1},
		{"rcu: Hierarchical RCU implementation.", 0},
		{"NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.", 0},
		{"detected stall of a rcu", 0},
		{"", 0},
	};
	(void)unused;
	for (size_t i = 0; i < COUNT(lines); i++) {
		struct story s;

		story_begin(&s);
		triggers_log(s.triggers, VM, lines[i].line);
		if (count(&s.reported, TRIGGER_GUEST_WATCHDOG) != lines[i].fires)
			fail_msg("%s", lines[i].line);
		story_end(&s);
	}
}

/* ---- simulated runs ---- */

struct run {
	struct live *live;
	struct activity *activity;
	struct triggers *triggers;
	struct activity_row rows[64];
	struct host_ns looked;
	struct reported reported;
};

static void on_incident(void *context, const struct report *report)
{
	(void)context, (void)report;
}

static void on_ongoing(void *context, const struct incident *incident, const char *vm_name)
{
	(void)context, (void)incident, (void)vm_name;
}

static void on_line(void *context, const char *line)
{
	(void)context, (void)line;
}

/* Checks as flight.c does. */
static void look(struct run *r, struct host_ns now)
{
	long n = activity_look(r->activity, r->rows, 64);

	assert_true(n >= 0);
	triggers_activity(r->triggers, r->rows, (size_t)n,
			  r->looked.ns ? now.ns - r->looked.ns : 0);
	r->looked = now;
}

static void play(struct run *r, const char *path)
{
	struct recording_reader *reader;
	struct recording_entry entry;
	struct host_ns now;
	int more;

	assert_int_equal(recording_reader_open(path, &reader), 0);
	while ((more = recording_reader_next(reader, &entry)) > 0) {
		const struct frame_item item = frame_item_of(&entry.frame);

		assert_int_equal(live_frame(r->live, entry.source, entry.arrival_tsc, &item), 0);
		if (!entry.arrival_tsc)
			continue;
		assert_int_equal(live_tick(r->live, entry.arrival_tsc), 0);
		if (live_host_ns(r->live, entry.arrival_tsc, &now) &&
		    now.ns - r->looked.ns >= SECOND)
			look(r, now);
	}
	assert_int_equal(more, 0);
	assert_int_equal(live_finish(r->live), 0);
	look(r, (struct host_ns){r->looked.ns + SECOND});
	recording_reader_close(reader);
}

static void simulate_and_play(const char *scenario, int64_t for_ns, const uint64_t *limits,
			      struct reported *reported)
{
	char path[] = "/tmp/test_triggers.XXXXXX", truth[64], why[256];
	const struct live_options options = {.than_ns = 100000000,
					     .incident = on_incident,
					     .ongoing = on_ongoing,
					     .line = on_line};
	const struct simulate_options run = {.scenario = scenario_find(scenario),
					     .seed = 7,
					     .for_ns = for_ns,
					     .recording = path,
					     .truth = truth};
	static struct run r;
	struct triggers_options triggers = {
		.limits = limits, .fired = on_fired, .context = &r.reported};

	memset(&r, 0, sizeof(r));
	close(mkstemp(path));
	snprintf(truth, sizeof(truth), "%s.truth", path);
	if (simulate_run(&run, why, sizeof(why)))
		fail_msg("%s: %s", scenario, why);
	r.live = live_new(&options);
	assert_non_null(r.live);
	r.activity = activity_new(live_model(r.live));
	r.triggers = triggers_new(live_model(r.live), &triggers);
	assert_non_null(r.activity);
	assert_non_null(r.triggers);
	play(&r, path);
	live_free(r.live);
	activity_free(r.activity);
	triggers_free(r.triggers);
	unlink(path);
	unlink(truth);
	*reported = r.reported;
}

/* Each kind of trouble fires its trigger, with limits below what is simulated. */
static void simulated_trouble_fires(void **unused)
{
	static const struct {
		const char *scenario;
		int64_t for_ns;
		enum trigger trigger;
		uint64_t limit;
		const char *says;
	} cases[] = {
		{"storage_backend.pflash", 0, TRIGGER_BLOCKED, 100000000, "a block device"},
		{"demand_paging.userfault", 0, TRIGGER_BLOCKED, 100000000,
		 "a page that userspace provides"},
		{"vmm_lock", 0, TRIGGER_BLOCKED, 100000000, "QEMU's big lock"},
		{"vcpu_not_scheduled.realtime", 0, TRIGGER_RUNNABLE, 100000000, "wanted a pCPU"},
		{"cgroup_throttled", 0, TRIGGER_RUNNABLE, 50000000, "wanted a pCPU"},
		{"decoy.late_interrupts", 0, TRIGGER_INTERRUPT, 1000000, "to its handler"},
		{"decoy.steal", 25 * SECOND, TRIGGER_STEAL, 5, "% of the last 10"},
	};

	(void)unused;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t limits[TRIGGER_COUNT] = {0};
		struct reported reported;

		limits[cases[i].trigger] = cases[i].limit;
		simulate_and_play(cases[i].scenario, cases[i].for_ns, limits, &reported);
		if (!reported.n)
			fail_msg("%s: nothing fired", cases[i].scenario);
		for (size_t k = 0; k < reported.n; k++) {
			assert_int_equal(reported.firings[k].trigger, cases[i].trigger);
			if (!strstr(reported.firings[k].text, cases[i].says))
				fail_msg("%s: %s", cases[i].scenario, reported.firings[k].text);
		}
	}
}

static void a_trigger_that_is_off_does_not_fire(void **unused)
{
	const uint64_t limits[TRIGGER_COUNT] = {0};
	struct reported reported;

	(void)unused;
	simulate_and_play("storage_backend.pflash", 0, limits, &reported);
	assert_int_equal(reported.n, 0);
}

/* Healthy guests fire no trigger at the default limits. */
static void simulated_health_does_not(void **unused)
{
	static const char *const decoys[] = {
		"decoy.idle",          "decoy.compute", "decoy.busy",
		"decoy.server",        "decoy.steal",   "decoy.short_pauses",
		"decoy.short_io",      "decoy.irqs",    "decoy.short_lock_waits",
		"decoy.late_timer",    "decoy.nested",  "decoy.late_interrupts",
		"decoy.short_sections"};
	uint64_t limits[TRIGGER_COUNT];

	(void)unused;
	trigger_limits_default(limits);
	for (size_t i = 0; i < COUNT(decoys); i++) {
		struct reported reported;

		simulate_and_play(decoys[i], 0, limits, &reported);
		if (reported.n)
			fail_msg("%s: %s", decoys[i], reported.firings[0].text);
	}
}

static void names_are_found(void **unused)
{
	(void)unused;
	for (int t = 0; t < TRIGGER_COUNT; t++)
		assert_int_equal(trigger_find(trigger_name((enum trigger)t)), t);
	assert_true(trigger_find("stall") < 0);
	assert_true(trigger_find("") < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_wait_fires_once),
		cmocka_unit_test(a_short_wait_does_not),
		cmocka_unit_test(an_endless_wait_fires_while_it_lasts),
		cmocka_unit_test(steal_fires_when_it_begins),
		cmocka_unit_test(an_interrupt_that_takes_long_fires),
		cmocka_unit_test(the_guests_watchdogs_are_known),
		cmocka_unit_test(simulated_trouble_fires),
		cmocka_unit_test(a_trigger_that_is_off_does_not_fire),
		cmocka_unit_test(simulated_health_does_not),
		cmocka_unit_test(names_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
