/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scenes written by synth.c through the pipeline into the real model: what was scripted must come
 * out at the scripted times, within the stated error, whatever the guest's clock reads and
 * whatever is wrong with the frames.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

#include <cmocka.h>

#include "host-collector/timeline/pipeline.h"
#include "proto/recording.h"
#include "tests/unit/synth.h"

#define MS 1000000ll
enum { VCPU0 = SYNTH_QEMU_PID + 1, HOG = 4242, TASK = 77, OTHER = 88 };

/* Every frame of a scene, to be played as often as a test likes. */
struct tape {
	struct entry {
		uint32_t source;
		uint64_t arrival_tsc;
		struct frame_view frame;
		uint8_t *bytes;
	} * entries;
	size_t n;
};

static void tape_add(void *context, uint32_t source, uint64_t arrival_tsc,
		     const struct frame_view *frame)
{
	struct tape *tape = context;
	struct entry *e;

	tape->entries = realloc(tape->entries, (tape->n + 1) * sizeof(*tape->entries));
	assert_non_null(tape->entries);
	e = &tape->entries[tape->n++];
	*e = (struct entry){source, arrival_tsc, *frame, malloc(frame->len)};
	assert_non_null(e->bytes);
	memcpy(e->bytes, frame->bytes, frame->len);
	e->frame.bytes = e->bytes;
}

static void tape_fini(struct tape *tape)
{
	for (size_t i = 0; i < tape->n; i++)
		free(tape->entries[i].bytes);
	free(tape->entries);
}

struct seen {
	struct guest_instant instants[20000];
	size_t n_instants;
	struct vcpu_span spans[20000];
	size_t n_spans;
	unsigned notes;
	int64_t last_word_ns;
	unsigned steals;
	struct guest_steal steal; /* the last */
};

static void see_instant(void *context, const struct guest_instant *i)
{
	struct seen *seen = context;

	if (i->type == VS_EVENT_LOST && !i->event.arg0) {
		seen->last_word_ns = i->t.ns;
		return; /* the end of what the guest said */
	}
	assert_true(seen->n_instants < 20000);
	if (seen->n_instants)
		assert_true(seen->instants[seen->n_instants - 1].t.ns <= i->t.ns);
	seen->instants[seen->n_instants++] = *i;
}

static void see_span(void *context, const struct vcpu_span *s)
{
	struct seen *seen = context;

	assert_true(seen->n_spans < 20000);
	seen->spans[seen->n_spans++] = *s;
}

static void see_steal(void *context, const struct guest_steal *steal)
{
	struct seen *seen = context;

	seen->steal = *steal;
	seen->steals++;
}

static void see_note(void *context, const struct message_note *note)
{
	(void)note;
	((struct seen *)context)->notes++;
}

struct play {
	struct tape tape;
	struct seen *seen, *early;
	struct model *model, *early_model;
	struct pipeline *pipeline;
};

static struct model *model_watched(struct seen *seen)
{
	struct model *m = model_new();
	const struct model_observer observer = {.guest_instant = see_instant,
						.vcpu_span = see_span,
						.guest_steal = see_steal,
						.context = seen};

	assert_non_null(m);
	assert_int_equal(model_observe(m, &observer), 0);
	return m;
}

static void play_start(struct play *p, bool live)
{
	struct pipeline_options options = {.live = live, .note = see_note};

	p->seen = calloc(1, sizeof(*p->seen));
	p->model = model_watched(p->seen);
	if (live) {
		p->early = calloc(1, sizeof(*p->early));
		p->early_model = model_watched(p->early);
	}
	options.model = p->model;
	options.early = p->early_model;
	options.context = p->seen;
	p->pipeline = pipeline_new(&options);
	assert_non_null(p->pipeline);
}

static void play_entry(struct play *p, const struct entry *e)
{
	assert_int_equal(pipeline_frame(p->pipeline, e->source, e->arrival_tsc, &e->frame), 0);
}

