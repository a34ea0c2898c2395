/* SPDX-License-Identifier: GPL-2.0-only */
/* Plays scenes of synth.c through the pipeline into the real model: each scripted event must
 * come at its scripted time, within the stated error, for any value of the guest's clock. */
#include "proto/recording.h"
#include "tests/unit/pipeline_play.h"

static void guest_times_land_on_the_hosts_whatever_its_clock_reads(void **state)
{
	static const struct synth_options clocks[] = {
		{.guest_tsc_offset = 5},
		{.guest_tsc_offset = 900000000000},
		{.guest_tsc_offset = 123456789, .guest_hz = 1000000000},
		{.guest_tsc_offset = 1ll << 60, .guest_hz = 3100000000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		struct play p;
		struct synth *s = scene_new(&p, clocks[i]);
		struct pipeline_source vm;

		scene_switches(s, 3 * MS, 1000 * MS);
		synth_free(s);
		play_offline(&p);
		assert_switches(p.seen, 3 * MS, 1000 * MS, 400000);
		vm = source_of(&p, SYNTH_VM);
		assert_string_equal(vm.clock_method, "echo");
		assert_string_equal(vm.name, "web1");
		assert_int_equal(vm.causality_violations, 0);
		assert_int_equal(vm.malformed, 0);
		assert_int_equal(vm.delivered, p.seen->n_instants);
		assert_int_equal(vm.emitted, p.seen->n_instants);
		assert_true(vm.clock_error_ns < 400000);
		play_end(&p);
	}
}

static void live_and_offline_tell_the_same_story(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 77777});

	(void)state;
	scene_switches(s, 3 * MS, 2000 * MS);
	synth_free(s);
	play_start(&p, true);
	for (size_t i = 0; i < p.tape.n; i++)
		play_entry(&p, &p.tape.entries[i]);
	assert_int_equal(pipeline_finish(p.pipeline), 0);
	assert_switches(p.seen, 3 * MS, 2000 * MS, 1000000);
	assert_int_equal(source_of(&p, SYNTH_VM).late, 0);
	assert_int_equal(source_of(&p, SYNTH_VM).causality_violations, 0);
	play_end(&p);
}

/* A batch whose events are at hand is taken as its frame is, and is not changed. */
static void live_batches_and_their_frames_tell_the_same_story(void **state)
{
	struct batch_decoder *decoder = batch_decoder_new();
	struct frame_unpacker *unpacker = frame_unpacker_new();
	struct play by_frame, by_batch;
	struct synth *s = scene_new(&by_frame, (struct synth_options){.guest_tsc_offset = 77777});
	struct vs_event *before = malloc(VS_BATCH_EVENTS_MAX * sizeof(*before));
	size_t batches = 0;

	(void)state;
	scene_switches(s, 3 * MS, 2000 * MS);
	synth_free(s);
	play_start(&by_frame, true);
	memset(&by_batch, 0, sizeof(by_batch));
	play_start(&by_batch, true);
	for (size_t i = 0; i < by_frame.tape.n; i++) {
		const struct entry *e = &by_frame.tape.entries[i];
		struct frame_item item = frame_item_of(&e->frame);
		const uint8_t *payload;
		struct batch batch;
		size_t len;

		play_entry(&by_frame, e);
		if (item.kind != FRAME_BATCH) {
			play_entry(&by_batch, e);
			continue;
		}
		assert_int_equal(frame_unpack(unpacker, &e->frame, &payload, &len), 0);
		assert_int_equal(batch_decode(decoder, payload, len, &batch), 0);
		memcpy(before, batch.events, batch.n_events * sizeof(*before));
		item.batch = &batch;
		assert_int_equal(
			pipeline_batch(by_batch.pipeline, e->source, e->arrival_tsc, &item), 0);
		assert_memory_equal(before, batch.events, batch.n_events * sizeof(*before));
		/* Its memory is another's from now on. */
		memset(batch.events, 0xff, batch.n_events * sizeof(*before));
		batches++;
	}
	assert_true(batches > 10);
	assert_int_equal(pipeline_finish(by_frame.pipeline), 0);
	assert_int_equal(pipeline_finish(by_batch.pipeline), 0);
	assert_switches(by_batch.seen, 3 * MS, 2000 * MS, 1000000);
	assert_int_equal(by_batch.seen->n_instants, by_frame.seen->n_instants);
	for (size_t i = 0; i < by_batch.seen->n_instants; i++) {
		const struct guest_instant *a = &by_batch.seen->instants[i];
		const struct guest_instant *b = &by_frame.seen->instants[i];

		assert_int_equal(a->t.ns, b->t.ns);
		assert_int_equal(a->err_ns, b->err_ns);
		assert_memory_equal(&a->event, &b->event, sizeof(a->event));
	}
	assert_int_equal(by_batch.seen->n_spans, by_frame.seen->n_spans);
	free(before);
	batch_decoder_free(decoder);
	frame_unpacker_free(unpacker);
	play_end(&by_frame);
	play_end(&by_batch);
}

