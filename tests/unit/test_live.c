/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scenes played frame by frame, as `watch` gets them: what is said, and when, by the scene's clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/cli/live.h"
#include "tests/unit/synth.h"

#define MS 1000000ll
enum { VCPU0 = SYNTH_QEMU_PID + 1, HOG = 4242, TASK = 77, OTHER = 88, HZ_PER_MS = 2500000 };

struct said {
	int64_t at_ns; /* by the scene's clock */
	char line[640];
};

struct stage {
	struct live *live;
	struct synth *synth;
	int64_t now_ns;
	size_t n_said, n_incidents;
	struct said said[64];
	struct incident incidents[16];
	int64_t told_ns[16];
};

static void on_line(void *context, const char *line)
{
	struct stage *s = context;

	assert_true(s->n_said < 64);
	s->said[s->n_said].at_ns = s->now_ns;
	snprintf(s->said[s->n_said++].line, sizeof(s->said[0].line), "%s", line);
}

static void on_ongoing(void *context, const struct incident *incident, const char *vm_name)
{
	char line[640];

	snprintf(line, sizeof(line), "ongoing: %s CPU %u %s", vm_name, incident->guest_cpu,
		 verdict_name(incident->verdict));
	assert_true(incident->ongoing);
	on_line(context, line);
}

static void on_incident(void *context, const struct report *report)
{
	struct stage *s = context;

	assert_int_equal(report->n_incidents, 1);
	assert_true(s->n_incidents < 16);
	s->told_ns[s->n_incidents] = s->now_ns;
	s->incidents[s->n_incidents++] = report->incidents[0];
}

static void on_frame(void *context, uint32_t source, uint64_t arrival_tsc,
		     const struct frame_view *frame)
{
	struct stage *s = context;

	/* The present is the latest arrival: nothing is told before its time. */
	if ((int64_t)((arrival_tsc - synth_host_tsc0) / HZ_PER_MS) * MS > s->now_ns)
		s->now_ns = (int64_t)((arrival_tsc - synth_host_tsc0) / HZ_PER_MS) * MS;
	assert_int_equal(live_frame(s->live, source, arrival_tsc, frame), 0);
	assert_int_equal(live_tick(s->live, arrival_tsc), 0);
}

static int setup(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));
	const struct live_options options = {.than_ns = 100 * MS,
					     .incident = on_incident,
					     .ongoing = on_ongoing,
					     .line = on_line,
					     .context = s};
	const struct synth_options scene = {
		.entry = on_frame, .context = s, .guest_cpus = 1, .guest_tsc_offset = 424242};

	s->live = live_new(&options);
	assert_non_null(s->live);
	s->synth = synth_new(&scene);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct stage *s = *state;

	live_free(s->live);
	free(s);
	return 0;
}

/* The guest's CPU 0 and its vCPU are busy, two tasks take turns. */
static void busy(struct synth *s, int64_t begin, int64_t end)
{
	for (int64_t t = begin, i = 0; t < end; t += 4 * MS, i++) {
		synth_at(s, t);
		synth_guest_event(s, 0,
				  (struct vs_event){.type = VS_EVENT_VECTOR_ENTRY,
						    .pid = i & 1 ? TASK : OTHER,
						    .arg0 = VS_VECTOR_LOCAL_TIMER});
		synth_guest_event(s, 0,
				  (struct vs_event){.type = VS_EVENT_VECTOR_EXIT,
						    .pid = i & 1 ? TASK : OTHER,
						    .arg0 = VS_VECTOR_LOCAL_TIMER});
		synth_guest_event(
			s, 0, i & 1 ? synth_switch(TASK, 0, OTHER) : synth_switch(OTHER, 0, TASK));
	}
}

static const struct said *said_find(const struct stage *s, const char *what)
{
	for (size_t i = 0; i < s->n_said; i++) {
		if (strstr(s->said[i].line, what))
			return &s->said[i];
	}
	return NULL;
}

static void scene_begin(struct stage *s)
{
	synth_at(s->synth, 1 * MS);
	synth_host_event(s->synth, 0, synth_name(VCPU0, SYNTH_QEMU_PID, "CPU 0/KVM"));
	synth_host_event(s->synth, 0, synth_name(HOG, HOG, "hog"));
	synth_host_event(s->synth, 0, synth_switch(0, 0, VCPU0));
	synth_guest_event(s->synth, 0, synth_name(TASK, TASK, "victim"));
	synth_guest_event(s->synth, 0, synth_name(OTHER, OTHER, "other"));
	busy(s->synth, 2 * MS, 1000 * MS);
}

