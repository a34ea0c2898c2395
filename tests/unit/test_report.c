/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests `vcpuscope report` on written recordings: it finds scripted stalls with their verdict,
 * culprit and exact breakdown, and no stall in healthy scenes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <json.h>

#include "host-collector/cli/commands.h"
#include "proto/recording.h"
#include "tests/unit/synth.h"

#define MS 1000000ll
enum { VCPU0 = SYNTH_QEMU_PID + 1, HOG = 4242, KILLER = 5151, TASK = 77, OTHER = 88 };
enum { SIGSTOP_NUMBER = 19, SIGCONT_NUMBER = 18 };

struct fixture {
	char recording[64], output[72];
	struct synth *synth;
	struct json_object *report;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	strcpy(f->recording, "/tmp/test_report.XXXXXX");
	fd = mkstemp(f->recording);
	assert_true(fd >= 0);
	close(fd);
	snprintf(f->output, sizeof(f->output), "%s.out", f->recording);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	json_object_put(f->report);
	unlink(f->recording);
	unlink(f->output);
	free(f);
	return 0;
}

static void scene_new(struct fixture *f, struct synth_options options)
{
	options.path = f->recording;
	options.guest_cpus = 1;
	options.guest_tsc_offset = 987654321;
	f->synth = synth_new(&options);
	synth_at(f->synth, 1 * MS);
	synth_host_event(f->synth, 0, synth_name(VCPU0, SYNTH_QEMU_PID, "CPU 0/KVM"));
	synth_host_event(f->synth, 0, synth_name(HOG, HOG, "hog"));
	synth_host_event(f->synth, 0, synth_name(KILLER, KILLER, "killer"));
	synth_host_event(f->synth, 0, synth_switch(0, 0, VCPU0));
	synth_guest_event(f->synth, 0, synth_name(TASK, TASK, "spinner"));
	synth_guest_event(f->synth, 0, synth_name(OTHER, OTHER, "other"));
}

static void tick(struct synth *s, int32_t pid)
{
	struct vs_event e = {
		.type = VS_EVENT_VECTOR_ENTRY, .pid = pid, .arg0 = VS_VECTOR_LOCAL_TIMER};

	synth_guest_event(s, 0, e);
	e.type = VS_EVENT_VECTOR_EXIT;
	synth_guest_event(s, 0, e);
}

/* Two tasks take turns, a tick each. */
static void busy(struct synth *s, int64_t begin, int64_t end)
{
	for (int64_t t = begin, i = 0; t < end; t += 4 * MS, i++) {
		synth_at(s, t);
		tick(s, i & 1 ? TASK : OTHER);
		synth_guest_event(
			s, 0, i & 1 ? synth_switch(TASK, 0, OTHER) : synth_switch(OTHER, 0, TASK));
	}
}

static int run(struct fixture *f, const char *option)
{
	char *argv[] = {"report", f->recording, "--format",     "json",
			"-o",     f->output,    (char *)option, NULL};

	return command_report.run(&command_report, option ? 7 : 6, argv);
}

/* The report's incidents; the scene ends here. exit_code: of `report`. */
static struct json_object *incidents_of(struct fixture *f, const char *option, int exit_code)
{
	struct json_object *list;

	if (f->synth)
		synth_free(f->synth);
	f->synth = NULL;
	assert_int_equal(run(f, option), exit_code);
	json_object_put(f->report);
	f->report = json_object_from_file(f->output);
	assert_non_null(f->report);
	assert_true(json_object_object_get_ex(f->report, "incidents", &list));
	return list;
}

static struct json_object *incidents(struct fixture *f, const char *option)
{
	return incidents_of(f, option, COMMAND_OK);
}

static const char *text_of(struct json_object *o, const char *key)
{
	struct json_object *value;

	assert_true(json_object_object_get_ex(o, key, &value));
	return json_object_get_string(value);
}

static int64_t number_of(struct json_object *o, const char *key)
{
	struct json_object *value;

	assert_true(json_object_object_get_ex(o, key, &value));
	return json_object_get_int64(value);
}