/* What the VM's hypervisor is made to say about its TSC, off by `lie` ticks. */
static void scene_vm_clock(struct synth *s, uint64_t host_hz, struct synth_options o, int64_t lie)
{
	struct message_vm_clock m = {
		.vm = SYNTH_VM,
		.source = VM_CLOCK_VCPU,
		.from_max = synth_host_tsc0,
		.tsc = {.known = true, .scaling_known = true},
	};
	struct byte_buffer payload = {0};
	uint64_t scaled = synth_host_tsc0;

	if (o.guest_hz && o.guest_hz != host_hz) {
		m.tsc.frac_bits = 32;
		m.tsc.ratio = (uint64_t)(((unsigned __int128)o.guest_hz << 32) / host_hz);
		scaled = (uint64_t)((unsigned __int128)scaled * m.tsc.ratio >> 32);
	}
	m.tsc.offset = (uint64_t)o.guest_tsc_offset - scaled + (uint64_t)lie;
	assert_int_equal(message_vm_clock_pack(&m, &payload), 0);
	synth_frame(s, VS_SOURCE_HOST, FRAME_VM_CLOCK, payload.data, payload.len);
	byte_buffer_fini(&payload);
}

static void assert_nothing_is_proven(const struct seen *seen)
{
	assert_true(seen->n_instants > 100);
	for (size_t i = 0; i < seen->n_instants; i++)
		assert_int_equal(seen->instants[i].err_ns, UINT32_MAX);
}

static void the_hypervisors_word_is_exact_if_no_round_trip_contradicts_it(void **state)
{
	static const struct {
		struct synth_options clock;
		int64_t lie;
		const char *method;
		uint32_t err_limit;
	} cases[] = {
		{{.guest_tsc_offset = 900000000000}, 0, "tsc", 200},
		/* 2.5 to 1 GHz: one guest tick is a ns, the ratio is cut off at 2^-32 */
		{{.guest_tsc_offset = 900000000000, .guest_hz = 1000000000}, 0, "tsc", 200},
		/* Either side may be wrong: nothing is proven. */
		{{.guest_tsc_offset = 900000000000}, 1000000, "untrusted", 0},
		{{.guest_tsc_offset = 900000000000}, -1000000, "untrusted", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int live = 0; live <= 1; live++) {
			struct clock_book_summary clock;
			struct pipeline_source vm;
			struct play p;
			struct synth *s = scene_new(&p, cases[i].clock);

			scene_vm_clock(s, 2500000000, cases[i].clock, cases[i].lie);
			scene_switches(s, 3 * MS, 1000 * MS);
			synth_free(s);
			if (live) {
				play_start(&p, true);
				for (size_t k = 0; k < p.tape.n; k++)
					play_entry(&p, &p.tape.entries[k]);
				assert_int_equal(pipeline_finish(p.pipeline), 0);
			} else {
				play_offline(&p);
			}
			if (!cases[i].lie)
				assert_switches(p.seen, 3 * MS, 1000 * MS,
						live ? 1000000 : cases[i].err_limit);
			else if (!live)
				assert_nothing_is_proven(p.seen);
			vm = source_of(&p, SYNTH_VM);
			assert_string_equal(vm.clock_method, cases[i].method);
			assert_int_equal(vm.causality_violations, 0);
			assert_int_equal(vm.clock_disagreements != 0, cases[i].lie != 0);
			assert_true(vm.causality_pairs > 20);
			clock_book_summarise(pipeline_clocks(p.pipeline), SYNTH_VM, &clock);
			assert_true(clock.compared);
			assert_int_equal((uint64_t)llabs(clock.exact_from_echo_ns) >
						 clock.echo_err_ns,
					 cases[i].lie != 0);
			play_end(&p);
		}
	}
}

/* A vCPU's TSC, `ahead` of that which stamps the guest's events, and its kvmclock line: both vCPUs
 * read one kvmclock. */
