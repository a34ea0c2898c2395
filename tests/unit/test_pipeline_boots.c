/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests a recording in which the guest's kernel boots again: the events of both boots are at
 * their true times, whatever the TSC does, and tasks of one boot are not taken for those of the
 * other. */
#include <stdio.h>

#include "proto/recording.h"
#include "tests/unit/pipeline_play.h"

static const uint64_t hz = 2500000000;

enum {
	FIRST_BEGIN_MS = 3,
	FIRST_END_MS = 1000,
	RESET_MS = 1200,
	SECOND_BOOT_MS = 1500, /* its agent's HELLO */
	SECOND_BEGIN_MS = 1510,
	SECOND_END_MS = 2600,
};

static uint64_t host_tsc_at(int64_t ms)
{
	return synth_host_tsc0 + (uint64_t)ms * (hz / 1000);
}

/* The hypervisor's parameters, in force since `since_ms`. */
static void vm_clock_put(struct synth *s, enum vm_clock_source source, uint64_t offset,
			 int64_t since_ms)
{
	const struct message_vm_clock m = {
		.vm = SYNTH_VM,
		.source = source,
		.from_min = since_ms ? host_tsc_at(since_ms) : 0,
		.from_max = host_tsc_at(since_ms) + 1000,
		.tsc = {.known = true, .scaling_known = source == VM_CLOCK_VCPU, .offset = offset},
	};
	struct byte_buffer payload = {0};

	assert_int_equal(message_vm_clock_pack(&m, &payload), 0);
	synth_frame(s, VS_SOURCE_HOST, FRAME_VM_CLOCK, payload.data, payload.len);
	byte_buffer_fini(&payload);
}

static void qemu_says(struct synth *s, const char *text)
{
	struct message_note note = {
		.vm = SYNTH_VM, .kind = NOTE_VM_EVENT, .host_tsc = host_tsc_at(RESET_MS)};
	struct byte_buffer payload = {0};

	snprintf(note.text, sizeof(note.text), "%s", text);
	assert_int_equal(message_note_pack(&note, &payload), 0);
	synth_frame(s, VS_SOURCE_HOST, FRAME_NOTE, payload.data, payload.len);
	byte_buffer_fini(&payload);
}

struct boot_case {
	const char *name;
	bool hypervisor, qmp;
	uint64_t first_tsc;  /* when the scene begins */
	uint64_t second_tsc; /* when the second agent says HELLO; 0: the TSC goes on */
	uint32_t err_limit;
};

static void scene_reboots(struct play *p, const struct boot_case *c)
{
	struct synth *s =
		scene_new(p, (struct synth_options){.guest_tsc_offset = (int64_t)c->first_tsc});
	uint64_t tsc;

	if (c->hypervisor)
		vm_clock_put(s, VM_CLOCK_VCPU, c->first_tsc - synth_host_tsc0, 0);
	synth_guest_event(s, 0, synth_name(TASK, TASK, "webserver"));
	scene_switches(s, FIRST_BEGIN_MS * MS, FIRST_END_MS * MS);
	synth_at(s, (FIRST_END_MS + 60) * MS);
	synth_guest_silent(s, true);
	synth_at(s, SECOND_BOOT_MS * MS);
	synth_guest_silent(s, false);
	tsc = c->second_tsc ? c->second_tsc : synth_guest_tsc(s);
	if (c->hypervisor && c->second_tsc) {
		uint64_t offset = tsc - host_tsc_at(SECOND_BOOT_MS);

		vm_clock_put(s, VM_CLOCK_WRITE_TSC_OFFSET, offset, RESET_MS);
		vm_clock_put(s, VM_CLOCK_VCPU, offset, RESET_MS);
	}
	if (c->qmp)
		qemu_says(s, "QEMU reset the VM (QMP RESET: guest-reset)");
	synth_guest_boot(s, "another", tsc);
	synth_guest_event(s, 0, synth_name(TASK, TASK, "sleep"));
	scene_switches(s, SECOND_BEGIN_MS * MS, SECOND_END_MS * MS);
	synth_at(s, (SECOND_END_MS + 100) * MS);
	synth_free(s);
}

