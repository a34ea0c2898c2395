/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests events that do not arrive, arrive twice or late: they are counted, and the time of lost
 * ones is unknown. */
#include "tests/unit/pipeline_play.h"

#include "proto/codec.h"

static void live_what_an_agent_kept_from_before_is_no_loss(void **state)
{
	const uint64_t known_tsc = synth_host_tsc0 + 2500000ull * 600; /* 600 ms */
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 77777});

	(void)state;
	synth_guest_event(s, 0, synth_name(TASK, TASK, "victim"));
	scene_switches(s, 3 * MS, 1000 * MS);
	synth_free(s);
	play_start(&p, true);
	/* First the host alone; at 600 ms the agent is heard, with all that it has. */
	for (int guest = 0; guest < 2; guest++) {
		for (size_t i = 0; i < p.tape.n; i++) {
			const struct entry *e = &p.tape.entries[i];

			if (e->arrival_tsc < known_tsc && (e->source == SYNTH_VM) == guest)
				play_entry(&p, e);
		}
	}
	for (size_t i = 0; i < p.tape.n; i++) {
		if (p.tape.entries[i].arrival_tsc >= known_tsc)
			play_entry(&p, &p.tape.entries[i]);
	}
	assert_int_equal(pipeline_finish(p.pipeline), 0);
	assert_int_equal(source_of(&p, SYNTH_VM).late, 0);
	assert_int_equal(source_of(&p, SYNTH_VM).missing, 0);
	assert_string_equal(model_task_name(p.model, SYNTH_VM, TASK), "victim");
	/* one every 7 ms from about 550 ms on, and the name */
	assert_in_range(p.seen->n_instants, 55, 70);
	play_end(&p);
}

static void lost_events_become_a_gap(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	struct pipeline_source vm;
	const struct guest_instant *gap = NULL;

	(void)state;
	scene_switches(s, 3 * MS, 500 * MS);
	synth_at(s, 520 * MS);
	synth_guest_lose(s, 0, 13);
	scene_switches(s, 560 * MS, 1000 * MS);
	synth_free(s);
	play_offline(&p);
	for (size_t i = 0; i < p.seen->n_instants; i++) {
		if (p.seen->instants[i].type == VS_EVENT_LOST) {
			assert_null(gap);
			gap = &p.seen->instants[i];
		}
	}
	assert_non_null(gap);
	assert_int_equal(gap->cpu, 0);
	assert_int_equal(gap->event.arg0, 13);
	/* after the last good event on this CPU, before the next */
	assert_true(gap->t.ns > synth_host_ns(480 * MS));
	assert_true(gap->t.ns < synth_host_ns(560 * MS));
	vm = source_of(&p, SYNTH_VM);
	assert_int_equal(vm.missing, 13);
	assert_int_equal(vm.dropped_kernel, 13);
	assert_int_equal(vm.emitted, vm.delivered + 13);
	assert_int_equal(vm.lost_channel, 0);
	assert_int_equal(vm.losses->n, 1);
	assert_int_equal(vm.losses->spans[0].counts.kernel, 13);
	assert_true(vm.losses->spans[0].begin.ns <= synth_host_ns(520 * MS));
	assert_true(vm.losses->spans[0].end.ns >= synth_host_ns(520 * MS));
	assert_true(vm.losses->spans[0].begin.ns > synth_host_ns(400 * MS));
	assert_true(vm.losses->spans[0].end.ns < synth_host_ns(700 * MS));
	play_end(&p);
}

static void frames_lost_on_the_way_are_counted_and_leave_gaps(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	unsigned gaps = 0;
	struct pipeline_source vm;

	(void)state;
	scene_switches(s, 3 * MS, 500 * MS);
	synth_channel_loses(s, true);
	scene_switches(s, 510 * MS, 600 * MS);
	synth_channel_loses(s, false);
	scene_switches(s, 601 * MS, 1000 * MS);
	synth_free(s);
	play_offline(&p);
	for (size_t i = 0; i < p.seen->n_instants; i++)
		gaps += p.seen->instants[i].type == VS_EVENT_LOST;
	assert_int_equal(gaps, 2); /* one on each CPU */
	vm = source_of(&p, SYNTH_VM);
	assert_true(vm.lost_frames >= 4);
	assert_true(vm.missing > 0);
	assert_int_equal(vm.emitted, vm.delivered + vm.missing);
	/* by sequence numbers and by the sender's totals: two counts, one result */
	assert_int_equal(vm.lost_channel, vm.missing);
	assert_int_equal(vm.overdelivered, 0);
	assert_int_equal(vm.losses->n, 1);
	assert_int_equal(vm.losses->spans[0].counts.channel, vm.missing);
	assert_true(vm.losses->spans[0].begin.ns <= synth_host_ns(510 * MS));
	assert_true(vm.losses->spans[0].end.ns >= synth_host_ns(550 * MS));
	play_end(&p);
}

