/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the notes of a report before its first stall: a guest that rebooted, a wall clock that
 * was set, unproven times. */
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
enum { VCPU0 = SYNTH_QEMU_PID + 1, HOG = 4242, TASK = 77, OTHER = 88 };

struct output {
	char *text;
	struct json_object *json, *tasks;
};

static char *file_read(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	assert_non_null(f);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

static struct output report_of(const char *recording)
{
	char path[80];
	char *text[] = {"report", (char *)recording, "-o", path, NULL};
	char *json[] = {"report", (char *)recording, "--format", "json", "-o", path, NULL};
	char *tasks[] = {"report", (char *)recording, "tasks", "--format", "json", "-o", path,
			 NULL};
	struct output o;

	snprintf(path, sizeof(path), "%s.out", recording);
	assert_int_equal(command_report.run(&command_report, 4, text), COMMAND_OK);
	o.text = file_read(path);
	assert_int_equal(command_report.run(&command_report, 6, json), COMMAND_OK);
	o.json = json_object_from_file(path);
	assert_non_null(o.json);
	assert_int_equal(command_report.run(&command_report, 7, tasks), COMMAND_OK);
	o.tasks = json_object_from_file(path);
	assert_non_null(o.tasks);
	unlink(path);
	unlink(recording);
	return o;
}

static void output_free(struct output *o)
{
	free(o->text);
	json_object_put(o->json);
	json_object_put(o->tasks);
}

static struct synth *scene_new(char *recording, struct synth_options options)
{
	struct synth *s;
	int fd = mkstemp(recording);

	assert_true(fd >= 0);
	close(fd);
	setenv("TZ", "UTC", 1);
	options.path = recording;
	options.guest_cpus = 1;
	s = synth_new(&options);
	synth_at(s, 1 * MS);
	synth_host_event(s, 0, synth_name(HOG, HOG, "hog"));
	synth_host_event(s, 0, synth_switch(0, 0, VCPU0));
	return s;
}

/* Two tasks take turns. */
static void busy(struct synth *s, int64_t begin_ms, int64_t end_ms)
{
	for (int64_t t = begin_ms * MS, i = 0; t < end_ms * MS; t += 4 * MS, i++) {
		synth_at(s, t);
		synth_guest_event(
			s, 0, i & 1 ? synth_switch(TASK, 0, OTHER) : synth_switch(OTHER, 0, TASK));
	}
}

static void hog(struct synth *s, int64_t begin_ms, int64_t end_ms)
{
	synth_at(s, begin_ms * MS);
	synth_host_event(s, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_guest_silent(s, true);
	synth_at(s, end_ms * MS);
	synth_host_event(s, 0, synth_switch(HOG, 1, VCPU0));
	synth_guest_silent(s, false);
}

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *value;

	assert_true(json_object_object_get_ex(o, key, &value));
	return value;
}

static int64_t number_of(struct json_object *o, const char *key)
{
	return json_object_get_int64(member(o, key));
}

/* How many rows of the tasks' table are of this name, all of them of `pid`. */
static unsigned rows_of(const struct output *o, int64_t pid, const char *name)
{
	struct json_object *rows = member(o->tasks, "rows");
	unsigned n = 0;

	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);

		n += number_of(row, "pid") == pid &&
		     !strcmp(json_object_get_string(member(row, "comm")), name);
	}
	return n;
}

