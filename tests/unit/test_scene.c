/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the data of timelines and heat maps: rows and arrows of an incident, latencies over
 * time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "host-collector/analyze/scene/latency_map.h"
#include "host-collector/analyze/scene/scene_lanes.h"
#include "tests/unit/model_script.h"

enum { HOG = 900, TASK = 50, OTHER = 51 };
#define MS 1000000ll

static void push(struct model *m, struct timeline_event e)
{
	assert_int_equal(model_push(m, &e, 1), 0);
}

#define PUSH(m, macro) push(m, (struct timeline_event)macro)

static const struct incident incident = {
	.vm = VM, .guest_cpu = 0, .vcpu = 0, .begin = {100 * MS}, .end = {500 * MS}};

static const struct scene_row *row_find(const struct scene *s, enum scene_row_kind kind)
{
	for (size_t i = 0; i < s->n_rows; i++) {
		if (s->rows[i].kind == kind)
			return &s->rows[i];
	}
	fail_msg("no row of kind %s", scene_row_name(kind));
	return NULL;
}

static int64_t row_ns(const struct scene_row *row, int state)
{
	int64_t ns = 0;

	for (size_t i = 0; i < row->n; i++) {
		const struct track_piece *p = &row->pieces[i];

		ns += p->merged ? p->ns * p->share[state] / 255 : p->state == state ? p->ns : 0;
	}
	return ns;
}

/* A vCPU that is kept from its pCPU from 100 to 500 ms; a wake-up and a kick. */
static void story(struct model *m)
{
	PUSH(m, SWITCH(HOST, 1000, 1, 0, TID0, 0));
	PUSH(m, SWITCH(VM, 1100, 0, 0, TASK, 0));
	PUSH(m, WAKEUP(VM, 90000, 0, OTHER, TASK, 0));
	PUSH(m, SWITCH(HOST, 100000, 1, TID0, HOG, 0));
	PUSH(m, SWITCH(HOST, 500000, 1, HOG, TID0, 0));
	PUSH(m, SWITCH(VM, 510000, 0, TASK, OTHER, 1));
	PUSH(m, SWITCH(VM, 520000, 0, OTHER, 0, 1));
	PUSH(m, SWITCH(HOST, 530000, 1, TID0, 0, 1));
	PUSH(m, WAKEUP(HOST, 540000, 2, TID0, HOG, 1));
	PUSH(m, SWITCH(HOST, 541000, 1, 0, TID0, 0));
}

static void shows_rows_and_arrows_around_an_incident(void **unused)
{
	struct model *m = model_new();
	struct scenes *s = scenes_new(m);
	const struct scene *scene;
	bool seen[SCENE_ARROW_KIND_COUNT] = {false};

	(void)unused;
	script_vm(m, 1, "kvm");
	story(m);
	scenes_incident(s, &incident);
	for (int64_t us = 600000; us < 3000000; us += 10000)
		PUSH(m, SWITCH(HOST, us, 3, 0, 0, 0)); /* time goes on */
	model_finish(m);
	assert_int_equal(scenes_finish(s, 1000), 0);
	assert_int_equal(scenes_find(s, &incident), 0);
	scene = scenes_at(s, 0);
	assert_int_equal(scene->begin.ns, 50 * MS);
	assert_int_equal(scene->end.ns, 550 * MS);
	assert_int_equal(scene->n_rows, 3);
	assert_int_equal(row_ns(row_find(scene, SCENE_ROW_VCPU), VCPU_RUNNABLE), 400 * MS + 1 * MS);
	assert_int_equal(row_ns(row_find(scene, SCENE_ROW_PCPU), SCENE_PCPU_TASK), 400 * MS);
	assert_int_equal(row_ns(row_find(scene, SCENE_ROW_GUEST), GUEST_CPU_TASK), 470 * MS);
	for (size_t i = 0; i < scene->n_arrows; i++) {
		const struct scene_arrow *a = &scene->arrows[i];

		seen[a->kind] = true;
		if (a->kind == SCENE_ARROW_WAKEUP && a->pid == OTHER)
			assert_true(a->from.ns == 90 * MS && a->to.ns == 510 * MS);
	}
	assert_true(seen[SCENE_ARROW_WAKEUP]);
	assert_int_equal(scene->grain_ns, 0);
	assert_null(scenes_at(s, 1));
	scenes_free(s);
	model_free(m);
}

