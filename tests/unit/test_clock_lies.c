/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests a guest that gives false answers to round trips, with three stalls of known cause: two
 * of the host's and one of the guest's own. For each lie, no stall of the guest becomes the host's,
 * the host's stalls keep their verdicts and times, and no small error is stated for unproven times.
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
#include <json.h>

#include "host-collector/cli/commands.h"
#include "host-collector/engine/live.h"
#include "proto/recording.h"
#include "tests/unit/synth.h"

#define MS 1000000ll
enum { VCPU0 = SYNTH_QEMU_PID + 1, HOG = 4242, KILLER = 5151, TASK = 77, OTHER = 88 };
enum { SIGSTOP_NUMBER = 19, TSC_OFFSET = 987654321 };

/* The stalls, in ms of the scene. */
enum {
	STOP_BEGIN = 1000,
	STOP_END = 1400,
	HOG_BEGIN = 2000,
	HOG_END = 2500,
	SPIN_BEGIN = 3000,
	SPIN_END = 3600,
	SCENE_END = 4200,
};

struct lie {
	int64_t reply_us; /* every answer to a round trip is off by so much */
	int64_t all_us;   /* everything that the guest says is */
	bool hypervisor;  /* its parameters are in the recording */
	bool harmless;
	enum vm_protection protection;
};

static void tick(struct synth *s, int32_t pid)
{
	struct vs_event e = {
		.type = VS_EVENT_VECTOR_ENTRY, .pid = pid, .arg0 = VS_VECTOR_LOCAL_TIMER};

	synth_guest_event(s, 0, e);
	e.type = VS_EVENT_VECTOR_EXIT;
	synth_guest_event(s, 0, e);
}

/* Two tasks take turns, a tick each. */
static void busy(struct synth *s, int64_t begin_ms, int64_t end_ms)
{
	for (int64_t t = begin_ms * MS, i = 0; t < end_ms * MS; t += 4 * MS, i++) {
		synth_at(s, t);
		tick(s, i & 1 ? TASK : OTHER);
		synth_guest_event(
			s, 0, i & 1 ? synth_switch(TASK, 0, OTHER) : synth_switch(OTHER, 0, TASK));
	}
}

static void kept_out(struct synth *s, int64_t begin_ms, int64_t end_ms, uint32_t state, int32_t by)
{
	synth_at(s, begin_ms * MS);
	synth_host_event(s, 0, synth_switch(VCPU0, state, by));
	synth_guest_silent(s, true);
	synth_at(s, end_ms * MS);
	synth_host_event(s, 0, synth_switch(by, 1, VCPU0));
	synth_guest_silent(s, false);
}

static void live_take(void *context, uint32_t source, uint64_t arrival_tsc,
		      const struct frame_view *frame)
{
	const struct frame_item item = frame_item_of(frame);

	assert_int_equal(live_frame(context, source, arrival_tsc, &item), 0);
	assert_int_equal(live_tick(context, arrival_tsc), 0);
}

static void hypervisor_put(struct synth *s)
{
	const struct message_vm_clock m = {
		.vm = SYNTH_VM,
		.source = VM_CLOCK_VCPU,
		.from_max = synth_host_tsc0,
		.tsc = {.known = true,
			.scaling_known = true,
			.offset = (uint64_t)TSC_OFFSET - synth_host_tsc0},
	};
	struct byte_buffer payload = {0};

	assert_int_equal(message_vm_clock_pack(&m, &payload), 0);
	synth_frame(s, VS_SOURCE_HOST, FRAME_VM_CLOCK, payload.data, payload.len);
	byte_buffer_fini(&payload);
}