/* After them nothing more happens in the guest: only the sender's total tells. */
static void what_lost_frames_held_is_missing_before_a_heartbeat(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	unsigned gaps = 0;

	(void)state;
	scene_switches(s, 3 * MS, 500 * MS);
	synth_channel_loses(s, true);
	scene_switches(s, 510 * MS, 600 * MS);
	synth_channel_loses(s, false);
	synth_at(s, 2000 * MS);
	synth_free(s);
	play_offline(&p);
	for (size_t i = 0; i < p.seen->n_instants; i++) {
		const struct guest_instant *gap = &p.seen->instants[i];

		if (gap->type != VS_EVENT_LOST || !gap->event.arg0)
			continue;
		gaps++;
		assert_true(gap->t.ns < synth_host_ns(600 * MS));
	}
	assert_int_equal(gaps, 2); /* one on each CPU */
	play_end(&p);
}

/* Losses of both kinds, again and again: the parts sum to the whole, and so do the spans. */
static void every_event_is_accounted_for(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	struct loss_counts sum = {0};
	struct pipeline_source vm;
	uint64_t lost_in_kernel = 0;

	(void)state;
	for (int i = 0; i < 100; i++) {
		int64_t begin = 3 * MS + i * 400 * MS;

		synth_channel_loses(s, i % 3 == 1);
		scene_switches(s, begin, begin + 150 * MS);
		if (i % 3 != 1) {
			synth_guest_lose(s, (uint16_t)(i % 2), (uint32_t)i + 1);
			lost_in_kernel += (uint32_t)i + 1;
		}
		synth_channel_loses(s, false);
		scene_switches(s, begin + 200 * MS, begin + 390 * MS);
	}
	synth_free(s);
	play_offline(&p);
	vm = source_of(&p, SYNTH_VM);
	assert_int_equal(vm.dropped_kernel, lost_in_kernel);
	assert_true(vm.lost_channel > 0);
	assert_int_equal(vm.emitted,
			 vm.delivered + vm.dropped_kernel + vm.dropped_user + vm.lost_channel);
	for (size_t i = 0; i < vm.losses->n; i++) {
		const struct loss_span *span = &vm.losses->spans[i];

		sum.kernel += span->counts.kernel;
		sum.user += span->counts.user;
		sum.channel += span->counts.channel;
		assert_true(span->end.ns >= span->begin.ns);
		if (i)
			assert_true(span->begin.ns > span[-1].end.ns);
	}
	assert_int_equal(vm.losses->n, LOSS_SPANS_MAX);
	assert_int_equal(sum.kernel, vm.dropped_kernel);
	assert_int_equal(sum.user, vm.dropped_user);
	assert_int_equal(sum.channel, vm.lost_channel);
	play_end(&p);
}

/* A batch of guest CPU 1 with ten events from `seq` on, and the totals that its sender tells. */
static void ten_events(struct synth *s, int64_t t_ns, uint32_t seq, uint64_t dropped_user)
{
	struct batch_encoder *encoder = batch_encoder_new();
	struct byte_buffer payload = {0};
	struct vs_event events[10];
	struct batch b = {.cpu = 1,
			  .n_events = 10,
			  .events = events,
			  .emitted = seq + 10,
			  .dropped_user = dropped_user};

	synth_at(s, t_ns);
	for (uint32_t i = 0; i < 10; i++) {
		events[i] = synth_switch(TASK, 1, OTHER);
		events[i].time = synth_host_tsc0 + (uint64_t)(t_ns - (10 - i) * MS) * 5 / 2 + 1000;
		events[i].seq = seq + i;
		events[i].cpu = 1;
	}
	b.watermark = events[9].time;
	assert_non_null(encoder);
	assert_int_equal(batch_encode(encoder, &b, &payload), 0);
	synth_frame(s, SYNTH_VM, FRAME_BATCH, payload.data, payload.len);
	byte_buffer_fini(&payload);
	batch_encoder_free(encoder);
}

/* What an agent's queue drops is older than what waits in it, and that was made before the drop: it
 * tells of a hole, and only later batches tell whose it is. */