static void scene_vcpu_clock(struct synth *s, uint32_t vcpu, int64_t tsc0, int64_t ahead)
{
	struct message_vm_clock m = {
		.vm = SYNTH_VM,
		.vcpu = vcpu,
		.source = VM_CLOCK_VCPU,
		.from_max = synth_host_tsc0,
		.tsc = {.known = true,
			.scaling_known = true,
			.offset = (uint64_t)(tsc0 + ahead) - synth_host_tsc0},
	};
	struct byte_buffer payload = {0};

	assert_int_equal(message_vm_clock_pack(&m, &payload), 0);
	synth_frame(s, VS_SOURCE_HOST, FRAME_VM_CLOCK, payload.data, payload.len);
	m = (struct message_vm_clock){
		.vm = SYNTH_VM,
		.vcpu = vcpu,
		.source = VM_CLOCK_PVCLOCK_UPDATE,
		.from_min = synth_host_tsc0,
		.from_max = synth_host_tsc0,
		.pvclock = {.known = true,
			    .tsc_timestamp = (uint64_t)(tsc0 + ahead),
			    .system_time = 5000000000,
			    .mul = 3435973836,
			    .shift = -1},
	};
	payload.len = 0;
	assert_int_equal(message_vm_clock_pack(&m, &payload), 0);
	synth_frame(s, VS_SOURCE_HOST, FRAME_VM_CLOCK, payload.data, payload.len);
	byte_buffer_fini(&payload);
}

static void vcpus_with_tscs_of_their_own_are_converted_by_their_own_maps(void **state)
{
	enum { TSC0 = 1000000000, APART = 250000 }; /* 100 us */
	static const struct {
		uint32_t tsc_cpu;
		int64_t least_ns, most_ns; /* of the bound */
	} cases[] = {
		{1, 0, 200},           /* the samples were read on CPU 0 */
		{0, 100000, 101000},   /* nobody says where */
		{100, 100000, 101000}, /* a CPU that HELLO does not know */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pipeline_source vm;
		struct play p;
		struct synth *s =
			scene_new(&p, (struct synth_options){.guest_tsc_offset = TSC0,
							     .tsc_cpu = cases[i].tsc_cpu});

		scene_vcpu_clock(s, 0, TSC0, 0);
		scene_vcpu_clock(s, 1, TSC0, i % 2 ? APART : -APART);
		scene_switches(s, 3 * MS, 1000 * MS);
		synth_free(s);
		play_offline(&p);
		assert_switches(p.seen, 3 * MS, 1000 * MS, (uint32_t)cases[i].most_ns);
		for (size_t k = 0; k < p.seen->n_instants; k++)
			assert_true(p.seen->instants[k].err_ns >= cases[i].least_ns);
		vm = source_of(&p, SYNTH_VM);
		assert_string_equal(vm.clock_method, "tsc");
		assert_int_equal(vm.causality_violations, 0);
		assert_int_equal(vm.clock_disagreements, 0);
		play_end(&p);
	}
}

/* QEMU says that the VM was paused while its thread was off the CPU. */
static void a_pause_that_qemu_tells_of_reaches_the_model(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});

	(void)state;
	synth_at(s, 1 * MS);
	synth_host_event(s, 0, synth_switch(0, 0, VCPU0));
	synth_at(s, 300 * MS);
	synth_host_event(s, 0, synth_switch(VCPU0, 1, 0));
	for (int resumed = 0; resumed <= 1; resumed++) {
		struct message_note note = {
			.vm = SYNTH_VM,
			.kind = resumed ? NOTE_VM_RESUMED : NOTE_VM_PAUSED,
			.host_tsc = synth_host_tsc0 + 2500000ull * (resumed ? 800 : 301),
		};
		struct byte_buffer payload = {0};

		synth_at(s, resumed ? 800 * MS : 301 * MS);
		assert_int_equal(message_note_pack(&note, &payload), 0);
		synth_frame(s, VS_SOURCE_HOST, FRAME_NOTE, payload.data, payload.len);
		byte_buffer_fini(&payload);
	}
	synth_at(s, 801 * MS);
	synth_host_event(s, 0, synth_wakeup(VCPU0, 1, 0));
	synth_host_event(s, 0, synth_switch(0, 0, VCPU0));
	synth_at(s, 1000 * MS);
	synth_free(s);
	play_offline(&p);
	assert_non_null(span_find(p.seen, VCPU_STOPPED));
	play_end(&p);
}

static void a_scripted_stall_comes_out_to_the_nanosecond(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	const struct vcpu_span *span;

	(void)state;
	scene_hog(s);
	synth_free(s);
	play_offline(&p);
	span = span_find(p.seen, VCPU_RUNNABLE);
	assert_non_null(span);
	assert_true(llabs(span->begin.ns - synth_host_ns(300 * MS)) <= 100);
	assert_true(llabs(span->end.ns - synth_host_ns(800 * MS)) <= 100);
	assert_int_equal(span->holder_pid, HOG);
	play_end(&p);
}