/* From seen->instants[*at] on: the switches that the scene wrote, each where it happened. */
static void assert_switches_at(const struct seen *seen, size_t *at, int64_t begin_ms,
			       int64_t end_ms, uint32_t boot, uint32_t err_limit)
{
	for (int64_t t = begin_ms * MS; t < end_ms * MS; t += 7 * MS) {
		const struct guest_instant *i;

		while (*at < seen->n_instants && seen->instants[*at].type != VS_EVENT_SCHED_SWITCH)
			++*at;
		assert_true(*at < seen->n_instants);
		i = &seen->instants[(*at)++];
		assert_int_equal(i->boot, boot);
		assert_true(llabs(i->t.ns - synth_host_ns(t)) <= i->err_ns);
		assert_true(i->err_ns < err_limit);
	}
}

static void boots_check(const struct play *p, const struct boot_case *c)
{
	const struct pipeline_source vm = source_of(p, SYNTH_VM);
	const struct reboot *r = pipeline_reboot(p->pipeline, SYNTH_VM, 0);
	size_t at = 0;

	assert_switches_at(p->seen, &at, FIRST_BEGIN_MS, FIRST_END_MS, 0, c->err_limit);
	assert_switches_at(p->seen, &at, SECOND_BEGIN_MS, SECOND_END_MS, 1, c->err_limit);
	assert_int_equal(vm.unplaced, 0);
	assert_int_equal(vm.causality_violations, 0);
	assert_int_equal(vm.late, 0);
	assert_true(vm.clock_error_ns < c->err_limit);
	assert_string_equal(model_task_name_in(p->model, SYNTH_VM, 0, TASK), "webserver");
	assert_string_equal(model_task_name_in(p->model, SYNTH_VM, 1, TASK), "sleep");
	assert_string_equal(model_task_name(p->model, SYNTH_VM, TASK), "sleep");

	assert_non_null(r);
	assert_null(pipeline_reboot(p->pipeline, SYNTH_VM, 1));
	assert_int_equal(r->boot, 1);
	assert_true(r->after.ns >= synth_host_ns((FIRST_END_MS - 10) * MS));
	assert_true(r->after.ns <= synth_host_ns(RESET_MS * MS));
	assert_true(llabs(r->until.ns - synth_host_ns(SECOND_BOOT_MS * MS)) < MS);
	assert_int_equal(r->reset_known, c->qmp);
	if (c->qmp) {
		assert_true(llabs(r->reset.ns - synth_host_ns(RESET_MS * MS)) < 1000);
		assert_non_null(strstr(r->why, "QEMU reset the VM"));
	}
}