/* Does a sentence of the report's headline hold this? */
static bool says(struct fixture *f, const char *text)
{
	struct json_object *lines;
	bool found = false;

	assert_true(json_object_object_get_ex(f->report, "headline", &lines));
	for (size_t i = 0; i < json_object_array_length(lines); i++)
		found |= strstr(json_object_get_string(json_object_array_get_idx(lines, i)),
				text) != NULL;
	for (size_t i = 0; !found && i < json_object_array_length(lines); i++)
		print_message("%s\n", json_object_get_string(json_object_array_get_idx(lines, i)));
	return found;
}

/* The one incident, which must have this verdict; *share: its time in this vCPU state. */
static struct json_object *only(struct json_object *list, const char *verdict, const char *state,
				int64_t *share)
{
	struct json_object *i, *breakdown;
	int64_t sum = 0;

	assert_int_equal(json_object_array_length(list), 1);
	i = json_object_array_get_idx(list, 0);
	assert_string_equal(text_of(i, "verdict"), verdict);
	assert_true(json_object_object_get_ex(i, "breakdown_ns", &breakdown));
	json_object_object_foreach(breakdown, key, value)
	{
		(void)key;
		sum += json_object_get_int64(value);
	}
	assert_int_equal(sum, number_of(i, "duration_ns"));
	assert_int_equal(number_of(i, "end_ns") - number_of(i, "begin_ns"), sum);
	*share = number_of(breakdown, state);
	return i;
}

static bool names_culprit(struct json_object *incident, const char *comm)
{
	struct json_object *culprits;

	assert_true(json_object_object_get_ex(incident, "culprits", &culprits));
	for (size_t i = 0; i < json_object_array_length(culprits); i++) {
		if (!strcmp(text_of(json_object_array_get_idx(culprits, i), "comm"), comm))
			return true;
	}
	return false;
}