static void live_a_silent_guest_does_not_hold_the_hosts_half(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	struct vcpu_span now;
	bool seen_early = false;

	(void)state;
	scene_switches(s, 3 * MS, 290 * MS);
	synth_at(s, 290 * MS);
	synth_host_event(s, 0, synth_switch(0, 0, VCPU0));
	synth_at(s, 300 * MS);
	synth_host_event(s, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_guest_silent(s, true);
	synth_at(s, 3000 * MS);
	synth_free(s);
	play_start(&p, true);
	for (size_t i = 0; i < p.tape.n; i++) {
		play_entry(&p, &p.tape.entries[i]);
		if (!model_vcpu_current(p.early_model, SYNTH_VM, 0, &now) &&
		    now.state == VCPU_RUNNABLE && now.end.ns - now.begin.ns > 100 * MS)
			seen_early = true;
	}
	assert_true(seen_early);
	/* The merged model still waits for the guest: it may yet say what it was doing. */
	assert_int_not_equal(model_vcpu_current(p.model, SYNTH_VM, 0, &now) ? 0 : now.state,
			     VCPU_RUNNABLE);
	play_end(&p);
}

static void one_half_alone_is_still_told(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.no_host = true});
	struct pipeline_source vm;

	(void)state;
	scene_switches(s, 3 * MS, 500 * MS);
	synth_free(s);
	play_offline(&p);
	assert_int_equal(p.seen->n_instants, 71);
	for (size_t i = 1; i < 71; i++)
		assert_true(llabs(p.seen->instants[i].t.ns - p.seen->instants[i - 1].t.ns -
				  7 * MS) <= 10000);
	vm = source_of(&p, SYNTH_VM);
	assert_string_equal(vm.clock_method, "none");
	assert_true(vm.clock_error_ns == UINT64_MAX);
	play_end(&p);

	s = scene_new(&p, (struct synth_options){.no_guest = true});
	scene_hog(s);
	synth_free(s);
	play_offline(&p);
	assert_non_null(span_find(p.seen, VCPU_RUNNABLE));
	assert_int_equal(p.seen->n_instants, 0);
	play_end(&p);
}

static void without_an_echo_the_guest_is_placed_by_its_arrivals(void **state)
{
	struct play p;
	struct synth *s =
		scene_new(&p, (struct synth_options){.guest_tsc_offset = 12345, .no_echo = true});

	(void)state;
	scene_switches(s, 3 * MS, 500 * MS);
	synth_free(s);
	play_offline(&p);
	assert_int_equal(p.seen->n_instants, 71);
	for (int64_t i = 0; i < 71; i++)
		/* off by the channel's latency, and not said to be any better */
		assert_true(llabs(p.seen->instants[i].t.ns - synth_host_ns((3 + 7 * i) * MS)) < MS);
	assert_string_equal(source_of(&p, SYNTH_VM).clock_method, "none");
	play_end(&p);
}

static void host_times_become_the_guests_dmesg_times(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	struct dmesg_time dmesg;

	(void)state;
	synth_at(s, 1000 * MS);
	synth_free(s);
	play_offline(&p);
	assert_true(pipeline_dmesg(p.pipeline, SYNTH_VM, (struct host_ns){synth_host_ns(620 * MS)},
				   &dmesg));
	assert_true(llabs((int64_t)dmesg.ns - (100000 * MS + 620 * MS)) < 400000);
	assert_false(pipeline_dmesg(p.pipeline, 9, (struct host_ns){0}, &dmesg));
	play_end(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(guest_times_land_on_the_hosts_whatever_its_clock_reads),
		cmocka_unit_test(the_hypervisors_word_is_exact_if_no_round_trip_contradicts_it),
		cmocka_unit_test(vcpus_with_tscs_of_their_own_are_converted_by_their_own_maps),
		cmocka_unit_test(a_pause_that_qemu_tells_of_reaches_the_model),
		cmocka_unit_test(live_and_offline_tell_the_same_story),
		cmocka_unit_test(live_batches_and_their_frames_tell_the_same_story),
		cmocka_unit_test(a_scripted_stall_comes_out_to_the_nanosecond),
		cmocka_unit_test(live_a_silent_guest_does_not_hold_the_hosts_half),
		cmocka_unit_test(one_half_alone_is_still_told),
		cmocka_unit_test(without_an_echo_the_guest_is_placed_by_its_arrivals),
		cmocka_unit_test(host_times_become_the_guests_dmesg_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