static void play_offline(struct play *p)
{
	play_start(p, false);
	for (size_t i = 0; i < p->tape.n; i++) {
		const struct entry *e = &p->tape.entries[i];

		assert_int_equal(pipeline_learn(p->pipeline, e->source, e->arrival_tsc, &e->frame),
				 0);
	}
	assert_int_equal(pipeline_learned(p->pipeline), 0);
	for (size_t i = 0; i < p->tape.n; i++)
		play_entry(p, &p->tape.entries[i]);
	assert_int_equal(pipeline_finish(p->pipeline), 0);
}

static void play_end(struct play *p)
{
	pipeline_free(p->pipeline);
	model_free(p->model);
	model_free(p->early_model);
	free(p->seen);
	free(p->early);
	tape_fini(&p->tape);
}

static struct pipeline_source source_of(const struct play *p, uint32_t id)
{
	struct pipeline_source s;

	for (size_t i = 0; !pipeline_source_get(p->pipeline, i, &s); i++) {
		if (s.source == id)
			return s;
	}
	fail_msg("no source %u", id);
	return s;
}

static struct synth *scene_new(struct play *p, struct synth_options options)
{
	memset(p, 0, sizeof(*p));
	options.entry = tape_add;
	options.context = &p->tape;
	return synth_new(&options);
}

/* A guest switch every 7 ms on alternate CPUs, for a second. */
static void scene_switches(struct synth *s, int64_t begin, int64_t end)
{
	for (int64_t t = begin, i = 0; t < end; t += 7 * MS, i++) {
		synth_at(s, t);
		synth_guest_event(s, (uint16_t)(i % 2),
				  i & 2 ? synth_switch(TASK, 1, OTHER)
					: synth_switch(OTHER, 1, TASK));
	}
}

/* The i-th instant lies where it was scripted, within what is claimed. */
static void assert_switches(const struct seen *seen, int64_t begin, int64_t end, uint32_t err_limit)
{
	size_t i = 0;

	for (int64_t t = begin; t < end; t += 7 * MS, i++) {
		const struct guest_instant *at = &seen->instants[i];

		assert_true(i < seen->n_instants);
		assert_true(llabs(at->t.ns - synth_host_ns(t)) <= at->err_ns);
		assert_true(at->err_ns < err_limit);
	}
	assert_int_equal(seen->n_instants, i);
}

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
		assert_int_equal(vm.nonsense, 0);
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

static const struct vcpu_span *span_find(const struct seen *seen, enum vcpu_state state)
{
	for (size_t i = 0; i < seen->n_spans; i++) {
		if (seen->spans[i].state == state && seen->spans[i].tid == VCPU0)
			return &seen->spans[i];
	}
	return NULL;
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

static void the_hypervisors_word_is_exact_if_round_trips_bear_it_out(void **state)
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
		{{.guest_tsc_offset = 900000000000}, 1000000, "echo", 400000},
		{{.guest_tsc_offset = 900000000000}, -1000000, "echo", 400000},
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
			assert_switches(p.seen, 3 * MS, 1000 * MS,
					live ? 1000000 : cases[i].err_limit);
			vm = source_of(&p, SYNTH_VM);
			assert_string_equal(vm.clock_method, cases[i].method);
			assert_int_equal(vm.causality_violations, 0);
			assert_int_equal(vm.clock_disagreements != 0, cases[i].lie != 0);
			assert_true(vm.causality_pairs > 20);
			clock_book_summarise(pipeline_clocks(p.pipeline), SYNTH_VM, &clock);
			assert_int_equal(clock.compared, !cases[i].lie);
			assert_true((uint64_t)llabs(clock.exact_from_echo_ns) <= clock.echo_err_ns);
			play_end(&p);
		}
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

