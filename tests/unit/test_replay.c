/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that a recording that is cut or damaged anywhere is replayed as far as it is intact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/engine/replay.h"
#include "tests/unit/synth.h"

#define MS 1000000ll
enum { VCPU0 = SYNTH_QEMU_PID + 1, HOG = 4242, FILE_HEADER_BYTES = 32 };

struct fixture {
	char path[64], copy[80];
	uint8_t *bytes;
	size_t len;
	uint64_t events; /* of the whole */
};

static void scene_write(const char *path)
{
	const struct synth_options options = {.path = path, .guest_tsc_offset = 1234567};
	struct synth *s = synth_new(&options);

	for (int64_t t = 2 * MS; t < 900 * MS; t += 5 * MS) {
		synth_at(s, t);
		synth_guest_event(s, (uint16_t)(t / (5 * MS) % 2), synth_switch(77, 1, 88));
		synth_host_event(s, 0, synth_switch(VCPU0, 0, HOG));
		synth_at(s, t + MS);
		synth_host_event(s, 0, synth_switch(HOG, 1, VCPU0));
	}
	synth_free(s);
}

struct replayed {
	int err;
	uint64_t merged, missing, malformed;
	struct recording_info info;
	char why[256];
};

static struct replayed replay(const char *path)
{
	struct model *m = model_new();
	struct pipeline_options options = {.model = m};
	struct pipeline *p = pipeline_new(&options);
	struct replayed r = {0};
	struct timeline_stats stats;
	struct pipeline_source s;

	assert_non_null(m);
	assert_non_null(p);
	r.err = replay_run(p, path, &r.info, r.why, sizeof(r.why));
	pipeline_timeline_stats(p, &stats);
	r.merged = stats.merged;
	for (size_t i = 0; !pipeline_source_get(p, i, &s); i++) {
		r.missing += s.missing;
		r.malformed += s.malformed;
	}
	pipeline_free(p);
	model_free(m);
	return r;
}

static void file_write(const char *path, const uint8_t *bytes, size_t len)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct replayed whole;
	FILE *file;
	int fd;

	strcpy(f->path, "/tmp/test_replay.XXXXXX");
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	close(fd);
	snprintf(f->copy, sizeof(f->copy), "%s.copy", f->path);
	scene_write(f->path);
	file = fopen(f->path, "rb");
	assert_non_null(file);
	f->bytes = malloc(1 << 20);
	f->len = fread(f->bytes, 1, 1 << 20, file);
	fclose(file);
	whole = replay(f->path);
	assert_int_equal(whole.err, 0);
	assert_true(whole.info.closed);
	assert_false(whole.info.cut);
	assert_int_equal(whole.missing, 0);
	assert_int_equal(whole.malformed, 0);
	f->events = whole.merged;
	assert_true(f->events > 500);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	unlink(f->copy);
	free(f->bytes);
	free(f);
	return 0;
}

static void cut_anywhere_what_is_whole_is_replayed(void **state)
{
	struct fixture *f = *state;
	uint64_t last = f->events;

	for (size_t len = f->len; len > FILE_HEADER_BYTES + 97; len -= len % 97 + 1) {
		struct replayed r;

		file_write(f->copy, f->bytes, len);
		r = replay(f->copy);
		assert_int_equal(r.err, 0);
		assert_int_equal(r.info.closed, len == f->len);
		/* fewer bytes, never more events; half of the bytes, not none of the events */
		assert_true(r.merged <= last);
		last = r.merged;
		if (len > f->len / 2)
			assert_true(r.merged > f->events / 4);
	}
}

static void what_is_cut_before_its_first_frame_says_nothing(void **state)
{
	struct fixture *f = *state;

	file_write(f->copy, f->bytes, FILE_HEADER_BYTES);
	assert_int_equal(replay(f->copy).err, 0);
	assert_int_equal(replay(f->copy).merged, 0);
}

static void a_flipped_bit_costs_its_own_frame(void **state)
{
	struct fixture *f = *state;
	uint64_t random = 99;

	for (int round = 0; round < 300; round++) {
		struct replayed r;
		size_t at;

		random = random * 6364136223846793005ull + 1442695040888963407ull;
		at = FILE_HEADER_BYTES + (random >> 33) % (f->len - FILE_HEADER_BYTES);
		f->bytes[at] ^= (uint8_t)(1 << (round % 8));
		file_write(f->copy, f->bytes, f->len);
		f->bytes[at] ^= (uint8_t)(1 << (round % 8));
		r = replay(f->copy);
		assert_int_equal(r.err, 0);
		assert_true(r.info.damaged_bytes > 0);
		assert_int_equal(r.malformed, 0);
		/* at most one frame's events are gone, and where they were is known (a LOST marker
		 * per CPU at most counts as merged by the model, not by the merge) */
		assert_true(r.merged >= f->events - 30);
	}
}