static void thins_to_what_a_page_holds(void **unused)
{
	struct model *m = model_new();
	struct scenes *s = scenes_new(m);
	const struct scene *scene;
	size_t pieces = 0;
	int64_t halted, longest = 0;

	(void)unused;
	script_vm(m, 1, "kvm");
	PUSH(m, SWITCH(HOST, 0, 1, 0, TID0, 0));
	for (int64_t us = 100; us < 550000; us += 100) {
		const int64_t late = us == 100000 ? 20 : 0;

		PUSH(m, SWITCH(HOST, us, 1, TID0, 0, 1));
		PUSH(m, WAKEUP(HOST, us + 30, 1, TID0, 0, 1));
		PUSH(m, SWITCH(HOST, us + 30 + late, 1, 0, TID0, 0));
	}
	scenes_incident(s, &incident);
	for (int64_t us = 600000; us < 3000000; us += 10000)
		PUSH(m, SWITCH(HOST, us, 3, 0, 0, 0));
	model_finish(m);
	assert_int_equal(scenes_finish(s, 500), 0);
	scene = scenes_at(s, 0);
	for (size_t i = 0; i < scene->n_rows; i++)
		pieces += scene->rows[i].n;
	assert_true(pieces <= 500);
	assert_true(scene->grain_ns > 0); /* and it is said */
	halted = row_ns(row_find(scene, SCENE_ROW_VCPU), VCPU_HALTED);
	assert_in_range(halted, 500 * MS * 28 / 100, 500 * MS * 31 / 100);
	assert_true(scene->arrows_left_out > 0);
	assert_int_equal(scene->n_arrows, SCENE_ARROWS_MAX);
	for (size_t i = 0; i < scene->n_arrows; i++) {
		const struct scene_arrow *a = &scene->arrows[i];

		if (a->to.ns - a->from.ns > longest)
			longest = a->to.ns - a->from.ns;
	}
	assert_int_equal(longest, 20000); /* of thousands of arrows, the longest stay */
	scenes_free(s);
	model_free(m);
}

static void keeps_the_longest_incidents(void **unused)
{
	struct model *m = model_new();
	struct scenes *s = scenes_new(m);
	struct incident longest = incident;
	size_t n = 0;

	(void)unused;
	script_vm(m, 1, "kvm");
	for (int64_t k = 1; k <= 2 * SCENES_MAX; k++) {
		struct incident i = incident;

		i.begin.ns = k * 1000 * MS;
		i.end.ns = i.begin.ns + (100 + 7 * (k % 13)) * MS;
		PUSH(m, SWITCH(HOST, i.begin.ns / 1000, 1, 0, TID0, 0));
		PUSH(m, SWITCH(HOST, i.end.ns / 1000, 1, TID0, 0, 1));
		scenes_incident(s, &i);
		if (i.end.ns - i.begin.ns > longest.end.ns - longest.begin.ns || k == 1)
			longest = i;
	}
	PUSH(m, SWITCH(HOST, 60000000, 1, 0, TID0, 0));
	model_finish(m);
	assert_int_equal(scenes_finish(s, 1000), 0);
	while (scenes_at(s, n))
		n++;
	assert_int_equal(n, SCENES_MAX);
	assert_true(scenes_find(s, &longest) >= 0);
	scenes_free(s);
	model_free(m);
}

