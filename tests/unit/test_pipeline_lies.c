/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests statements that a guest may not make, or makes too often or falsely: they harm only this
 * guest. */
#include "host-collector/analyze/stall/builder.h"
#include "host-collector/engine/account.h"
#include "proto/recording.h"
#include "tests/unit/pipeline_play.h"

static void what_only_the_host_may_say_is_not_taken_from_a_guest(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	struct message_note note = {.vm = SYNTH_VM, .kind = NOTE_SIMULATED};
	struct message_echo_observation lie = {SYNTH_VM, synth_host_tsc0 + 1, 5, 6,
					       synth_host_tsc0 + 2};
	struct byte_buffer payload = {0};

	(void)state;
	scene_switches(s, 3 * MS, 500 * MS);
	assert_int_equal(message_note_pack(&note, &payload), 0);
	synth_frame(s, SYNTH_VM, FRAME_NOTE, payload.data, payload.len);
	payload.len = 0;
	assert_int_equal(message_echo_observation_pack(&lie, &payload), 0);
	synth_frame(s, SYNTH_VM, FRAME_ECHO_OBSERVATION, payload.data, payload.len);
	synth_guest_event(s, 0, (struct vs_event){.type = VS_EVENT_KVM_EXIT, .pid = VCPU0});
	synth_at(s, 600 * MS);
	synth_free(s);
	byte_buffer_fini(&payload);
	play_offline(&p);
	assert_switches(p.seen, 3 * MS, 500 * MS, 400000);
	assert_int_equal(p.seen->notes, 0);
	assert_false(pipeline_is_simulated(p.pipeline));
	assert_int_equal(source_of(&p, SYNTH_VM).malformed, 3);
	play_end(&p);
}

/* A newer agent's events and frames are dropped and counted; nothing is lost by them. */
static void what_is_not_known_is_counted_and_costs_nothing_else(void **state)
{
	static const uint16_t types[] = {20, 63, 64, 66, 96, 1000, 65535};
	static const uint8_t kinds[] = {12, 15, 26, 255};
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	struct pipeline_source vm;
	uint64_t sent = 0;

	(void)state;
	for (int64_t t = 3 * MS, i = 0; t < 500 * MS; t += 7 * MS, i++) {
		synth_at(s, t);
		synth_guest_event(s, (uint16_t)(i % 2),
				  i & 2 ? synth_switch(TASK, 1, OTHER)
					: synth_switch(OTHER, 1, TASK));
		for (size_t k = 0; k < sizeof(types) / sizeof(*types); k++, sent++)
			synth_guest_event(s, (uint16_t)(i % 2),
					  (struct vs_event){.type = types[k], .pid = TASK});
	}
	for (size_t k = 0; k < sizeof(kinds); k++)
		synth_frame(s, SYNTH_VM, kinds[k], (const uint8_t *)"new", 3);
	synth_host_event(s, 0, (struct vs_event){.type = 200, .pid = VCPU0});
	synth_at(s, 600 * MS);
	synth_free(s);
	play_offline(&p);
	assert_switches(p.seen, 3 * MS, 500 * MS, 400000);
	vm = source_of(&p, SYNTH_VM);
	assert_int_equal(vm.unknown_events, sent);
	assert_int_equal(vm.unknown_frames, sizeof(kinds));
	assert_int_equal(vm.delivered, sent + sent / (sizeof(types) / sizeof(*types)));
	assert_int_equal(vm.emitted, vm.delivered);
	assert_int_equal(vm.missing + vm.lost_channel + vm.lost_frames + vm.malformed, 0);
	assert_int_equal(source_of(&p, VS_SOURCE_HOST).unknown_events, 1);
	play_end(&p);
}

/* A heartbeat whose steal was read at the scene's time `t_ns`. */
static void steal_send(struct synth *s, int64_t t_ns)
{
	struct message_heartbeat *beat = calloc(1, sizeof(*beat));
	struct byte_buffer payload = {0};

	assert_non_null(beat);
	beat->steal.known = beat->steal.clock = true;
	beat->time = 1000 + (uint64_t)(505 * MS) * 5 / 2;
	beat->steal.time = 1000 + (uint64_t)t_ns * 5 / 2;
	beat->steal.err = 2500;
	beat->steal.unit_ns = 10 * MS;
	beat->steal.n_cpus = 1;
	beat->steal.cpus[0].cpu = 1;
	beat->steal.cpus[0].steal_ns = 70 * MS;
	assert_int_equal(message_heartbeat_pack(beat, &payload), 0);
	synth_frame(s, SYNTH_VM, FRAME_HEARTBEAT, payload.data, payload.len);
	byte_buffer_fini(&payload);
	free(beat);
}