/* Into a recording, or frame by frame into `live`; the other is NULL. */
static void scene_write(const char *path, struct live *live, const struct lie *lie)
{
	struct synth *s = synth_new(&(struct synth_options){
		.path = path,
		.entry = live ? live_take : NULL,
		.context = live,
		.guest_cpus = 1,
		.guest_tsc_offset = TSC_OFFSET + lie->all_us * 2500,
		.echo_lie_ns = lie->reply_us * 1000,
		.protection = lie->protection,
	});

	if (lie->hypervisor)
		hypervisor_put(s);
	synth_at(s, 1 * MS);
	synth_host_event(s, 0, synth_name(HOG, HOG, "hog"));
	synth_host_event(s, 0, synth_name(KILLER, KILLER, "killer"));
	synth_host_event(s, 0, synth_switch(0, 0, VCPU0));
	synth_guest_event(s, 0, synth_name(TASK, TASK, "spinner"));
	synth_guest_event(s, 0, synth_name(OTHER, OTHER, "other"));
	busy(s, 2, STOP_BEGIN);
	synth_at(s, STOP_BEGIN * MS);
	synth_host_event(s, 1,
			 (struct vs_event){.type = VS_EVENT_SIGNAL,
					   .pid = SYNTH_QEMU_PID,
					   .pid2 = KILLER,
					   .arg0 = SIGSTOP_NUMBER,
					   .arg1 = SYNTH_QEMU_PID});
	kept_out(s, STOP_BEGIN, STOP_END, VS_TASK_STOPPED, 0);
	busy(s, STOP_END + 1, HOG_BEGIN);
	kept_out(s, HOG_BEGIN, HOG_END, VS_TASK_RUNNING, HOG);
	busy(s, HOG_END + 1, SPIN_BEGIN);
	synth_at(s, SPIN_BEGIN * MS);
	synth_guest_event(s, 0, synth_switch(OTHER, 0, TASK));
	for (int64_t t = SPIN_BEGIN + 4; t < SPIN_END; t += 4) {
		synth_at(s, t * MS);
		tick(s, TASK);
	}
	synth_at(s, SPIN_END * MS);
	synth_guest_event(s, 0, synth_switch(TASK, 0, OTHER));
	busy(s, SPIN_END + 4, SCENE_END);
	synth_free(s);
}

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *value;

	assert_true(json_object_object_get_ex(o, key, &value));
	return value;
}

static const char *text_of(struct json_object *o, const char *key)
{
	return json_object_get_string(member(o, key));
}

static int64_t number_of(struct json_object *o, const char *key)
{
	return json_object_get_int64(member(o, key));
}

static bool misses(struct json_object *incident, const char *what)
{
	struct json_object *missing = member(incident, "missing");

	for (size_t i = 0; i < json_object_array_length(missing); i++) {
		if (!strcmp(json_object_get_string(json_object_array_get_idx(missing, i)), what))
			return true;
	}
	return false;
}

static bool misses_clock_map(struct json_object *incident)
{
	return misses(incident, "clock_map");
}

static struct json_object *report_of(const struct lie *lie)
{
	char recording[] = "/tmp/test_clock_lies.XXXXXX", output[sizeof(recording) + 4];
	char *argv[] = {"report", recording, "--format", "json", "-o", output, NULL};
	struct json_object *report;
	int fd = mkstemp(recording);

	assert_true(fd >= 0);
	close(fd);
	snprintf(output, sizeof(output), "%s.out", recording);
	scene_write(recording, NULL, lie);
	assert_int_equal(command_report.run(&command_report, 6, argv), COMMAND_OK);
	report = json_object_from_file(output);
	assert_non_null(report);
	unlink(recording);
	unlink(output);
	return report;
}

static bool is_at(struct json_object *i, int64_t begin_ms, int64_t end_ms)
{
	return llabs(number_of(i, "begin_ns") - synth_host_ns(begin_ms * MS)) < 10 * MS &&
	       llabs(number_of(i, "end_ns") - synth_host_ns(end_ms * MS)) < 10 * MS;
}

static bool truth_has(struct json_object *i)
{
	const char *verdict = text_of(i, "verdict");

	if (!strcmp(verdict, "vm_paused"))
		return is_at(i, STOP_BEGIN, STOP_END);
	if (!strcmp(verdict, "vcpu_not_scheduled"))
		return is_at(i, HOG_BEGIN, HOG_END);
	return !strcmp(verdict, "guest_spin") && is_at(i, SPIN_BEGIN, SPIN_END);
}

/* With nothing proven: the host's stalls as the host saw them, everything else undetermined. */
static void untrusted_check(struct json_object *incidents)
{
	bool stopped = false, hogged = false;

	for (size_t n = 0; n < json_object_array_length(incidents); n++) {
		struct json_object *i = json_object_array_get_idx(incidents, n);
		const char *verdict = text_of(i, "verdict");

		assert_true(misses_clock_map(i));
		assert_string_not_equal(text_of(i, "confidence"), "decided");
		if (!strcmp(verdict, "undetermined"))
			continue;
		assert_true(truth_has(i));
		assert_string_equal(text_of(i, "kind"), "unknown");
		stopped |= !strcmp(verdict, "vm_paused");
		hogged |= !strcmp(verdict, "vcpu_not_scheduled");
	}
	assert_true(stopped && hogged);
}

/* As untrusted_check(), of what is reported while it happens. */
struct live_seen {
	bool stopped, hogged;
};

