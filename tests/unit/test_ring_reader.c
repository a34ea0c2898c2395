/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the reader of a ring with a ring that the test writes as the BPF programs do. Needs no
 * kernel support. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "bpf/backend/ring_reader.h"

enum { SLOTS = 64 };

struct fixture {
	struct vs_ring *ring;
	struct ring_reader reader;
};

static struct fixture *fixture_new(void)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->ring = calloc(1, sizeof(*f->ring) + SLOTS * sizeof(struct vs_event));
	assert_non_null(f->ring);
	ring_reader_init(&f->reader, f->ring, SLOTS);
	return f;
}

static void fixture_free(struct fixture *f)
{
	free(f->ring);
	free(f);
}

/* A probe's claim; the slot is not committed yet. */
static struct vs_event *claim(struct fixture *f)
{
	struct vs_event *slot = &f->ring->slots[f->ring->head++ % SLOTS];

	slot->seq = (vs_u32)f->ring->dropped;
	return slot;
}

static void commit(struct vs_event *slot, uint64_t time)
{
	slot->time = time;
	slot->type = VS_EVENT_SCHED_SWITCH;
	slot->pid = (vs_s32)time;
}

/* Takes everything and checks that times and seqs ascend; appends the seqs. */
static size_t take(struct fixture *f, uint64_t early, uint32_t *seqs, size_t n)
{
	struct ring_run runs[2];
	uint64_t time = 0;
	const size_t taken = ring_reader_take(&f->reader, early, runs);

	assert_int_equal(runs[0].n + runs[1].n, taken);
	for (int k = 0; k < 2; k++) {
		for (size_t i = 0; i < runs[k].n; i++) {
			const struct vs_event *e = &runs[k].events[i];

			assert_true(e->time >= time);
			assert_int_equal(e->pid, e->time);
			time = e->time;
			if (n)
				assert_true(e->seq > seqs[n - 1]);
			seqs[n++] = e->seq;
		}
	}
	ring_reader_release(&f->reader);
	return n;
}

static void empty_gives_nothing(void **state)
{
	struct fixture *f = fixture_new();

	(void)state;
	assert_int_equal(take(f, 0, NULL, 0), 0);
	fixture_free(f);
}

static void events_come_in_order_across_the_wrap(void **state)
{
	struct fixture *f = fixture_new();
	uint32_t seqs[1000];
	uint64_t time = 1;
	size_t n = 0;

	(void)state;
	while (n < 900) {
		for (int i = 0; i < 37; i++)
			commit(claim(f), time++);
		n = take(f, 0, seqs, n);
	}
	for (size_t i = 0; i < n; i++)
		assert_int_equal(seqs[i], i);
	fixture_free(f);
}

static void a_full_ring_is_emptied_whole(void **state)
{
	struct fixture *f = fixture_new();
	uint32_t seqs[SLOTS];

	(void)state;
	f->ring->head = f->ring->tail = 5;
	for (uint64_t i = 0; i < SLOTS; i++)
		commit(claim(f), i + 1);
	assert_int_equal(take(f, 0, seqs, 0), SLOTS);
	assert_int_equal(take(f, 0, seqs, 0), 0);
	fixture_free(f);
}

static void nothing_passes_an_uncommitted_slot(void **state)
{
	struct fixture *f = fixture_new();
	uint32_t seqs[8];
	struct vs_event *outer;
	size_t n;

	(void)state;
	commit(claim(f), 1);
	outer = claim(f);
	commit(claim(f), 2); /* an interrupt nests */
	commit(claim(f), 3);
	n = take(f, 0, seqs, 0);
	assert_int_equal(n, 1);
	commit(outer, 4); /* its time was taken after the interrupt */
	n = take(f, 0, seqs, n);
	assert_int_equal(n, 4);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(seqs[i], i);
	fixture_free(f);
}

static void inversions_across_the_wrap_are_sorted(void **state)
{
	struct fixture *f = fixture_new();
	struct vs_event *outer[3];
	uint32_t seqs[32];

	(void)state;
	f->ring->head = f->ring->tail = SLOTS - 2;
	for (int i = 0; i < 3; i++)
		outer[i] = claim(f);
	for (uint64_t t = 1; t < 10; t++)
		commit(claim(f), t);
	for (int i = 2; i >= 0; i--)
		commit(outer[i], 20 - (uint64_t)i);
	assert_int_equal(take(f, 0, seqs, 0), 12);
	fixture_free(f);
}

static void gaps_are_the_drops(void **state)
{
	struct fixture *f = fixture_new();
	uint32_t seqs[32];
	size_t n;

	(void)state;
	commit(claim(f), 1);
	f->ring->dropped += 3;
	commit(claim(f), 2);
	n = take(f, 0, seqs, 0);
	f->ring->dropped += 2;
	commit(claim(f), 3);
	n = take(f, 0, seqs, n);
	assert_int_equal(n, 3);
	assert_int_equal(seqs[0], 0);
	assert_int_equal(seqs[1], 4);
	assert_int_equal(seqs[2], 7);
	fixture_free(f);
}

/* A nested probe that came after a loss commits behind one that looked before it. */
static void an_older_drop_count_behind_a_newer_one_repeats_no_seq(void **state)
{
	struct fixture *f = fixture_new();
	struct vs_event *slot;
	uint32_t seqs[8];

	(void)state;
	f->ring->dropped = 1;
	commit(claim(f), 1);
	slot = claim(f);
	slot->seq = 0;
	commit(slot, 2);
	commit(claim(f), 3);
	assert_int_equal(take(f, 0, seqs, 0), 3);
	assert_int_equal(seqs[0], 1);
	assert_int_equal(seqs[1], 2);
	assert_int_equal(seqs[2], 3);
	fixture_free(f);
}

static void losses_before_the_ring_existed_come_first(void **state)
{
	struct fixture *f = fixture_new();
	uint32_t seqs[8];
	size_t n;

	(void)state;
	commit(claim(f), 1);
	n = take(f, 9, seqs, 0);
	f->ring->dropped = 1;
	commit(claim(f), 2);
	n = take(f, 9, seqs, n);
	assert_int_equal(n, 2);
	assert_int_equal(seqs[0], 9);
	assert_int_equal(seqs[1], 11);
	fixture_free(f);
}

static void seq_numbers_wrap(void **state)
{
	struct fixture *f = fixture_new();
	struct ring_run runs[2];

	(void)state;
	f->ring->head = f->ring->tail = UINT32_MAX;
	commit(claim(f), 1);
	commit(claim(f), 2);
	assert_int_equal(ring_reader_take(&f->reader, 0, runs), 2);
	assert_int_equal(runs[0].events[0].seq, UINT32_MAX);
	assert_int_equal((runs[1].n ? runs[1].events : runs[0].events + 1)->seq, 0);
	ring_reader_release(&f->reader);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_gives_nothing),
		cmocka_unit_test(events_come_in_order_across_the_wrap),
		cmocka_unit_test(a_full_ring_is_emptied_whole),
		cmocka_unit_test(nothing_passes_an_uncommitted_slot),
		cmocka_unit_test(inversions_across_the_wrap_are_sorted),
		cmocka_unit_test(gaps_are_the_drops),
		cmocka_unit_test(an_older_drop_count_behind_a_newer_one_repeats_no_seq),
		cmocka_unit_test(losses_before_the_ring_existed_come_first),
		cmocka_unit_test(seq_numbers_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