static void latencies_fall_into_rows_and_columns(void **unused)
{
	struct model *m = model_new();
	struct latency_maps *l = latency_maps_new(m);
	const struct latency_map *map = NULL;
	uint64_t sum = 0;

	(void)unused;
	for (unsigned row = 0; row < LATENCY_ROWS; row++)
		assert_true(latency_row_ns(row) < latency_row_ns(row + 1));
	script_vm(m, 1, "kvm");
	PUSH(m, SWITCH(HOST, 0, 1, 0, TID0, 0));
	/* 10 s: a wait of 100 us each 10 ms, in the second half of 1 ms. */
	for (int64_t k = 1; k <= 1000; k++) {
		int64_t wait_us = k > 500 ? 1000 : 100;

		PUSH(m, SWITCH(HOST, k * 10000, 1, TID0, HOG, 0));
		PUSH(m, SWITCH(HOST, k * 10000 + wait_us, 1, HOG, TID0, 0));
	}
	PUSH(m, SWITCH(HOST, 10010000, 1, TID0, 0, 1));
	model_finish(m);
	for (size_t i = 0; (map = latency_maps_at(l, i)); i++) {
		if (map->kind == LATENCY_PCPU_WAIT)
			break;
	}
	assert_non_null(map);
	assert_int_equal(map->lengths.count, 1000);
	assert_true(map->columns > LATENCY_COLUMNS / 4 && map->columns <= LATENCY_COLUMNS);
	for (unsigned c = 0; c < LATENCY_COLUMNS; c++) {
		for (unsigned row = 0; row < LATENCY_ROWS; row++) {
			bool late = row && latency_row_ns(row) > 500000;

			sum += map->counts[c][row];
			if (map->counts[c][row] && (int64_t)c * map->column_ns < 4800 * MS)
				assert_false(late);
			if (map->counts[c][row] && (int64_t)c * map->column_ns > 5200 * MS)
				assert_true(late);
		}
	}
	assert_int_equal(sum, 1000);
	assert_int_equal(latency_maps_error(l), 0);
	latency_maps_free(l);
	model_free(m);
}

/* ---- lanes of events and pairs ---- */

enum { EARLY_PAIRS = 2000, LATE_PAIRS = 4000 };

static void pair_add(struct scenes *s, unsigned number, int64_t t_us, int64_t us, uint8_t doubt)
{
	const struct lane_key key = {
		.kind = LANE_PAIR, .number = number, .of_vm = true, .of_vcpu = true, .vm = VM};
	const struct lane_mark mark = {.begin = {t_us * 1000},
				       .ns = us * 1000,
				       .n = 1,
				       .sum_ns = us * 1000,
				       .doubt = doubt};

	scenes_pair(s, &key, number ? "other" : "msi", &mark);
}

/* Pairs before the incident is found and after it; those around it are not of the scene. */
static void lanes_story(struct model *m, struct scenes *s)
{
	script_vm(m, 1, "kvm");
	story(m);
	pair_add(s, 0, 10000, 1000, 0);
	pair_add(s, 0, 100000, 300000, 0);
	pair_add(s, 1, 200000, 10, 2);
	pair_add(s, 1, 200100, 10, 1);
	pair_add(s, 1, 200200, 10, 0);
	for (int64_t i = 0; i < EARLY_PAIRS; i++)
		pair_add(s, 0, 400000 + i * 10, 5, 0);
	scenes_incident(s, &incident);
	for (int64_t i = 0; i < LATE_PAIRS; i++)
		pair_add(s, 0, 500000 + i * 10, 7, 0);
	pair_add(s, 0, 40000, 460000, 0); /* begins before the scene, ends at 500 ms */
	pair_add(s, 0, 600000, 5, 0);
	for (int64_t us = 600000; us < 3000000; us += 10000)
		PUSH(m, SWITCH(HOST, us, 3, 0, 0, 0));
	model_finish(m);
}