static void on_live_incident(void *context, const struct report *report)
{
	const struct incident *i = &report->incidents[0];
	const int64_t begin = i->begin.ns - synth_host_ns(0), end = i->end.ns - synth_host_ns(0);
	struct live_seen *seen = context;
	bool stop =
		llabs(begin - STOP_BEGIN * MS) < 10 * MS && llabs(end - STOP_END * MS) < 10 * MS;
	bool hog = llabs(begin - HOG_BEGIN * MS) < 10 * MS && llabs(end - HOG_END * MS) < 10 * MS;

	assert_true(i->err_ns >= UINT32_MAX || i->missing & 1u << MISSING_CLOCK_MAP);
	if (i->verdict == VERDICT_UNDETERMINED)
		return;
	assert_int_equal(i->kind, GUEST_CPU_UNKNOWN);
	assert_true(i->verdict == VERDICT_VM_PAUSED
			    ? stop
			    : hog && i->verdict == VERDICT_VCPU_NOT_SCHEDULED);
	seen->stopped |= stop;
	seen->hogged |= hog;
}

static void on_live_ongoing(void *context, const struct incident *incident, const char *vm_name)
{
	(void)context;
	(void)incident;
	(void)vm_name;
}

static void on_live_line(void *context, const char *line)
{
	(void)context;
	(void)line;
}

static void live_check(const struct lie *lie)
{
	struct live_seen seen = {0};
	struct live *live = live_new(&(struct live_options){.than_ns = 100 * MS,
							    .incident = on_live_incident,
							    .ongoing = on_live_ongoing,
							    .line = on_live_line,
							    .context = &seen});

	assert_non_null(live);
	scene_write(NULL, live, lie);
	assert_int_equal(live_finish(live), 0);
	assert_true(seen.stopped && seen.hogged);
	live_free(live);
}

static void lie_check(const struct lie *lie)
{
	struct json_object *report = report_of(lie), *incidents = member(report, "incidents");
	struct json_object *clock = json_object_array_get_idx(member(report, "clock"), 0);

	if (lie->harmless) {
		assert_string_equal(text_of(clock, "method"), lie->hypervisor ? "tsc" : "echo");
		assert_int_equal(json_object_array_length(incidents), 3);
		for (size_t n = 0; n < 3; n++)
			assert_true(truth_has(json_object_array_get_idx(incidents, n)));
	} else {
		assert_string_equal(text_of(clock, "method"), "untrusted");
		assert_int_equal(json_object_get_uint64(member(clock, "error_ns")), UINT64_MAX);
		untrusted_check(incidents);
		live_check(lie);
	}
	json_object_put(report);
}

#define LIE(reply_us, all_us, harmless)                                                            \
	{                                                                                          \
		reply_us, all_us, true, harmless, VM_PROTECTION_NONE                               \
	}

static void no_lie_makes_the_guests_stall_the_hosts(void **state)
{
	static const struct lie lies[] = {
		LIE(0, 0, true),         LIE(20, 0, true),      LIE(-20, 0, true),
		LIE(1700000, 0, false),  LIE(405000, 0, false), LIE(-405000, 0, false),
		LIE(50000, 0, false),    LIE(700000, 0, false), LIE(-700000, 0, false),
		LIE(-1900000, 0, false), LIE(0, 300000, false), LIE(0, -5000, false),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++)
		lie_check(&lies[i]);
}

/* Any lie that a round trip can show. One that it cannot show is as small as a way there. */
static void nor_does_any_other(void **state)
{
	uint64_t random = 20261122;

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct lie lie = {.hypervisor = true};

		random = random * 6364136223846793005ull + 1442695040888963407ull;
		lie.reply_us = (int64_t)(random >> 40) % 3000000;
		lie.reply_us = (lie.reply_us + 400) * (random >> 20 & 1 ? 1 : -1);
		lie_check(&lie);
	}
}

/*
 * Where the hypervisor's parameters are not known, a lie shows by what it makes impossible: events
 * while the vCPU was elsewhere, messages stamped after they had arrived. No stall of the guest's
 * own is the host's then, either.
 */
static void without_the_hypervisor_a_lie_shows_by_what_it_makes_impossible(void **state)
{
	static const int64_t lies_us[] = {1700000, 405000, -405000, 150000, -700000};

	(void)state;
	for (size_t k = 0; k < sizeof(lies_us) / sizeof(*lies_us); k++) {
		const struct lie lie = {.reply_us = lies_us[k]};
		struct json_object *report = report_of(&lie),
				   *incidents = member(report, "incidents");

		struct json_object *clock = json_object_array_get_idx(member(report, "clock"), 0);

		assert_string_equal(text_of(clock, "method"), "untrusted");
		for (size_t n = 0; n < json_object_array_length(incidents); n++) {
			struct json_object *i = json_object_array_get_idx(incidents, n);

			assert_true(misses_clock_map(i));
			assert_string_not_equal(text_of(i, "confidence"), "decided");
			if (strcmp(text_of(i, "verdict"), "undetermined"))
				assert_true(truth_has(i));
		}
		json_object_put(report);
	}
}