static void a_guests_steal_is_placed_unless_it_lies_ahead_of_its_arrival(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	const struct guest_steal *steal;

	(void)state;
	scene_switches(s, 3 * MS, 500 * MS);
	synth_at(s, 510 * MS);
	steal_send(s, 505 * MS);
	steal_send(s, 10000 * MS);
	synth_at(s, 600 * MS);
	synth_free(s);
	play_offline(&p);
	steal = &p.seen->steal;
	assert_int_equal(p.seen->steals, 1);
	assert_int_equal(steal->vm, SYNTH_VM);
	assert_int_equal(steal->cpu, 1);
	assert_int_equal(steal->steal_ns, 70 * MS);
	assert_int_equal(steal->unit_ns, 10 * MS);
	assert_true(steal->clock);
	assert_true(steal->err_ns >= 1000);
	assert_true(llabs(steal->t.ns - synth_host_ns(505 * MS)) <= (int64_t)steal->err_ns);
	play_end(&p);
}

static void payloads_of_noise_are_counted_and_cost_nothing_else(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	uint64_t random = 7, sent = 0;

	(void)state;
	for (int64_t t = 3 * MS; t < 500 * MS; t += 7 * MS) {
		uint8_t noise[200];
		size_t len;

		synth_at(s, t);
		synth_guest_event(s, (uint16_t)((t - 3 * MS) / (7 * MS) % 2),
				  synth_switch(TASK, 1, OTHER));
		for (size_t i = 0; i < sizeof(noise); i++) {
			random = random * 6364136223846793005ull + 1;
			noise[i] = (uint8_t)(random >> 56);
		}
		len = 1 + random % sizeof(noise);
		/* not an echo reply: nobody looks at those here */
		for (uint8_t kind = FRAME_HELLO; kind <= FRAME_HEARTBEAT; kind++, sent++)
			synth_frame(s, SYNTH_VM, kind, noise, len);
	}
	synth_free(s);
	play_offline(&p);
	assert_switches(p.seen, 3 * MS, 500 * MS, 400000);
	assert_true(source_of(&p, SYNTH_VM).malformed > sent * 9 / 10);
	play_end(&p);
}

