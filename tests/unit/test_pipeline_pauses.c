/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests a pause of the VM by its VMM: the clock stops, the TSC does not, and the agent converts
 * the stamps of this drain with a straight line over the pause. If the recording has the kvmclock
 * lines before and after the pause, each event is on its own side of the pause, with a small bound.
 * Otherwise the bound covers the pause. */
#include "proto/recording.h"
#include "tests/unit/pipeline_play.h"

enum { STOP_MS = 520, RESUME_MS = 1220, END_MS = 2000 };
static const uint64_t tsc0 = 900000000000, per_ms = 2500000;

static void qemu_says(struct synth *s, enum note_kind kind, int64_t ms)
{
	struct message_note note = {
		.vm = SYNTH_VM, .kind = kind, .host_tsc = synth_host_tsc0 + (uint64_t)ms * per_ms};
	struct byte_buffer payload = {0};

	assert_int_equal(message_note_pack(&note, &payload), 0);
	synth_frame(s, VS_SOURCE_HOST, FRAME_NOTE, payload.data, payload.len);
	byte_buffer_fini(&payload);
}

/* One kvmclock line, which begins at `ms` and reads there what it read at `reads_ms` at first. */
static void line_put(struct synth *s, int64_t ms, int64_t reads_ms)
{
	const struct message_vm_clock m = {
		.vm = SYNTH_VM,
		.source = VM_CLOCK_VCPU,
		.from_min = ms ? synth_host_tsc0 + (uint64_t)ms * per_ms : 0,
		.from_max = synth_host_tsc0 + (uint64_t)ms * per_ms + 100,
		.tsc = {.known = true, .scaling_known = true, .offset = tsc0 - synth_host_tsc0},
		.pvclock = {.known = true,
			    .mul = 1717986918, /* 0.4 ns a tick */
			    .tsc_timestamp = tsc0 + (uint64_t)ms * per_ms,
			    .system_time = 5000000000 + (uint64_t)(reads_ms * MS)},
	};
	struct byte_buffer payload = {0};

	assert_int_equal(message_vm_clock_pack(&m, &payload), 0);
	synth_frame(s, VS_SOURCE_HOST, FRAME_VM_CLOCK, payload.data, payload.len);
	byte_buffer_fini(&payload);
}

/* A switch a millisecond in the 30 ms before the pause and the 30 ms after it. The last drain
 * before it is that of 500 ms. last_ns: one more switch, so long before the pause. */
static void scene_pause(struct play *p, bool lines, bool by_qemu, int64_t last_ns)
{
	struct synth *s = scene_new(p, (struct synth_options){.guest_tsc_offset = (int64_t)tsc0});

	if (lines)
		line_put(s, 0, 0);
	scene_switches(s, 3 * MS, 485 * MS);
	for (int64_t ms = 490; ms < STOP_MS; ms++) {
		synth_at(s, ms * MS);
		synth_guest_event(s, 0, synth_switch(TASK, 1, OTHER));
	}
	if (last_ns) {
		synth_at(s, STOP_MS * MS - last_ns);
		synth_guest_event(s, 0, synth_switch(TASK, 1, OTHER));
	}
	synth_at(s, STOP_MS * MS);
	synth_guest_silent(s, true);
	if (by_qemu)
		qemu_says(s, NOTE_VM_PAUSED, STOP_MS + 1);
	synth_guest_pause(s, RESUME_MS * MS);
	synth_at(s, RESUME_MS * MS);
	if (by_qemu)
		qemu_says(s, NOTE_VM_RESUMED, RESUME_MS - 1);
	if (lines)
		line_put(s, RESUME_MS, STOP_MS);
	for (int64_t ms = RESUME_MS; ms < RESUME_MS + 30; ms++) {
		synth_at(s, ms * MS + MS / 2);
		synth_guest_event(s, 0, synth_switch(OTHER, 1, TASK));
	}
	synth_guest_silent(s, false);
	scene_switches(s, (RESUME_MS + 60) * MS, END_MS * MS);
	synth_free(s);
}

static int64_t scene_time(size_t i)
{
	const size_t early = (485 - 3 + 6) / 7, before = STOP_MS - 490;

	if (i < early)
		return (3 + 7 * (int64_t)i) * MS;
	i -= early;
	if (i < before)
		return (490 + (int64_t)i) * MS;
	i -= before;
	if (i < 30)
		return (RESUME_MS + (int64_t)i) * MS + MS / 2;
	return (RESUME_MS + 60 + 7 * (int64_t)(i - 30)) * MS;
}

static void every_event_lies_on_its_side_of_the_pause(void **state)
{
	struct pipeline_source vm;
	struct play p;

	(void)state;
	scene_pause(&p, true, true, 0);
	play_offline(&p);
	assert_true(p.seen->n_instants > 200);
	for (size_t i = 0; i < p.seen->n_instants; i++) {
		const struct guest_instant *at = &p.seen->instants[i];
		int64_t off = at->t.ns - synth_host_ns(scene_time(i));

		assert_true(llabs(off) <= at->err_ns);
		assert_true(at->err_ns < MS / 2); /* 50 ms of a slewed clock */
	}
	vm = source_of(&p, SYNTH_VM);
	assert_true(vm.clock_error_ns < MS / 2);
	assert_int_equal(vm.causality_violations, 0);
	play_end(&p);
}

/* The bound of the events around the pause says how little is known of them, and of them alone. */
static void without_the_lines_the_bound_is_wide_beside_the_pause_only(void **state)
{
	struct pipeline_source vm;
	struct play p;
	size_t wide = 0;

	(void)state;
	scene_pause(&p, false, true, 0);
	play_offline(&p);
	for (size_t i = 0; i < p.seen->n_instants; i++) {
		const struct guest_instant *at = &p.seen->instants[i];
		int64_t off = at->t.ns - synth_host_ns(scene_time(i));

		assert_true(llabs(off) <= at->err_ns);
		wide += at->err_ns > MS;
	}
	assert_in_range(wide, 1, 80);
	vm = source_of(&p, SYNTH_VM);
	assert_true(vm.clock_error_ns < MS);
	assert_int_equal(vm.beside_pauses, wide);
	assert_true(vm.beside_pauses_error_ns > 300 * MS);
	play_end(&p);
}

/* Of an event so close to the pause nobody knows on which side it was: then this drain keeps its
 * wide bound, and no other. QEMU's word is not needed to know why. */
static void a_drain_with_an_event_at_the_edge_is_beside_the_pause(void **state)
{
	struct pipeline_source vm;
	struct play p;
	size_t wide = 0;

	(void)state;
	scene_pause(&p, true, false, 100);
	play_offline(&p);
	for (size_t i = 0; i < p.seen->n_instants; i++)
		wide += p.seen->instants[i].err_ns > MS;
	assert_in_range(wide, 1, 80);
	vm = source_of(&p, SYNTH_VM);
	assert_true(vm.clock_error_ns < MS);
	assert_int_equal(vm.beside_pauses, wide);
	assert_true(vm.beside_pauses_error_ns > 300 * MS);
	play_end(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_lies_on_its_side_of_the_pause),
		cmocka_unit_test(without_the_lines_the_bound_is_wide_beside_the_pause_only),
		cmocka_unit_test(a_drain_with_an_event_at_the_edge_is_beside_the_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