static void folds_marks_and_keeps_their_number_and_time(void **unused)
{
	struct model *m = model_new();
	struct scenes *s = scenes_new(m);
	const struct scene_lane *lane;
	const struct scene *scene;
	uint64_t n = 0;
	int64_t sum_ns = 0;
	bool longest = false;

	(void)unused;
	lanes_story(m, s);
	scenes_pair_accept(s, 1, 1);
	assert_int_equal(scenes_finish(s, 1000), 0);
	scene = scenes_at(s, 0);
	assert_int_equal(scene->n_lanes, 2);
	assert_int_equal(scene->marks_left_out, 0);
	lane = &scene->lanes[0];
	assert_string_equal(lane->name, "msi");
	assert_true(lane->n <= SCENE_MARKS_ALL);
	for (size_t i = 0; i < lane->n; i++) {
		n += lane->marks[i].n;
		sum_ns += lane->marks[i].sum_ns;
		longest |= lane->marks[i].begin.ns == 100 * MS && lane->marks[i].ns == 300 * MS;
		assert_true(!i || lane->marks[i - 1].begin.ns <= lane->marks[i].begin.ns);
	}
	assert_int_equal(n, EARLY_PAIRS + LATE_PAIRS + 2);
	assert_int_equal(sum_ns, (EARLY_PAIRS * 5ll + LATE_PAIRS * 7 + 300000 + 460000) * 1000);
	assert_true(longest);
	assert_true(lane->n < n); /* some are folded */
	assert_false(lane->cut);
	/* Of the other pair, the one past both losses is no call. */
	lane = &scene->lanes[1];
	assert_int_equal(lane->n, 2);
	assert_int_equal(lane->marks[0].begin.ns, 200100000);
	scenes_free(s);
	model_free(m);
}

static void says_that_older_marks_are_gone(void **unused)
{
	struct model *m = model_new();
	struct scenes *s = scenes_new(m);

	(void)unused;
	script_vm(m, 1, "kvm");
	story(m);
	for (int64_t i = 0; i < LANE_KEPT + 10; i++)
		pair_add(s, 0, 400000 + i * 10, 5, 0);
	scenes_incident(s, &incident);
	model_finish(m);
	assert_int_equal(scenes_finish(s, 1000), 0);
	assert_true(scenes_at(s, 0)->lanes[0].cut);
	scenes_free(s);
	model_free(m);
}

static void maps_of_lengths_add_up(void **unused)
{
	static struct latency_map a, b;

	(void)unused;
	latency_map_init(&a, (struct host_ns){0});
	latency_map_init(&b, (struct host_ns){0});
	for (int64_t k = 0; k < 1000; k++) {
		assert_int_equal(latency_map_add(&a, (struct host_ns){k * MS}, 1000), 0);
		assert_int_equal(latency_map_add(&b, (struct host_ns){k * 20 * MS}, 50000), 0);
	}
	assert_true(b.column_ns > a.column_ns);
	assert_int_equal(latency_map_merge(&a, &b), 0);
	assert_int_equal(a.lengths.count, 2000);
	assert_int_equal(a.lengths.sum_ns, 51000 * 1000);
	assert_int_equal(a.column_ns, b.column_ns);
	for (unsigned c = 0, n = 0; c < LATENCY_COLUMNS; c++) {
		for (unsigned row = 0; row < LATENCY_ROWS; row++)
			n += a.counts[c][row];
		if (c == LATENCY_COLUMNS - 1)
			assert_int_equal(n, 2000);
	}
	latency_map_fini(&a);
	latency_map_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_rows_and_arrows_around_an_incident),
		cmocka_unit_test(thins_to_what_a_page_holds),
		cmocka_unit_test(keeps_the_longest_incidents),
		cmocka_unit_test(latencies_fall_into_rows_and_columns),
		cmocka_unit_test(folds_marks_and_keeps_their_number_and_time),
		cmocka_unit_test(says_that_older_marks_are_gone),
		cmocka_unit_test(maps_of_lengths_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
