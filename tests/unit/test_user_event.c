// SPDX-License-Identifier: GPL-2.0-only
/* Tests events that the user chose: how a reader interprets descriptions and records, also if
 * some are missing, and that they pass codec, pipeline and model unchanged. */
#include "host-collector/analyze/stall/builder.h"
#include "host-collector/view/finding_text.h"
#include "proto/codec.h"
#include "proto/event_fields.h"
#include "proto/user_event.h"
#include "tests/unit/pipeline_play.h"

enum { HITS_MAX = 4096 };

struct heard {
	struct user_events *known;
	struct user_hits *hits;
	size_t n;
	struct user_hit hit[HITS_MAX];
};

static void hear(void *context, const struct user_hit *hit)
{
	struct heard *heard = context;

	assert_true(heard->n < HITS_MAX);
	heard->hit[heard->n++] = *hit;
}

/* Event 1 has five values in four fields, event 2 one. */
static void describe(struct message_user_events *m)
{
	*m = (struct message_user_events){.n = 2};
	m->events[0] = (struct message_user_event){
		.id = 1,
		.kind = USER_TRACEPOINT,
		.system = "sched",
		.name = "sched_process_exec",
		.n_fields = 4,
		.fields = {{"pid", USER_SIGNED, 4},
			   {"comm", USER_TEXT, 16},
			   {"mask", USER_HEX, 8},
			   {"n", USER_UNSIGNED, 8}},
	};
	m->events[1] = (struct message_user_event){.id = 2,
						   .kind = USER_KPROBE,
						   .system = "kprobe",
						   .name = "do_nanosleep",
						   .n_fields = 1,
						   .fields = {{"mode", USER_SIGNED, 4}}};
}

static struct heard *heard_new(void)
{
	struct message_user_events *m = malloc(sizeof(*m));
	struct heard *heard = calloc(1, sizeof(*heard));

	assert_true(m && heard);
	heard->known = user_events_new();
	assert_non_null(heard->known);
	describe(m);
	assert_int_equal(user_events_learn(heard->known, 0, m), 0);
	heard->hits = user_hits_new(heard->known, hear, heard);
	assert_non_null(heard->hits);
	free(m);
	return heard;
}

static void heard_free(struct heard *heard)
{
	user_hits_free(heard->hits);
	user_events_free(heard->known);
	free(heard);
}

/* Writes the three records of a hit of event 1. */
static void records_of(struct vs_event e[3], uint32_t seq, uint16_t cpu, int32_t pid)
{
	char comm[16] = "vcpuscope-test";

	for (uint32_t i = 0; i < 3; i++) {
		e[i] = (struct vs_event){.time = 1000 + seq,
					 .seq = seq + i,
					 .cpu = cpu,
					 .type = i ? VS_EVENT_USER_MORE : VS_EVENT_USER,
					 .pid = pid};
		ev_set_user_more_id(&e[i], 1);
		ev_set_user_more_part(&e[i], i);
	}
	e[0].arg0 = (uint64_t)-7;
	memcpy(&e[0].arg1, comm, 8);
	memcpy(&e[1].arg0, comm + 8, 8);
	e[1].arg1 = 0xf00f;
	e[2].arg0 = (uint64_t)pid;
}

static void take(struct heard *heard, const struct vs_event *e)
{
	user_hits_take(heard->hits, 0, e, (int64_t)e->time, 5);
}

static void assert_whole(const struct user_hit *hit, int32_t pid)
{
	uint64_t value;
	char text[32];

	assert_int_equal(hit->n_values, 5);
	assert_int_equal(hit->head.pid, pid);
	assert_true(user_hit_number(hit, 0, &value));
	assert_int_equal((int64_t)value, -7);
	assert_false(user_hit_number(hit, 1, &value));
	assert_string_equal(user_hit_text(hit, 1, text, sizeof(text)), "vcpuscope-test");
	assert_string_equal(user_hit_text(hit, 0, text, sizeof(text)), "-7");
	assert_string_equal(user_hit_text(hit, 2, text, sizeof(text)), "0xf00f");
	assert_true(user_hit_number(hit, 3, &value));
	assert_int_equal(value, pid);
	assert_false(user_hit_number(hit, 4, &value));
}