static void what_an_agent_tells_late_was_dropped_by_it(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	const struct loss_span *span;
	struct pipeline_source vm;

	(void)state;
	ten_events(s, 100 * MS, 0, 0);
	ten_events(s, 300 * MS, 30, 0);  /* twenty are missing */
	ten_events(s, 700 * MS, 40, 15); /* fifteen of them were dropped */
	ten_events(s, 1000 * MS, 50, 15);
	synth_at(s, 1300 * MS);
	synth_free(s);
	play_offline(&p);
	vm = source_of(&p, SYNTH_VM);
	assert_int_equal(vm.emitted, 60);
	assert_int_equal(vm.delivered, 40);
	assert_int_equal(vm.dropped_user, 15);
	assert_int_equal(vm.lost_channel, 5);
	assert_int_equal(vm.losses->n, 1);
	span = &vm.losses->spans[0];
	assert_int_equal(span->counts.user, 15);
	assert_int_equal(span->counts.channel, 5);
	assert_in_range(span->begin.ns, synth_host_ns(90 * MS), synth_host_ns(110 * MS));
	assert_in_range(span->end.ns, synth_host_ns(290 * MS), synth_host_ns(310 * MS));
	play_end(&p);
}

/* What a kernel lost without a number is told by heartbeats: what grew while we listened. */
static void what_has_no_number_is_counted_too(void **state)
{
	static const uint64_t words[] = {40, 40, 47, 47, 2, 5}; /* then the agent began anew */
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});

	(void)state;
	synth_guest_silent(s, true); /* its own heartbeats would know nothing of these */
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		static struct message_heartbeat beat;
		struct byte_buffer payload = {0};

		synth_at(s, (int64_t)(i + 1) * 100 * MS);
		beat.time = (i + 1) * 100 * MS;
		beat.missed = words[i];
		assert_int_equal(message_heartbeat_pack(&beat, &payload), 0);
		synth_frame(s, SYNTH_VM, FRAME_HEARTBEAT, payload.data, payload.len);
		byte_buffer_fini(&payload);
	}
	synth_free(s);
	play_offline(&p);
	assert_int_equal(source_of(&p, SYNTH_VM).missed, 7 + 5);
	play_end(&p);
}

/* Handlers that a guest counts instead of telling are not lost; a guest may say anything of them.
 */
static void handlers_only_counted_are_told_and_not_lost(void **state)
{
	static const struct message_aggregated words[] = {
		{100, 5000, 90},
		{100, 5000, 90},
		{130, 6000, 90},              /* 30 more */
		{10, 300, 95},                /* it began anew */
		{11, UINT64_MAX, UINT64_MAX}, /* lies */
	};
	static const uint64_t longest[] = {0, 0, 90, 95, UINT64_MAX};
	struct pipeline_source vm;

	(void)state;
	for (size_t n = 1; n <= sizeof(words) / sizeof(words[0]); n++) {
		struct play p;
		struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});

		synth_guest_silent(s, true);
		for (size_t i = 0; i < n; i++) {
			static struct message_heartbeat beat;
			struct byte_buffer payload = {0};

			synth_at(s, (int64_t)(i + 1) * 100 * MS);
			beat.time = (i + 1) * 100 * MS;
			beat.aggregated[EVENT_CLASS_SOFTIRQS] = words[i];
			assert_int_equal(message_heartbeat_pack(&beat, &payload), 0);
			synth_frame(s, SYNTH_VM, FRAME_HEARTBEAT, payload.data, payload.len);
			byte_buffer_fini(&payload);
		}
		synth_free(s);
		play_offline(&p);
		vm = source_of(&p, SYNTH_VM);
		assert_int_equal(vm.aggregated[EVENT_CLASS_SOFTIRQS].max_ns, longest[n - 1]);
		assert_int_equal(vm.aggregated[EVENT_CLASS_IRQS].count, 0);
		assert_int_equal(vm.dropped_kernel + vm.dropped_user + vm.missed, 0);
		/* What it counted before we listened says nothing of now. */
		assert_int_equal(model_data_of(p.model, SYNTH_VM).handlers_counted, n >= 3);
		if (n == 3) {
			assert_int_equal(vm.aggregated[EVENT_CLASS_SOFTIRQS].count, 30);
			assert_int_equal(vm.aggregated[EVENT_CLASS_SOFTIRQS].total_ns, 1000);
		}
		play_end(&p);
	}
	assert_int_equal(vm.aggregated[EVENT_CLASS_SOFTIRQS].count, 30 + 10 + 1);
	assert_int_equal(vm.aggregated[EVENT_CLASS_SOFTIRQS].total_ns, UINT64_MAX);
}

