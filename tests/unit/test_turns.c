// SPDX-License-Identifier: GPL-2.0-only
/* Tests the turns of a loop that serves many VMs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host-collector/decode/turns.h"

enum { TASKS = 12, TASK_MS = 4, IN_TURN_MAX = 3 };

struct work {
	struct turn_task task;
	uv_loop_t *loop;
	unsigned int number, runs, again;
	unsigned int *order, *n_order; /* the numbers of the tasks that ran */
	unsigned int *in_turn;
};

static void busy_ms(uint64_t ms)
{
	const uint64_t end = uv_hrtime() + ms * 1000000;

	while (uv_hrtime() < end)
		;
}

static void on_run(struct turn_task *task)
{
	struct work *w = (struct work *)((char *)task - offsetof(struct work, task));

	busy_ms(TASK_MS);
	w->runs++;
	++*w->in_turn;
	w->order[(*w->n_order)++] = w->number;
	if (w->again) {
		w->again--;
		turns_add(w->loop, task);
	}
}

struct scene {
	uv_loop_t loop;
	struct work works[TASKS];
	unsigned int order[4 * TASKS], n_order, in_turn;
};

static void scene_begin(struct scene *s, bool shares)
{
	*s = (struct scene){0};
	s->loop.data = s; /* of the loop's user; uv_loop_init() keeps it */
	assert_int_equal(uv_loop_init(&s->loop), 0);
	if (shares) {
		assert_int_equal(turns_open(&s->loop), 0);
		assert_int_equal(turns_open(&s->loop), -EBUSY);
	}
	for (unsigned int i = 0; i < TASKS; i++)
		s->works[i] = (struct work){.task.run = on_run,
					    .loop = &s->loop,
					    .number = i,
					    .order = s->order,
					    .n_order = &s->n_order,
					    .in_turn = &s->in_turn};
}

static void scene_end(struct scene *s)
{
	turns_close(&s->loop);
	uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&s->loop), 0);
}

static void a_turn_is_short_and_all_tasks_run_in_order(void **state)
{
	struct scene s;
	unsigned int turns = 0;

	(void)state;
	scene_begin(&s, true);
	for (unsigned int i = 0; i < TASKS; i++) {
		turns_add(&s.loop, &s.works[i].task);
		turns_add(&s.loop, &s.works[i].task); /* waits already */
	}
	assert_int_equal(s.n_order, 0);
	while (s.n_order < TASKS) {
		s.in_turn = 0;
		uv_run(&s.loop, UV_RUN_NOWAIT);
		assert_in_range(s.in_turn, 1, IN_TURN_MAX);
		turns++;
	}
	assert_true(turns >= TASKS / IN_TURN_MAX);
	for (unsigned int i = 0; i < TASKS; i++)
		assert_int_equal(s.order[i], i);
	uv_run(&s.loop, UV_RUN_NOWAIT);
	assert_false(uv_loop_alive(&s.loop)); /* nothing keeps it awake */
	scene_end(&s);
}

/* One that always has more to do comes after those that wait. */
static void nobody_is_left_out(void **state)
{
	struct scene s;

	(void)state;
	scene_begin(&s, true);
	s.works[0].again = 3;
	for (unsigned int i = 0; i < TASKS; i++)
		turns_add(&s.loop, &s.works[i].task);
	while (s.n_order < TASKS + 3)
		uv_run(&s.loop, UV_RUN_NOWAIT);
	for (unsigned int i = 0; i < TASKS; i++)
		assert_int_equal(s.order[i], i);
	assert_int_equal(s.works[0].runs, 4);
	scene_end(&s);
}

static void a_dropped_task_does_not_run(void **state)
{
	struct scene s;

	(void)state;
	scene_begin(&s, true);
	for (unsigned int i = 0; i < 4; i++)
		turns_add(&s.loop, &s.works[i].task);
	turns_drop(&s.loop, &s.works[0].task);
	turns_drop(&s.loop, &s.works[2].task);
	turns_drop(&s.loop, &s.works[3].task);
	turns_drop(&s.loop, &s.works[3].task); /* waits no more */
	for (int i = 0; i < 4; i++)
		uv_run(&s.loop, UV_RUN_NOWAIT);
	assert_int_equal(s.n_order, 1);
	assert_int_equal(s.works[1].runs, 1);
	turns_add(&s.loop, &s.works[0].task); /* dropped with the loop's end */
	scene_end(&s);
	assert_int_equal(s.works[0].runs, 0);
}

static void a_loop_of_one_vm_runs_them_at_once(void **state)
{
	struct scene s;

	(void)state;
	scene_begin(&s, false);
	turns_add(&s.loop, &s.works[0].task);
	assert_int_equal(s.works[0].runs, 1);
	turns_drop(&s.loop, &s.works[0].task);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_is_short_and_all_tasks_run_in_order),
		cmocka_unit_test(nobody_is_left_out),
		cmocka_unit_test(a_dropped_task_does_not_run),
		cmocka_unit_test(a_loop_of_one_vm_runs_them_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