static void the_records_of_a_hit_come_together(void **state)
{
	struct heard *heard = heard_new();
	struct vs_event a[3], b[3];

	(void)state;
	records_of(a, 10, 0, 100);
	records_of(b, 70, 1, 200);
	/* Records of two CPUs may mix. */
	take(heard, &a[0]);
	take(heard, &b[0]);
	take(heard, &b[1]);
	take(heard, &a[1]);
	take(heard, &a[2]);
	take(heard, &b[2]);
	assert_int_equal(heard->n, 2);
	assert_whole(&heard->hit[0], 100);
	assert_whole(&heard->hit[1], 200);
	assert_int_equal(heard->hit[0].t_ns, 1010);
	assert_int_equal(heard->hit[0].err_ns, 5);
	user_hits_flush(heard->hits);
	assert_int_equal(heard->n, 2);
	heard_free(heard);
}

/* Whatever is lost, each head that arrives gives one hit, and no hit has a value of another. */
static void a_lost_record_leaves_values_out(void **state)
{
	(void)state;
	for (unsigned lost = 0; lost < 8 * 8; lost++) {
		struct heard *heard = heard_new();
		struct vs_event e[6];
		size_t heads = 0;

		records_of(e, 10, 0, 100);
		records_of(e + 3, 13, 0, 200);
		for (unsigned i = 0; i < 6; i++) {
			if (lost >> i & 1)
				continue;
			heads += i % 3 == 0;
			take(heard, &e[i]);
		}
		user_hits_flush(heard->hits);
		assert_int_equal(heard->n, heads);
		for (size_t i = 0; i < heard->n; i++) {
			const struct user_hit *hit = &heard->hit[i];
			const unsigned mine = hit->head.pid == 100 ? lost & 7 : lost >> 3;
			uint64_t value;

			assert_int_equal(hit->n_values, mine & 2 ? 2 : mine & 4 ? 4 : 5);
			if (user_hit_number(hit, 3, &value))
				assert_int_equal(value, hit->head.pid);
		}
		heard_free(heard);
	}
}

static void a_hit_without_description_stays(void **state)
{
	struct heard *heard = heard_new();
	struct vs_event e[3];
	char text[8];

	(void)state;
	records_of(e, 10, 0, 100);
	ev_set_user_id(&e[0], 9);
	take(heard, &e[0]);
	assert_int_equal(heard->n, 1);
	assert_null(heard->hit[0].event);
	assert_int_equal(heard->hit[0].n_values, 2);
	assert_string_equal(user_hit_text(&heard->hit[0], 0, text, sizeof(text)), "?");
	/* The same numbers of another stream have another meaning. */
	assert_null(user_events_find(heard->known, 1, 1));
	heard_free(heard);
}

static void descriptions_change_only_their_state(void **state)
{
	struct heard *heard = heard_new();
	struct message_user_events *m = malloc(sizeof(*m));
	const struct message_user_event *e = user_events_find(heard->known, 0, 2);
	uint32_t source;

	(void)state;
	assert_non_null(m);
	describe(m);
	m->events[1].limited = 17;
	m->events[1].flags = USER_DETACHED;
	assert_int_equal(user_events_learn(heard->known, 0, m), 0);
	assert_ptr_equal(user_events_find(heard->known, 0, 2), e);
	assert_int_equal(e->limited, 17);
	assert_null(user_events_at(heard->known, 2, &source));
	/* A sender that began anew: the newest meaning counts. */
	strcpy(m->events[1].name, "do_exit");
	assert_int_equal(user_events_learn(heard->known, 0, m), 0);
	assert_string_equal(user_events_find(heard->known, 0, 2)->name, "do_exit");
	assert_string_equal(e->name, "do_nanosleep");
	/* However many a hostile guest sends. */
	m->n = 1;
	for (uint32_t i = 0; i < 2 * USER_EVENTS_KNOWN_MAX; i++) {
		m->events[0].id = 1 + i % VS_USER_ID_MAX;
		assert_int_equal(user_events_learn(heard->known, 5, m), 0);
	}
	assert_null(user_events_at(heard->known, 3 + USER_EVENTS_OF_STREAM_MAX, &source));
	/* The other streams have their room. */
	m->events[0].id = 77;
	assert_int_equal(user_events_learn(heard->known, 0, m), 0);
	assert_non_null(user_events_find(heard->known, 0, 77));
	for (uint32_t i = 0; i < 2 * USER_EVENTS_KNOWN_MAX; i++)
		assert_int_equal(user_events_learn(heard->known, 6 + i, m), 0);
	assert_null(user_events_at(heard->known, USER_EVENTS_KNOWN_MAX, &source));
	free(m);
	heard_free(heard);
}