static void a_guest_that_lies_about_the_time_harms_only_itself(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	struct message_heartbeat beat = {.time = UINT64_MAX / 4}, near = {.time = 1ull << 50};
	struct byte_buffer payload = {0};
	const struct vcpu_span *span;

	(void)state;
	synth_at(s, 60 * MS);
	assert_int_equal(message_heartbeat_pack(&beat, &payload), 0);
	synth_frame(s, SYNTH_VM, FRAME_HEARTBEAT, payload.data, payload.len);
	payload.len = 0;
	assert_int_equal(message_heartbeat_pack(&near, &payload), 0);
	synth_frame(s, SYNTH_VM, FRAME_HEARTBEAT, payload.data, payload.len);
	byte_buffer_fini(&payload);
	synth_at(s, 299 * MS);
	synth_host_event(s, 0, synth_switch(0, 0, VCPU0));
	synth_at(s, 300 * MS);
	synth_host_event(s, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_at(s, 500 * MS);
	synth_host_event(s, 0, synth_switch(HOG, 1, VCPU0));
	synth_at(s, 600 * MS);
	synth_host_event(s, 0, synth_switch(VCPU0, 1, 0));
	synth_at(s, 700 * MS);
	synth_free(s);
	play_offline(&p);
	assert_int_equal(source_of(&p, SYNTH_VM).malformed, 1); /* out of range */
	assert_true(source_of(&p, SYNTH_VM).causality_violations >= 1);
	assert_int_equal(source_of(&p, VS_SOURCE_HOST).late, 0);
	span = span_find(p.seen, VCPU_RUNNABLE);
	assert_non_null(span);
	assert_true(llabs(span->end.ns - synth_host_ns(500 * MS)) <= 100);
	play_end(&p);
}

static void the_guests_kernel_log_is_kept_up_to_a_bound(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	struct message_kernel_log *log = calloc(1, sizeof(*log));
	const struct report_options options = {.than_ns = 100 * MS};
	struct byte_buffer payload = {0};
	struct report_builder *builder;
	struct report *report;
	size_t n = 0;

	(void)state;
	log->n_lines = VS_LOG_LINES_MAX;
	for (uint64_t round = 0; round < 6; round++) {
		for (size_t i = 0; i < log->n_lines; i++)
			log->lines[i] = (struct message_log_line){
				.dmesg_us = round * 1000 + i,
				.level = 4,
				.text = "watchdog: BUG: soft lockup - CPU#1 stuck for 23s! [a:5]"};
		payload.len = 0;
		assert_int_equal(message_kernel_log_pack(log, &payload), 0);
		synth_frame(s, SYNTH_VM, FRAME_KERNEL_LOG, payload.data, payload.len);
	}
	synth_free(s);
	free(log);
	byte_buffer_fini(&payload);
	play_offline(&p);
	while (pipeline_log_line(p.pipeline, SYNTH_VM, n))
		n++;
	assert_int_equal(n, PIPELINE_LOG_LINES);
	assert_int_equal(pipeline_log_line(p.pipeline, SYNTH_VM, n - 1)->dmesg_us,
			 5000 + VS_LOG_LINES_MAX - 1);
	assert_null(pipeline_log_line(p.pipeline, VS_SOURCE_HOST, 0));
	/* Live, the account is given ten times a second: the lines are there once all the same. */
	builder = report_builder_new(p.model, &options);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(account_give(p.pipeline, p.model, 0, builder), 0);
	report = report_builder_finish(builder);
	assert_int_equal(report->n_watchdogs, PIPELINE_LOG_LINES);
	report_free(report);
	report_builder_free(builder);
	play_end(&p);
}

/* ---- readings of the guest's clock ---- */

static void hypervisor_says(struct synth *s)
{
	const struct message_vm_clock m = {
		.vm = SYNTH_VM,
		.source = VM_CLOCK_VCPU,
		.from_max = synth_host_tsc0 + 100,
		.tsc = {.known = true, .scaling_known = true, .offset = 1000 - synth_host_tsc0},
	};
	struct byte_buffer payload = {0};

	assert_int_equal(message_vm_clock_pack(&m, &payload), 0);
	synth_frame(s, VS_SOURCE_HOST, FRAME_VM_CLOCK, payload.data, payload.len);
	byte_buffer_fini(&payload);
}

/* A heartbeat now (`now_ns`) whose reading is stamped, and reads, so much more than it should. */
static void reading_send(struct synth *s, int64_t now_ns, int64_t stamp_ns, int64_t raw_ns)
{
	struct message_heartbeat *beat = calloc(1, sizeof(*beat));
	struct byte_buffer payload = {0};

	assert_non_null(beat);
	beat->time = 1000 + (uint64_t)now_ns * 5 / 2;
	beat->sample = (struct message_clock_sample){
		.tsc = 1000 + (uint64_t)(now_ns + stamp_ns) * 5 / 2,
		.tsc_width = 100,
		.monotonic_ns = (uint64_t)(synth_raw_ns0 + now_ns + raw_ns),
		.raw_ns = (uint64_t)(synth_raw_ns0 + now_ns + raw_ns)};
	assert_int_equal(message_heartbeat_pack(beat, &payload), 0);
	synth_frame(s, SYNTH_VM, FRAME_HEARTBEAT, payload.data, payload.len);
	byte_buffer_fini(&payload);
	free(beat);
}

struct steps_seen {
	struct guest_clock_reading ahead;
	unsigned n_ahead;
};

static void see_step(void *context, const struct guest_clock_reading *r)
{
	struct steps_seen *seen = context;

	if (r->step_ns <= 0)
		return;
	seen->ahead = *r;
	seen->n_ahead++;
}

/* The clock of one reading is ahead; or its stamp is back, which looks the same but for when the
 * reading arrived. */
static void a_step_is_proven_only_if_the_arrivals_show_it(void **state)
{
	static const struct {
		int64_t stamp_ns, raw_ns;
		bool proven;
	} readings[] = {{0, 200 * MS, true}, {-200 * MS, 0, false}};

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		struct steps_seen seen = {0};
		const struct model_observer observer = {.guest_clock = see_step, .context = &seen};
		struct play p;
		struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});

		hypervisor_says(s);
		scene_switches(s, 3 * MS, 510 * MS);
		reading_send(s, 510 * MS, readings[k].stamp_ns, readings[k].raw_ns);
		synth_at(s, 600 * MS);
		synth_free(s);
		play_start(&p, false);
		assert_int_equal(model_observe(p.model, &observer), 0);
		play_whole(&p);
		assert_int_equal(seen.n_ahead, 1);
		assert_true(llabs(seen.ahead.step_ns - 200 * MS) < MS);
		assert_int_equal(seen.ahead.proven, readings[k].proven);
		play_end(&p);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_only_the_host_may_say_is_not_taken_from_a_guest),
		cmocka_unit_test(what_is_not_known_is_counted_and_costs_nothing_else),
		cmocka_unit_test(a_guests_steal_is_placed_unless_it_lies_ahead_of_its_arrival),
		cmocka_unit_test(payloads_of_noise_are_counted_and_cost_nothing_else),
		cmocka_unit_test(a_guest_that_lies_about_the_time_harms_only_itself),
		cmocka_unit_test(the_guests_kernel_log_is_kept_up_to_a_bound),
		cmocka_unit_test(a_step_is_proven_only_if_the_arrivals_show_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