/* The host's half of a stall: a hog takes the vCPU's pCPU from 300 to 800 ms. */
static void scene_hog(struct synth *s)
{
	synth_at(s, 1 * MS);
	synth_host_event(s, 0, synth_switch(0, 0, VCPU0));
	synth_at(s, 300 * MS);
	synth_host_event(s, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_guest_silent(s, true);
	synth_at(s, 800 * MS);
	synth_host_event(s, 0, synth_switch(HOG, 1, VCPU0));
	synth_guest_silent(s, false);
	synth_at(s, 1200 * MS);
	synth_host_event(s, 0, synth_switch(VCPU0, 1, 0));
	synth_at(s, 1300 * MS);
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
	assert_int_equal(source_of(&p, SYNTH_VM).nonsense, 3);
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
	assert_true(source_of(&p, SYNTH_VM).nonsense > sent * 9 / 10);
	play_end(&p);
}

static void a_guest_that_lies_about_the_time_harms_only_itself(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	struct message_heartbeat beat = {.time = UINT64_MAX / 4};
	struct byte_buffer payload = {0};
	const struct vcpu_span *span;

	(void)state;
	synth_at(s, 60 * MS);
	assert_int_equal(message_heartbeat_pack(&beat, &payload), 0);
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
	assert_true(source_of(&p, SYNTH_VM).causality_violations >= 1);
	assert_int_equal(source_of(&p, VS_SOURCE_HOST).late, 0);
	span = span_find(p.seen, VCPU_RUNNABLE);
	assert_non_null(span);
	assert_true(llabs(span->end.ns - synth_host_ns(500 * MS)) <= 100);
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

static void host_times_become_the_guests_dmesg_times(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	uint64_t dmesg;

	(void)state;
	synth_at(s, 1000 * MS);
	synth_free(s);
	play_offline(&p);
	assert_true(pipeline_dmesg_ns(p.pipeline, SYNTH_VM,
				      (struct host_ns){synth_host_ns(620 * MS)}, &dmesg));
	assert_true(llabs((int64_t)dmesg - (100000 * MS + 620 * MS)) < 400000);
	assert_false(pipeline_dmesg_ns(p.pipeline, 9, (struct host_ns){0}, &dmesg));
	play_end(&p);
}

static void the_guests_kernel_log_is_kept_up_to_a_bound(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 1000});
	struct message_kernel_log *log = calloc(1, sizeof(*log));
	struct byte_buffer payload = {0};
	size_t n = 0;

	(void)state;
	log->n_lines = VS_LOG_LINES_MAX;
	for (uint64_t round = 0; round < 6; round++) {
		for (size_t i = 0; i < log->n_lines; i++)
			log->lines[i] = (struct message_log_line){
				.dmesg_us = round * 1000 + i, .level = 4, .text = "watchdog: BUG"};
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
	play_end(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(guest_times_land_on_the_hosts_whatever_its_clock_reads),
		cmocka_unit_test(the_hypervisors_word_is_exact_if_round_trips_bear_it_out),
		cmocka_unit_test(a_pause_that_qemu_tells_of_reaches_the_model),
		cmocka_unit_test(live_and_offline_tell_the_same_story),
		cmocka_unit_test(live_what_an_agent_kept_from_before_is_no_loss),
		cmocka_unit_test(a_scripted_stall_comes_out_to_the_nanosecond),
		cmocka_unit_test(live_a_silent_guest_does_not_hold_the_hosts_half),
		cmocka_unit_test(lost_events_become_a_gap),
		cmocka_unit_test(frames_lost_on_the_way_are_counted_and_leave_gaps),
		cmocka_unit_test(every_event_is_accounted_for),
		cmocka_unit_test(what_has_no_number_is_counted_too),
		cmocka_unit_test(a_guests_account_ends_with_its_last_word),
		cmocka_unit_test(replayed_frames_change_nothing),
		cmocka_unit_test(what_only_the_host_may_say_is_not_taken_from_a_guest),
		cmocka_unit_test(a_guests_steal_is_placed_unless_it_lies_ahead_of_its_arrival),
		cmocka_unit_test(payloads_of_noise_are_counted_and_cost_nothing_else),
		cmocka_unit_test(a_guest_that_lies_about_the_time_harms_only_itself),
		cmocka_unit_test(one_half_alone_is_still_told),
		cmocka_unit_test(without_an_echo_the_guest_is_placed_by_its_arrivals),
		cmocka_unit_test(a_lost_hello_is_made_up_for),
		cmocka_unit_test(host_times_become_the_guests_dmesg_times),
		cmocka_unit_test(the_guests_kernel_log_is_kept_up_to_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