/* A stall before, one after, and none where nobody knows what the guest did. */
static void a_reboot_is_named_and_is_no_stall(void **state)
{
	char recording[] = "/tmp/test_report_notes.XXXXXX";
	struct synth *s =
		scene_new(recording, (struct synth_options){.guest_tsc_offset = 5000000000});
	struct message_kernel_log *log = calloc(1, sizeof(*log));
	struct byte_buffer payload = {0};
	struct json_object *reboots, *incidents;
	struct output o;

	(void)state;
	synth_guest_event(s, 0, synth_name(TASK, TASK, "webserver"));
	busy(s, 2, 1000);
	hog(s, 1000, 1300);
	busy(s, 1301, 1800);
	log->n_lines = 1;
	snprintf(log->lines[0].text, sizeof(log->lines[0].text),
		 "Kernel panic - not syncing: sysrq triggered crash");
	assert_int_equal(message_kernel_log_pack(log, &payload), 0);
	synth_frame(s, SYNTH_VM, FRAME_KERNEL_LOG, payload.data, payload.len);
	byte_buffer_fini(&payload);
	free(log);
	synth_at(s, 1860 * MS);
	synth_guest_silent(s, true);
	synth_at(s, 4000 * MS);
	synth_guest_silent(s, false);
	synth_guest_boot(s, "another", 1500000000);
	synth_guest_event(s, 0, synth_name(TASK, TASK, "sleep"));
	busy(s, 4010, 5000);
	hog(s, 5000, 5400);
	busy(s, 5401, 6000);
	synth_free(s);
	o = report_of(recording);

	reboots = member(o.json, "reboots");
	assert_int_equal(json_object_array_length(reboots), 1);
	reboots = json_object_array_get_idx(reboots, 0);
	assert_string_equal(json_object_get_string(member(reboots, "vm")), "web1");
	assert_true(number_of(reboots, "after_ns") > synth_host_ns(1790 * MS));
	assert_true(number_of(reboots, "after_ns") < synth_host_ns(1900 * MS));
	assert_true(llabs(number_of(reboots, "until_ns") - synth_host_ns(4000 * MS)) < MS);
	assert_non_null(strstr(json_object_get_string(member(reboots, "why")), "Kernel panic"));
	incidents = member(o.json, "incidents");
	assert_int_equal(json_object_array_length(incidents), 2);
	for (size_t i = 0; i < 2; i++) {
		struct json_object *x = json_object_array_get_idx(incidents, i);

		assert_string_equal(json_object_get_string(member(x, "verdict")),
				    "vcpu_not_scheduled");
		assert_true(llabs(number_of(x, "begin_ns") -
				  synth_host_ns((i ? 5000 : 1000) * MS)) < 10 * MS);
	}
	assert_ptr_equal(strstr(o.text, "VM web1 rebooted between "), strstr(o.text, "VM web1"));
	assert_non_null(strstr(o.text, "Kernel panic"));
	assert_int_equal(rows_of(&o, TASK, "webserver"), 1);
	assert_int_equal(rows_of(&o, TASK, "sleep"), 1);
	output_free(&o);
}

/* Two stalls, 2 s apart; between them the wall clock is set ahead by an hour. */
static void the_wall_clock_of_a_stall_is_what_the_host_showed(void **state)
{
	char recording[] = "/tmp/test_report_notes.XXXXXX";
	struct synth *s = scene_new(recording, (struct synth_options){.guest_tsc_offset = 1000});
	struct json_object *steps;
	struct output o;

	(void)state;
	busy(s, 2, 1000);
	hog(s, 1000, 1300);
	busy(s, 1301, 2000);
	synth_wall_step(s, 3600 * 1000 * MS);
	busy(s, 2000, 3000);
	hog(s, 3000, 3300);
	busy(s, 3301, 4000);
	synth_free(s);
	o = report_of(recording);
	/* The scene begins at 22:13:20. */
	assert_non_null(strstr(o.text, "when     2023-11-14 22:13:20.99"));
	assert_non_null(strstr(o.text, "when     2023-11-14 23:13:22.99"));
	assert_ptr_equal(strstr(o.text, "The host's wall clock was set ahead by 3600"), o.text);
	steps = member(o.json, "wall_clock_steps");
	assert_int_equal(json_object_array_length(steps), 1);
	steps = json_object_array_get_idx(steps, 0);
	assert_int_equal(number_of(steps, "by_ns"), 3600 * 1000 * MS);
	assert_true(llabs(number_of(steps, "t_ns") - synth_host_ns(2000 * MS)) <= 50 * MS);
	output_free(&o);
}

static void times_that_nothing_proves_are_told_first(void **state)
{
	char recording[] = "/tmp/test_report_notes.XXXXXX";
	struct synth *s = scene_new(recording, (struct synth_options){.guest_tsc_offset = 1000,
								      .echo_lie_ns = 405 * MS});
	const struct message_vm_clock m = {
		.vm = SYNTH_VM,
		.source = VM_CLOCK_VCPU,
		.from_max = synth_host_tsc0,
		.tsc = {.known = true, .scaling_known = true, .offset = 1000 - synth_host_tsc0},
	};
	struct byte_buffer payload = {0};
	struct output o;

	(void)state;
	assert_int_equal(message_vm_clock_pack(&m, &payload), 0);
	synth_frame(s, VS_SOURCE_HOST, FRAME_VM_CLOCK, payload.data, payload.len);
	byte_buffer_fini(&payload);
	busy(s, 2, 1000);
	synth_free(s);
	o = report_of(recording);
	assert_ptr_equal(strstr(o.text, "The times of guest web1 are NOT PROVEN: "), o.text);
	assert_non_null(strstr(o.text, "the last by 405 ms"));
	output_free(&o);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reboot_is_named_and_is_no_stall),
		cmocka_unit_test(the_wall_clock_of_a_stall_is_what_the_host_showed),
		cmocka_unit_test(times_that_nothing_proves_are_told_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