/* ---- on the way ---- */

static void records_survive_the_codec(void **state)
{
	struct batch_encoder *encoder = batch_encoder_new();
	struct batch_decoder *decoder = batch_decoder_new();
	struct byte_buffer packed = {0};
	struct vs_event events[300];
	struct batch in = {.n_events = 300, .events = events}, out;

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		records_of(&events[3 * i], 3 * i, 0, (int32_t)i);
		if (i % 10 == 9)
			events[3 * i + 2].type = VS_EVENT_USER_LIMITED;
	}
	assert_int_equal(batch_encode(encoder, &in, &packed), 0);
	assert_int_equal(batch_decode(decoder, packed.data, packed.len, &out), 0);
	assert_int_equal(out.n_events, 300);
	for (size_t i = 0; i < 300; i++) {
		events[i].time = out.events[i].time; /* equal times in a hit: see below */
		assert_memory_equal(&out.events[i], &events[i], sizeof(events[i]));
	}
	byte_buffer_fini(&packed);
	batch_decoder_free(decoder);
	batch_encoder_free(encoder);
}

static void on_host(void *context, const struct host_instant *i)
{
	struct heard *heard = context;

	user_hits_take(heard->hits, VS_SOURCE_HOST, &i->event, i->t.ns, i->err_ns);
}

static void on_guest(void *context, const struct guest_instant *i)
{
	struct heard *heard = context;

	user_hits_take(heard->hits, i->vm, &i->event, i->t.ns, i->err_ns);
}

static void frame_of(struct synth *s, uint32_t source)
{
	struct message_user_events *m = malloc(sizeof(*m));
	struct byte_buffer payload = {0};

	assert_non_null(m);
	describe(m);
	assert_int_equal(message_user_events_pack(m, &payload), 0);
	synth_frame(s, source, FRAME_USER_EVENTS, payload.data, payload.len);
	byte_buffer_fini(&payload);
	free(m);
}

static void both_sides_pass_the_pipeline(void **state)
{
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 99});
	struct heard *heard = calloc(1, sizeof(*heard));
	const struct model_observer observer = {
		.host_instant = on_host, .guest_instant = on_guest, .context = heard};
	struct vs_event e[3];
	size_t n[2] = {0};

	(void)state;
	assert_non_null(heard);
	synth_at(s, 1 * MS);
	frame_of(s, VS_SOURCE_HOST);
	frame_of(s, SYNTH_VM);
	for (int32_t i = 1; i <= 100; i++) {
		synth_at(s, (1 + 10 * i) * MS);
		records_of(e, 0, 0, i);
		for (int k = 0; k < 3; k++) {
			synth_host_event(s, (uint16_t)(i % 2), e[k]);
			synth_guest_event(s, (uint16_t)(i % 2), e[k]);
		}
	}
	synth_free(s);
	play_start(&p, false);
	heard->hits = user_hits_new(model_user_events(p.model), hear, heard);
	assert_non_null(heard->hits);
	assert_int_equal(model_observe(p.model, &observer), 0);
	play_whole(&p);
	user_hits_flush(heard->hits);
	assert_int_equal(heard->n, 200);
	for (size_t i = 0; i < heard->n; i++) {
		const struct user_hit *hit = &heard->hit[i];
		const int64_t t = synth_host_ns((1 + 10ll * hit->head.pid) * MS);

		assert_non_null(hit->event);
		assert_whole(hit, hit->head.pid);
		assert_true(llabs(hit->t_ns - t) <= hit->err_ns);
		n[hit->source != VS_SOURCE_HOST]++;
	}
	assert_int_equal(n[0], 100);
	assert_int_equal(n[1], 100);
	assert_int_equal(source_of(&p, VS_SOURCE_HOST).malformed, 0);
	assert_int_equal(source_of(&p, SYNTH_VM).malformed, 0);
	user_hits_free(heard->hits);
	free(heard);
	play_end(&p);
}