/* ---- a guest that is protected from the host ---- */

static void protected_check(const struct lie *scene, bool is_protected)
{
	struct json_object *report = report_of(scene), *incidents = member(report, "incidents");
	struct json_object *clock = json_object_array_get_idx(member(report, "clock"), 0), *kind;
	size_t decided = 0;

	assert_string_equal(text_of(clock, "method"), is_protected ? "echo" : "tsc");
	assert_int_equal(json_object_object_get_ex(clock, "protection", &kind), is_protected);
	if (is_protected)
		assert_string_equal(json_object_get_string(kind),
				    vm_protection_name(scene->protection));
	assert_true(number_of(clock, "error_ns") < 10 * MS);
	assert_int_equal(json_object_array_length(incidents), 3);
	for (size_t n = 0; n < 3; n++) {
		struct json_object *i = json_object_array_get_idx(incidents, n);
		bool joined = strcmp(text_of(i, "kind"), "unknown") != 0;

		assert_true(truth_has(i));
		assert_false(misses_clock_map(i));
		assert_int_equal(misses(i, "clock_proof"), is_protected);
		if (is_protected && joined)
			assert_string_equal(text_of(i, "confidence"), "likely");
		decided += !strcmp(text_of(i, "confidence"), "decided");
	}
	/* Without the protection the host's two stalls are decided; without KVM's events the
	 * guest's own never is. */
	assert_true(is_protected || decided == 2);
	json_object_put(report);
}

/* Whether KVM shows the guest's offset or one that the guest does not use makes no difference. The
 * last number is one of a newer version. */
static void a_protected_guest_is_placed_by_round_trips(void **state)
{
	(void)state;
	protected_check(&(struct lie){.hypervisor = true}, false);
	for (int p = VM_PROTECTION_NONE + 1; p <= VM_PROTECTION_LAST + 1; p++) {
		struct lie scene = {.hypervisor = true, .protection = (enum vm_protection)p};

		protected_check(&scene, true);
		scene.all_us = 300000;
		protected_check(&scene, true);
		scene.hypervisor = false;
		protected_check(&scene, true);
	}
}

/* What is impossible shows a lie, as of any guest without known parameters. */
static void nor_is_a_lie_of_a_protected_guest_believed(void **state)
{
	static const int64_t lies_us[] = {1700000, 405000, -405000};

	(void)state;
	for (size_t i = 0; i < sizeof(lies_us) / sizeof(*lies_us); i++) {
		const struct lie lie = {.reply_us = lies_us[i],
					.hypervisor = true,
					.protection = VM_PROTECTION_SEV_SNP};
		struct json_object *report = report_of(&lie);
		struct json_object *clock = json_object_array_get_idx(member(report, "clock"), 0);

		assert_string_equal(text_of(clock, "method"), "untrusted");
		json_object_put(report);
	}
}

static void on_live_protected(void *context, const struct report *report)
{
	const struct incident *i = &report->incidents[0];
	size_t *joined = context;

	assert_true(i->missing & 1u << MISSING_CLOCK_PROOF);
	if (i->kind == GUEST_CPU_UNKNOWN)
		return;
	assert_int_not_equal(i->confidence, CONFIDENCE_DECIDED);
	++*joined;
}

static void nor_is_a_live_verdict_of_a_protected_guest_decided(void **state)
{
	const struct lie scene = {
		.all_us = 300000, .hypervisor = true, .protection = VM_PROTECTION_TDX};
	size_t joined = 0;
	struct live *live = live_new(&(struct live_options){.than_ns = 100 * MS,
							    .incident = on_live_protected,
							    .ongoing = on_live_ongoing,
							    .line = on_live_line,
							    .context = &joined});

	(void)state;
	assert_non_null(live);
	scene_write(NULL, live, &scene);
	assert_int_equal(live_finish(live), 0);
	assert_true(joined > 0);
	live_free(live);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_lie_makes_the_guests_stall_the_hosts),
		cmocka_unit_test(nor_does_any_other),
		cmocka_unit_test(without_the_hypervisor_a_lie_shows_by_what_it_makes_impossible),
		cmocka_unit_test(a_protected_guest_is_placed_by_round_trips),
		cmocka_unit_test(nor_is_a_lie_of_a_protected_guest_believed),
		cmocka_unit_test(nor_is_a_live_verdict_of_a_protected_guest_decided),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