static void a_stall_is_told_while_it_lasts_and_when_it_ends(void **state)
{
	struct stage *s = *state;
	const struct incident *i = &s->incidents[0];
	const struct said *said;
	struct live_summary summary;
	int64_t sum = 0;

	scene_begin(s);
	synth_at(s->synth, 1000 * MS);
	synth_host_event(s->synth, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_guest_silent(s->synth, true);
	synth_at(s->synth, 3000 * MS);
	synth_host_event(s->synth, 0, synth_switch(HOG, 1, VCPU0));
	synth_guest_silent(s->synth, false);
	busy(s->synth, 3001 * MS, 5000 * MS);
	synth_free(s->synth);
	assert_int_equal(live_finish(s->live), 0);

	said = said_find(s, "ongoing: web1 CPU 0");
	assert_non_null(said);
	assert_true(said->at_ns >= 1100 * MS && said->at_ns < 1400 * MS);
	assert_non_null(strstr(said->line, "vcpu_not_scheduled"));
	said = said_find(s, "its agent has been silent");
	assert_non_null(said);
	assert_true(said->at_ns > 1500 * MS && said->at_ns < 1800 * MS);
	said = said_find(s, "its agent is back after");
	assert_non_null(said);
	assert_true(said->at_ns > 3000 * MS && said->at_ns < 3300 * MS);

	assert_int_equal(s->n_incidents, 1);
	assert_int_equal(i->verdict, VERDICT_VCPU_NOT_SCHEDULED);
	assert_true(s->told_ns[0] < 4000 * MS);
	for (size_t k = 0; k < VCPU_STATE_COUNT; k++)
		sum += i->breakdown_ns[k];
	assert_int_equal(sum, i->end.ns - i->begin.ns);
	assert_true(llabs(i->breakdown_ns[VCPU_RUNNABLE] - 2000 * MS) < MS);
	assert_true(i->dmesg_known);
	assert_true(llabs((int64_t)i->begin_dmesg_ns - (100000 + 1000) * MS) < 10 * MS);
	live_summarise(s->live, &summary);
	assert_int_equal(summary.incidents, 1);
	assert_int_equal(summary.lost, 0);
	assert_int_equal(summary.late, 0);
}

static void each_stall_is_told_once(void **state)
{
	struct stage *s = *state;
	size_t ongoing = 0;

	scene_begin(s);
	for (int64_t t = 1000; t < 4000; t += 1000) {
		synth_at(s->synth, t * MS);
		synth_host_event(s->synth, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
		synth_guest_silent(s->synth, true);
		synth_at(s->synth, (t + 400) * MS);
		synth_host_event(s->synth, 0, synth_switch(HOG, 1, VCPU0));
		synth_guest_silent(s->synth, false);
		busy(s->synth, (t + 401) * MS, (t + 1000) * MS);
	}
	synth_free(s->synth);
	assert_int_equal(live_finish(s->live), 0);
	for (size_t i = 0; i < s->n_said; i++)
		ongoing += strstr(s->said[i].line, "ongoing") != NULL;
	assert_int_equal(ongoing, 3);
	assert_int_equal(s->n_incidents, 3);
}

static void a_quiet_guest_is_not_talked_about(void **state)
{
	struct stage *s = *state;

	scene_begin(s);
	busy(s->synth, 1001 * MS, 3000 * MS);
	synth_free(s->synth);
	assert_int_equal(live_finish(s->live), 0);
	assert_int_equal(s->n_said, 0);
	assert_int_equal(s->n_incidents, 0);
}

static void what_lasts_at_the_end_is_told_as_ongoing(void **state)
{
	struct stage *s = *state;

	scene_begin(s);
	synth_at(s->synth, 1000 * MS);
	synth_host_event(s->synth, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_guest_silent(s->synth, true);
	synth_at(s->synth, 2000 * MS);
	synth_free(s->synth);
	assert_int_equal(live_finish(s->live), 0);
	assert_int_equal(s->n_incidents, 1);
	assert_true(s->incidents[0].ongoing);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_stall_is_told_while_it_lasts_and_when_it_ends,
						setup, teardown),
		cmocka_unit_test_setup_teardown(each_stall_is_told_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_quiet_guest_is_not_talked_about, setup, teardown),
		cmocka_unit_test_setup_teardown(what_lasts_at_the_end_is_told_as_ongoing, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