static void a_guests_account_ends_with_its_last_word(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});

	(void)state;
	scene_switches(s, 3 * MS, 500 * MS);
	synth_at(s, 540 * MS);
	synth_guest_silent(s, true);
	synth_at(s, 3000 * MS);
	synth_free(s);
	play_offline(&p);
	assert_in_range(p.seen->last_word_ns, synth_host_ns(499 * MS), synth_host_ns(501 * MS));
	play_end(&p);
}

static void replayed_frames_change_nothing(void **state)
{
	struct play once, twice;
	struct synth *s = scene_new(&once, (struct synth_options){.guest_tsc_offset = 1000});

	(void)state;
	scene_switches(s, 3 * MS, 1000 * MS);
	synth_free(s);
	memset(&twice, 0, sizeof(twice));
	for (size_t i = 0; i < once.tape.n; i++) {
		const struct entry *e = &once.tape.entries[i];

		tape_add(&twice.tape, e->source, e->arrival_tsc, &e->frame);
		if (e->source == SYNTH_VM) /* and one from far back */
			tape_add(&twice.tape, e->source, e->arrival_tsc,
				 i % 2 ? &e->frame : &once.tape.entries[2].frame);
	}
	play_offline(&once);
	play_offline(&twice);
	assert_int_equal(once.seen->n_instants, twice.seen->n_instants);
	for (size_t i = 0; i < once.seen->n_instants; i++)
		assert_int_equal(once.seen->instants[i].t.ns, twice.seen->instants[i].t.ns);
	assert_true(source_of(&twice, SYNTH_VM).replayed > 20);
	assert_int_equal(source_of(&twice, SYNTH_VM).missing, 0);
	play_end(&once);
	play_end(&twice);
}

static void a_lost_hello_is_made_up_for(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	struct tape whole;

	(void)state;
	scene_switches(s, 3 * MS, 3000 * MS);
	synth_free(s);
	whole = p.tape;
	memset(&p.tape, 0, sizeof(p.tape));
	for (size_t i = 0; i < whole.n; i++) {
		if (whole.entries[i].frame.header.kind != FRAME_HELLO)
			tape_add(&p.tape, whole.entries[i].source, whole.entries[i].arrival_tsc,
				 &whole.entries[i].frame);
	}
	tape_fini(&whole);
	play_offline(&p);
	assert_switches(p.seen, 3 * MS, 3000 * MS, 1000000);
	play_end(&p);
}

/* A sender that lost its first events says 0 for when that began. */
static void a_loss_since_nobody_knows_when_is_inside_the_recording(void **state)
{
	struct vs_event lost = {.cpu = 3, .type = VS_EVENT_LOST, .arg0 = 9};
	struct batch_encoder *encoder = batch_encoder_new();
	struct byte_buffer payload = {0};
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	struct batch batch = {.cpu = 3,
			      .watermark = synth_host_tsc0 + 1,
			      .emitted = 9,
			      .dropped_kernel = 9,
			      .n_events = 1,
			      .events = &lost};

	(void)state;
	assert_non_null(encoder);
	synth_at(s, 1 * MS);
	assert_int_equal(batch_encode(encoder, &batch, &payload), 0);
	synth_frame(s, VS_SOURCE_HOST, FRAME_BATCH, payload.data, payload.len);
	scene_switches(s, 3 * MS, 500 * MS);
	synth_free(s);
	play_offline(&p);
	assert_true(model_begin(p.model).ns > synth_host_ns(-100 * MS));
	assert_int_equal(source_of(&p, VS_SOURCE_HOST).dropped_kernel, 9);
	assert_true(source_of(&p, VS_SOURCE_HOST).losses->spans[0].begin.ns >
		    synth_host_ns(-100 * MS));
	play_end(&p);
	byte_buffer_fini(&payload);
	batch_encoder_free(encoder);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(live_what_an_agent_kept_from_before_is_no_loss),
		cmocka_unit_test(lost_events_become_a_gap),
		cmocka_unit_test(a_loss_since_nobody_knows_when_is_inside_the_recording),
		cmocka_unit_test(frames_lost_on_the_way_are_counted_and_leave_gaps),
		cmocka_unit_test(what_lost_frames_held_is_missing_before_a_heartbeat),
		cmocka_unit_test(every_event_is_accounted_for),
		cmocka_unit_test(what_an_agent_tells_late_was_dropped_by_it),
		cmocka_unit_test(what_has_no_number_is_counted_too),
		cmocka_unit_test(handlers_only_counted_are_told_and_not_lost),
		cmocka_unit_test(a_guests_account_ends_with_its_last_word),
		cmocka_unit_test(replayed_frames_change_nothing),
		cmocka_unit_test(a_lost_hello_is_made_up_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