static void hit_at(struct synth *s, int64_t t_ns, bool guest, int32_t pid)
{
	struct vs_event e[3];

	synth_at(s, t_ns);
	records_of(e, 0, 0, pid);
	for (int k = 0; k < 3; k++) {
		if (guest)
			synth_guest_event(s, 0, e[k]);
		else
			synth_host_event(s, 0, e[k]);
	}
}

/* Guest task OTHER has guest CPU 0 from 200 to 900 ms; the host takes the vCPU's pCPU meanwhile. */
static void scene_stall(struct synth *s)
{
	synth_at(s, 1 * MS);
	frame_of(s, VS_SOURCE_HOST);
	frame_of(s, SYNTH_VM);
	synth_host_event(s, 0, synth_switch(0, 0, VCPU0));
	synth_guest_event(s, 0, synth_switch(0, 0, TASK));
	hit_at(s, 150 * MS, true, TASK);
	synth_at(s, 200 * MS);
	synth_guest_event(s, 0, synth_switch(TASK, 1, OTHER));
	hit_at(s, 250 * MS, true, OTHER);
	hit_at(s, 299 * MS, false, VCPU0);
	synth_at(s, 300 * MS);
	synth_host_event(s, 0, synth_switch(VCPU0, VS_TASK_RUNNING, HOG));
	synth_guest_silent(s, true);
	hit_at(s, 400 * MS, false, HOG);
	synth_at(s, 800 * MS);
	synth_host_event(s, 0, synth_switch(HOG, 1, VCPU0));
	synth_guest_silent(s, false);
	hit_at(s, 850 * MS, true, OTHER);
	synth_at(s, 900 * MS);
	synth_guest_event(s, 0, synth_switch(OTHER, 1, TASK));
	hit_at(s, 950 * MS, true, TASK);
	synth_at(s, 1300 * MS);
}

static void a_stall_of_a_recording_has_them(void **state)
{
	static const char *const expected[] = {
		"guest:sched:sched_process_exec pid=-7 comm=vcpuscope-test mask=0xf00f n=88, the "
		"first of 2",
		"host:sched:sched_process_exec pid=-7 comm=vcpuscope-test mask=0xf00f n=1001",
	};
	const struct report_options options = {.than_ns = 100 * MS};
	struct play p;
	struct synth *s = scene_new(&p, (struct synth_options){.guest_tsc_offset = 99});
	struct report_builder *b;
	struct report *r;
	size_t n = 0;

	(void)state;
	scene_stall(s);
	synth_free(s);
	play_start(&p, false);
	b = report_builder_new(p.model, &options);
	assert_non_null(b);
	play_whole(&p);
	r = report_builder_finish(b);
	assert_non_null(r);
	assert_int_equal(r->n_incidents, 1);
	for (size_t i = 0; i < r->incidents[0].n_evidence; i++) {
		const struct finding_text seen = finding_text(&r->incidents[0].evidence[i].seen, 1);
		const char *text = seen.text;

		if (!strstr(text, "sched_process_exec"))
			continue;
		assert_true(n < 2);
		assert_string_equal(text, expected[n]);
		n++;
	}
	assert_int_equal(n, 2);
	report_free(r);
	report_builder_free(b);
	play_end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_records_of_a_hit_come_together),
		cmocka_unit_test(a_lost_record_leaves_values_out),
		cmocka_unit_test(a_hit_without_description_stays),
		cmocka_unit_test(descriptions_change_only_their_state),
		cmocka_unit_test(records_survive_the_codec),
		cmocka_unit_test(both_sides_pass_the_pipeline),
		cmocka_unit_test(a_stall_of_a_recording_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