static void what_is_no_recording_is_said_in_one_line(void **state)
{
	struct fixture *f = *state;
	static const uint8_t noise[100] = "#!/bin/sh\n";
	struct replayed r;

	file_write(f->copy, noise, sizeof(noise));
	r = replay(f->copy);
	assert_int_equal(r.err, -EBADMSG);
	assert_non_null(strstr(r.why, "not a recording"));
	file_write(f->copy, noise, 0);
	assert_int_equal(replay(f->copy).err, -EBADMSG);
	r = replay("/nonexistent/run.vcs");
	assert_int_equal(r.err, -ENOENT);
	assert_non_null(strstr(r.why, "cannot open: No such file"));
	assert_null(strchr(r.why, '\n'));
}

/* ---- what nobody requests ---- */

enum { KEPT_MAX = 8192 };

struct kept {
	struct event_set wanted; /* of the instants that are compared */
	size_t n_spans, n_instants, n_all;
	struct vcpu_span spans[KEPT_MAX];
	struct host_instant instants[KEPT_MAX];
};

static void span_keep(void *context, const struct vcpu_span *span)
{
	struct kept *k = context;

	assert_true(k->n_spans < KEPT_MAX);
	k->spans[k->n_spans++] = *span;
}

static void instant_keep(void *context, const struct host_instant *i)
{
	struct kept *k = context;

	k->n_all++;
	if (!event_set_has(&k->wanted, i->event.type))
		return;
	assert_true(k->n_instants < KEPT_MAX);
	k->instants[k->n_instants] = *i;
	k->instants[k->n_instants++].of_vcpu = !!i->of_vcpu;
}

/* Exits, switches and losses, and between them events that change no state. */
static void noisy_scene_write(const char *path)
{
	const struct synth_options options = {.path = path, .guest_tsc_offset = 1234567};
	struct synth *s = synth_new(&options);
	uint64_t random = 7;

	for (int i = 0; i < 6000; i++) {
		struct vs_event e = {.pid = VCPU0, .pid2 = VCPU0};

		random = random * 6364136223846793005ull + 1442695040888963407ull;
		synth_at(s, 2 * MS + i * MS / 7);
		switch (random >> 33 & 15) {
		case 0:
			e = synth_switch(VCPU0, random >> 40 & 1, HOG);
			break;
		case 1:
			e = synth_switch(HOG, 1, VCPU0);
			break;
		case 2:
		case 3:
			e.type = VS_EVENT_KVM_EXIT;
			break;
		case 4:
		case 5:
			e.type = VS_EVENT_KVM_ENTRY;
			break;
		case 6:
			/* Losses in some parts only: near them, all events reach the model. */
			e.type = random >> 41 & 3 || i / 600 % 3 ? VS_EVENT_KVM_EOI : VS_EVENT_LOST;
			e.arg0 = e.type == VS_EVENT_LOST ? 1 + (random >> 44 & 3) : 0;
			break;
		default:
			e.type = random >> 42 & 1 ? VS_EVENT_KVM_MSR : VS_EVENT_KVM_INJECT;
			break;
		}
		synth_host_event(s, random >> 45 & 1, e);
		if (i % 9 == 0)
			synth_guest_event(s, 0, synth_switch(77, 1, 88));
	}
	synth_free(s);
}

static void kept_replay(const char *path, const struct event_set *requested, struct kept *k)
{
	struct model *m = model_new();
	struct pipeline_options options = {.model = m};
	struct pipeline *p = pipeline_new(&options);
	struct model_observer observer = {
		.vcpu_span = span_keep, .host_instant = instant_keep, .context = k};
	struct recording_info info;
	char why[256];

	if (requested)
		observer.host_types = *requested;
	assert_int_equal(model_observe(m, &observer), 0);
	assert_int_equal(replay_run(p, path, &info, why, sizeof(why)), 0);
	pipeline_free(p);
	model_free(m);
}

static void what_nobody_requests_changes_nothing(void **state)
{
	struct fixture *f = *state;
	const struct event_set wanted = EVENT_SET(VS_EVENT_KVM_EXIT, VS_EVENT_LOST);
	struct kept *all = calloc(1, sizeof(*all)), *some = calloc(1, sizeof(*some));

	all->wanted = some->wanted = wanted;
	noisy_scene_write(f->copy);
	kept_replay(f->copy, NULL, all);
	kept_replay(f->copy, &wanted, some);
	assert_true(all->n_spans > 500);
	assert_true(some->n_all < all->n_all * 9 / 10);
	assert_int_equal(some->n_spans, all->n_spans);
	assert_int_equal(some->n_instants, all->n_instants);
	assert_memory_equal(some->spans, all->spans, sizeof(all->spans));
	assert_memory_equal(some->instants, all->instants, sizeof(all->instants));
	free(all);
	free(some);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_nobody_requests_changes_nothing),
		cmocka_unit_test(cut_anywhere_what_is_whole_is_replayed),
		cmocka_unit_test(what_is_cut_before_its_first_frame_says_nothing),
		cmocka_unit_test(a_flipped_bit_costs_its_own_frame),
		cmocka_unit_test(what_is_no_recording_is_said_in_one_line),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