static void a_stolen_pcpu_names_the_thief(void **state)
{
	struct fixture *f = *state;
	struct json_object *i;
	int64_t share;

	scene_new(f, (struct synth_options){0});
	busy(f->synth, 2 * MS, 1000 * MS);
	synth_at(f->synth, 1000 * MS);
	synth_host_event(f->synth, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_guest_silent(f->synth, true);
	synth_at(f->synth, 1500 * MS);
	synth_host_event(f->synth, 0, synth_switch(HOG, 1, VCPU0));
	synth_guest_silent(f->synth, false);
	busy(f->synth, 1501 * MS, 2500 * MS);
	i = only(incidents(f, NULL), "vcpu_not_scheduled", "runnable", &share);
	assert_true(llabs(share - 500 * MS) < MS / 10);
	assert_true(names_culprit(i, "hog"));
	assert_string_equal(text_of(i, "vm"), "web1");
	assert_string_equal(text_of(i, "confidence"), "decided");
	assert_true(llabs(number_of(i, "begin_ns") - synth_host_ns(998 * MS)) < 4 * MS);
}

static void a_stopped_vm_names_the_sender(void **state)
{
	struct fixture *f = *state;
	struct json_object *i;
	int64_t share;

	scene_new(f, (struct synth_options){0});
	busy(f->synth, 2 * MS, 1000 * MS);
	synth_at(f->synth, 1000 * MS);
	synth_host_event(f->synth, 1,
			 (struct vs_event){.type = VS_EVENT_SIGNAL,
					   .pid = SYNTH_QEMU_PID,
					   .pid2 = KILLER,
					   .arg0 = SIGSTOP_NUMBER,
					   .arg1 = SYNTH_QEMU_PID});
	synth_at(f->synth, 1000 * MS + 20000);
	synth_host_event(f->synth, 0, synth_switch(VCPU0, VS_TASK_STOPPED, 0));
	synth_guest_silent(f->synth, true);
	synth_at(f->synth, 1400 * MS);
	synth_host_event(f->synth, 1,
			 (struct vs_event){.type = VS_EVENT_SIGNAL,
					   .pid = SYNTH_QEMU_PID,
					   .pid2 = KILLER,
					   .arg0 = SIGCONT_NUMBER,
					   .arg1 = SYNTH_QEMU_PID});
	synth_host_event(f->synth, 1, synth_wakeup(VCPU0, KILLER, 0));
	synth_at(f->synth, 1400 * MS + 30000);
	synth_host_event(f->synth, 0, synth_switch(0, 0, VCPU0));
	synth_guest_silent(f->synth, false);
	busy(f->synth, 1401 * MS, 2500 * MS);
	i = only(incidents(f, NULL), "vm_paused", "stopped", &share);
	assert_true(llabs(share - 400 * MS) < MS / 2);
	assert_true(names_culprit(i, "killer"));
}

/* A stretch whose last waits are still kept back for their stacks when nothing happens for long. */
static void a_silence_right_after_a_stall_leaves_no_hole_in_it(void **state)
{
	struct fixture *f = *state;
	struct json_object *list, *breakdown;

	scene_new(f, (struct synth_options){0});
	busy(f->synth, 2 * MS, 1000 * MS);
	for (int64_t t = 1000; t < 1200; t += 20) {
		synth_at(f->synth, t * MS);
		synth_host_event(f->synth, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
		synth_at(f->synth, (t + 15) * MS);
		synth_host_event(f->synth, 0, synth_switch(HOG, 0, VCPU0));
	}
	synth_at(f->synth, 1201 * MS);
	synth_guest_event(f->synth, 0, synth_switch(OTHER, 0, TASK));
	synth_at(f->synth, 1202 * MS);
	synth_host_event(f->synth, 0, synth_switch(VCPU0, VS_TASK_STOPPED, 0));
	synth_guest_silent(f->synth, true);
	synth_at(f->synth, 3000 * MS);
	synth_host_event(f->synth, 0, synth_switch(0, 0, VCPU0));
	synth_guest_silent(f->synth, false);
	busy(f->synth, 3001 * MS, 4000 * MS);
	list = incidents(f, NULL);
	assert_int_equal(json_object_array_length(list), 2);
	for (size_t i = 0; i < 2; i++) {
		assert_true(json_object_object_get_ex(json_object_array_get_idx(list, i),
						      "breakdown_ns", &breakdown));
		assert_int_equal(number_of(breakdown, "unknown"), 0);
	}
}

/* From 1000 to 1600 ms the guest's task keeps its CPU, ticks go on. */
static void scene_spin(struct fixture *f, bool somebody_waits)
{
	scene_new(f, (struct synth_options){0});
	busy(f->synth, 2 * MS, 1000 * MS);
	synth_at(f->synth, 1000 * MS);
	/* the other one sleeps: nobody waits, unless it is woken */
	synth_guest_event(f->synth, 0, synth_switch(OTHER, VS_TASK_INTERRUPTIBLE, TASK));
	for (int64_t t = 1004; t < 1600; t += 4) {
		synth_at(f->synth, t * MS);
		tick(f->synth, TASK);
		if (t == 1020 && somebody_waits)
			synth_guest_event(f->synth, 0, synth_wakeup(OTHER, TASK, 0));
	}
	synth_at(f->synth, 1600 * MS);
	if (!somebody_waits)
		synth_guest_event(f->synth, 0, synth_wakeup(OTHER, TASK, 0));
	synth_guest_event(f->synth, 0, synth_switch(TASK, 0, OTHER));
	busy(f->synth, 1604 * MS, 2500 * MS);
}

static void a_guest_that_spins_is_named_with_its_task(void **state)
{
	struct fixture *f = *state;
	struct json_object *i, *task;
	int64_t share;

	scene_spin(f, true);
	i = only(incidents(f, NULL), "guest_spin", "guest", &share);
	assert_true(json_object_object_get_ex(i, "task", &task));
	assert_string_equal(text_of(task, "comm"), "spinner");
	assert_true(llabs(number_of(i, "duration_ns") - 600 * MS) < 5 * MS);
	assert_true(share > 590 * MS);
}

static void a_guest_that_computes_is_healthy(void **state)
{
	struct fixture *f = *state;
	struct json_object *list, *healthy;

	scene_spin(f, false);
	assert_int_equal(json_object_array_length(incidents(f, NULL)), 0);
	list = incidents(f, "--all");
	assert_int_equal(json_object_array_length(list), 1);
	assert_true(
		json_object_object_get_ex(json_object_array_get_idx(list, 0), "healthy", &healthy));
	assert_true(json_object_get_boolean(healthy));
}

static bool misses(struct json_object *incident, const char *what)
{
	struct json_object *missing;

	assert_true(json_object_object_get_ex(incident, "missing", &missing));
	for (size_t i = 0; i < json_object_array_length(missing); i++) {
		if (!strcmp(json_object_get_string(json_object_array_get_idx(missing, i)), what))
			return true;
	}
	return false;
}

static void without_the_guest_the_hosts_half_is_told_and_the_rest_is_missing(void **state)
{
	struct fixture *f = *state;
	struct json_object *i;
	int64_t share;

	scene_new(f, (struct synth_options){.no_guest = true});
	synth_at(f->synth, 1000 * MS);
	synth_host_event(f->synth, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_at(f->synth, 1500 * MS);
	synth_host_event(f->synth, 0, synth_switch(HOG, 1, VCPU0));
	synth_at(f->synth, 1900 * MS);
	i = only(incidents(f, NULL), "vcpu_not_scheduled", "runnable", &share);
	assert_true(llabs(share - 500 * MS) < MS / 10);
	assert_true(misses(i, "guest_events"));
}

static void without_the_host_the_guests_half_is_told_and_the_rest_is_missing(void **state)
{
	struct fixture *f = *state;
	struct json_object *list;

	scene_new(f, (struct synth_options){.no_host = true});
	busy(f->synth, 2 * MS, 1000 * MS);
	synth_guest_silent(f->synth, true);
	synth_at(f->synth, 1500 * MS);
	synth_guest_silent(f->synth, false);
	busy(f->synth, 1501 * MS, 2500 * MS);
	list = incidents_of(f, NULL, COMMAND_CANNOT_TELL);
	assert_int_equal(json_object_array_length(list), 1);
	assert_true(says(f, "Observed of VM vm1: nothing of its vCPUs on the host."));
	assert_true(misses(json_object_array_get_idx(list, 0), "host_events"));
	assert_string_not_equal(text_of(json_object_array_get_idx(list, 0), "confidence"),
				"decided");
}

static void what_happened_before_the_recording_began_is_told_only_if_asked_for(void **state)
{
	struct fixture *f = *state;
	struct synth_options options = {
		.path = f->recording, .guest_cpus = 1, .guest_tsc_offset = 987654321};

	f->synth = synth_new(&options);
	busy(f->synth, 2 * MS, 200 * MS);
	/* The agent's backlog holds a stall; the host is captured only later. */
	synth_guest_silent(f->synth, true);
	synth_at(f->synth, 700 * MS);
	synth_guest_silent(f->synth, false);
	busy(f->synth, 701 * MS, 1000 * MS);
	synth_host_event(f->synth, 0, synth_switch(0, 0, VCPU0));
	busy(f->synth, 1001 * MS, 2000 * MS);
	assert_int_equal(json_object_array_length(incidents_of(f, NULL, COMMAND_CANNOT_TELL)), 0);
	assert_int_equal(json_object_array_length(incidents_of(f, "--all", COMMAND_OK)), 1);
}

static void what_the_guest_did_after_its_last_word_is_not_guessed(void **state)
{
	struct fixture *f = *state;

	scene_new(f, (struct synth_options){0});
	busy(f->synth, 2 * MS, 1000 * MS);
	/* The agent ends; the guest and its vCPU go on, and the host sees the latter. */
	synth_at(f->synth, 1040 * MS);
	synth_guest_silent(f->synth, true);
	synth_at(f->synth, 3000 * MS);
	assert_int_equal(json_object_array_length(incidents_of(f, NULL, COMMAND_CANNOT_TELL)), 0);
	assert_true(says(f, "Cannot tell whether there was a stall of 100 ms or more in "));
	assert_true(says(f, ": no agent was heard."));
}

/* An agent is killed and started again 2 s later, by the same kernel: nothing was lost by anybody,
 * and the guest's stalls in between could not be seen. */
static void time_without_an_agent_is_a_gap(void **state)
{
	struct fixture *f = *state;
	struct json_object *coverage, *gaps, *gap;

	scene_new(f, (struct synth_options){0});
	busy(f->synth, 2 * MS, 1000 * MS);
	synth_guest_silent(f->synth, true);
	synth_at(f->synth, 3000 * MS);
	synth_guest_silent(f->synth, false);
	synth_guest_boot(f->synth, "guest", synth_guest_tsc(f->synth));
	busy(f->synth, 3001 * MS, 5000 * MS);
	assert_int_equal(json_object_array_length(incidents_of(f, NULL, COMMAND_CANNOT_TELL)), 0);
	assert_true(says(f, "Not observed of VM web1 in the guest: 20"));
	assert_true(says(f, "Guest events missing for 20"));
	assert_true(says(f, ": no agent was heard."));
	assert_true(json_object_object_get_ex(f->report, "coverage", &coverage));
	assert_true(json_object_object_get_ex(coverage, "gaps", &gaps));
	assert_int_equal(json_object_array_length(gaps), 1);
	gap = json_object_array_get_idx(gaps, 0);
	assert_string_equal(text_of(gap, "side"), "guest");
	assert_string_equal(text_of(gap, "reason"), "no_agent");
	assert_true(number_of(gap, "end_ns") - number_of(gap, "begin_ns") > 1900 * MS);
}

static void a_cut_recording_says_so(void **state)
{
	struct fixture *f = *state;
	struct json_object *complete;

	scene_new(f, (struct synth_options){0});
	busy(f->synth, 2 * MS, 1000 * MS);
	incidents(f, NULL);
	assert_true(json_object_object_get_ex(f->report, "complete", &complete));
	assert_true(json_object_get_boolean(complete));
	assert_int_equal(truncate(f->recording, 5000), 0);
	incidents(f, NULL);
	assert_true(json_object_object_get_ex(f->report, "complete", &complete));
	assert_false(json_object_get_boolean(complete));
}

static void trouble_is_an_exit_code(void **state)
{
	struct fixture *f = *state;
	char *missing[] = {"report", "/nonexistent.vcs", NULL};
	char *usage[] = {"report", "--than", "soon", "x.vcs", NULL};
	char *nowhere[] = {"report", f->recording, "-o", "/nonexistent/out", NULL};

	scene_new(f, (struct synth_options){0});
	synth_free(f->synth);
	assert_int_equal(command_report.run(&command_report, 2, missing), COMMAND_TROUBLE);
	assert_int_equal(command_report.run(&command_report, 4, usage), COMMAND_USAGE);
	assert_int_equal(command_report.run(&command_report, 4, nowhere), COMMAND_TROUBLE);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(a_stolen_pcpu_names_the_thief),
		CASE(a_stopped_vm_names_the_sender),
		CASE(a_silence_right_after_a_stall_leaves_no_hole_in_it),
		CASE(a_guest_that_spins_is_named_with_its_task),
		CASE(a_guest_that_computes_is_healthy),
		CASE(without_the_guest_the_hosts_half_is_told_and_the_rest_is_missing),
		CASE(without_the_host_the_guests_half_is_told_and_the_rest_is_missing),
		CASE(what_happened_before_the_recording_began_is_told_only_if_asked_for),
		CASE(what_the_guest_did_after_its_last_word_is_not_guessed),
		CASE(time_without_an_agent_is_a_gap),
		CASE(a_cut_recording_says_so),
		CASE(trouble_is_an_exit_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