static void each_boot_has_its_own_clock_and_tasks(void **state)
{
	static const struct boot_case cases[] = {
		{"reset, TSC from 0", true, true, 5 * 2500000000, 750000000, 200},
		{"reset, no word of QEMU's", true, false, 5 * 2500000000, 750000000, 200},
		{"the second boot is older", true, true, 250000000, 25000000000, 200},
		{"kexec, the TSC goes on", true, false, 12500000000, 0, 200},
		{"reset, round trips alone", false, true, 5 * 2500000000, 750000000, 400000},
		{"kexec, round trips alone", false, false, 12500000000, 0, 400000},
		/* For a second it may mean either boot: round trips tell. */
		{"the TSC reads the same again", true, true, 12500000000, 12500000000, 400000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct play p;

		scene_reboots(&p, &cases[i]);
		play_offline(&p);
		boots_check(&p, &cases[i]);
		play_end(&p);
	}
}

/* Live nothing is known in advance, so the bounds are wider. */
static void live_a_reboot_is_followed(void **state)
{
	static const struct boot_case c = {"", true, true, 12500000000, 750000000, 1000000};
	struct play p;

	(void)state;
	scene_reboots(&p, &c);
	play_start(&p, true);
	for (size_t k = 0; k < p.tape.n; k++)
		play_entry(&p, &p.tape.entries[k]);
	assert_int_equal(pipeline_finish(p.pipeline), 0);
	boots_check(&p, &c);
	play_end(&p);
}

/* The same kernel, whose agent measured its TSC's rate anew. */
static void an_agent_that_starts_again_is_no_reboot(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	struct dmesg_time dmesg;

	(void)state;
	synth_guest_event(s, 0, synth_name(TASK, TASK, "webserver"));
	scene_switches(s, 3 * MS, 500 * MS);
	synth_at(s, 600 * MS);
	synth_guest_hello(s);
	synth_at(s, 1200 * MS);
	synth_free(s);
	play_offline(&p);
	assert_null(pipeline_reboot(p.pipeline, SYNTH_VM, 0));
	assert_string_equal(model_task_name(p.model, SYNTH_VM, TASK), "webserver");
	assert_true(pipeline_dmesg(p.pipeline, SYNTH_VM, (struct host_ns){synth_host_ns(320 * MS)},
				   &dmesg));
	assert_true(llabs((int64_t)dmesg.ns - (100000 * MS + 320 * MS)) < 400000);
	play_end(&p);
}

static void log_send(struct synth *s, uint64_t first_us, size_t n)
{
	struct message_kernel_log *log = calloc(1, sizeof(*log));
	struct byte_buffer payload = {0};

	assert_non_null(log);
	log->n_lines = n;
	for (size_t i = 0; i < n; i++)
		log->lines[i] = (struct message_log_line){
			.dmesg_us = first_us + i / 2, .level = 4, .text = "watchdog: BUG"};
	assert_int_equal(message_kernel_log_pack(log, &payload), 0);
	synth_frame(s, SYNTH_VM, FRAME_KERNEL_LOG, payload.data, payload.len);
	byte_buffer_fini(&payload);
	free(log);
}

/* It reads its kernel's log from the beginning. Another kernel may print the same at the same time.
 */
static void log_lines_of_an_agent_that_starts_again_are_not_told_twice(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	size_t n = 0, of_second = 0;

	(void)state;
	synth_at(s, 100 * MS);
	log_send(s, 1000, 6);
	synth_guest_hello(s);
	log_send(s, 1000, 6);
	log_send(s, 2000, 2);
	synth_at(s, 200 * MS);
	synth_guest_boot(s, "another", 1000);
	log_send(s, 1000, 6);
	synth_at(s, 300 * MS);
	synth_free(s);
	play_offline(&p);
	for (; pipeline_log_line(p.pipeline, SYNTH_VM, n); n++)
		of_second += pipeline_log_boot(p.pipeline, SYNTH_VM, n) == 1;
	assert_int_equal(n, 6 + 2 + 6);
	assert_int_equal(of_second, 6);
	play_end(&p);
}

/* A guest that claims to boot again and again harms itself alone. */
static void a_flood_of_boots_is_bounded(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	char ids[2000][16];

	(void)state;
	synth_at(s, 299 * MS);
	synth_host_event(s, 0, synth_switch(0, 0, VCPU0));
	synth_at(s, 300 * MS);
	synth_host_event(s, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	for (int i = 0; i < 2000; i++) {
		snprintf(ids[i], sizeof(ids[i]), "boot %d", i);
		synth_guest_boot(s, ids[i], synth_guest_tsc(s));
		synth_guest_event(s, 0, synth_switch(TASK, 1, OTHER));
	}
	synth_at(s, 500 * MS);
	synth_host_event(s, 0, synth_switch(HOG, 1, VCPU0));
	synth_at(s, 700 * MS);
	synth_free(s);
	play_offline(&p);
	assert_non_null(span_find(p.seen, VCPU_RUNNABLE));
	assert_non_null(pipeline_reboot(p.pipeline, SYNTH_VM, REBOOTS_KEPT - 1));
	assert_null(pipeline_reboot(p.pipeline, SYNTH_VM, REBOOTS_KEPT));
	play_end(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_boot_has_its_own_clock_and_tasks),
		cmocka_unit_test(live_a_reboot_is_followed),
		cmocka_unit_test(an_agent_that_starts_again_is_no_reboot),
		cmocka_unit_test(log_lines_of_an_agent_that_starts_again_are_not_told_twice),
		cmocka_unit_test(a_flood_of_boots_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
