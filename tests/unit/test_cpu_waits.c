/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the count of followed threads that wait for a CPU: each counts for its user from the
 * time at which it is ready to run until it runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/capture/cpu_waits.h"
#include "proto/event_catalog.h"

enum { CPUS = 4, USERS = 301, A = 101, B = 102, OTHER = 900 };

struct scene {
	struct cpu_waits *w;
	struct cpu_waiter a, b; /* of users 3 and 300 */
};

static struct scene scene(void)
{
	struct scene s = {cpu_waits_new(CPUS, USERS), {3, -1, -1}, {300, -1, -1}};

	assert_non_null(s.w);
	return s;
}

static struct cpu_waiter *waiter_of(struct scene *s, int32_t tid)
{
	return tid == A ? &s->a : tid == B ? &s->b : NULL;
}

static void switches(struct scene *s, uint16_t cpu, int32_t out, uint64_t state, int32_t in)
{
	struct vs_event e = {.type = VS_EVENT_SCHED_SWITCH, .cpu = cpu, .pid = out, .pid2 = in};

	ev_set_sched_switch_state(&e, state);
	cpu_waits_switch(s->w, &e, waiter_of(s, out), waiter_of(s, in));
}

static void wakes(struct scene *s, int32_t tid, uint32_t cpu)
{
	struct vs_event e = {.type = VS_EVENT_SCHED_WAKEUP, .pid = tid, .pid2 = OTHER};

	ev_set_sched_wakeup_cpu(&e, cpu);
	cpu_waits_wakeup(s->w, &e, waiter_of(s, tid));
}

static void migrates(struct scene *s, int32_t tid, uint32_t cpu)
{
	struct vs_event e = {.type = VS_EVENT_SCHED_MIGRATE, .pid = tid};

	ev_set_sched_migrate_task_to(&e, cpu);
	cpu_waits_migrate(s->w, &e, waiter_of(s, tid));
}

enum { NOBODY, A_WAITS, B_WAITS, BOTH_WAIT };

/* Who waits. */
static int users(const struct scene *s, size_t cpu)
{
	struct user_set set = {0};
	int who = NOBODY, user;

	cpu_waits_users(s->w, cpu, &set);
	while ((user = user_set_take(&set)) >= 0) {
		assert_true(user == 3 || user == 300);
		who |= user == 3 ? A_WAITS : B_WAITS;
	}
	return who;
}

static void from_the_wakeup_until_it_runs(void **state)
{
	struct scene s = scene();

	(void)state;
	wakes(&s, A, 2);
	assert_int_equal(users(&s, 2), A_WAITS);
	assert_int_equal(users(&s, 1), NOBODY);
	wakes(&s, B, 2);
	assert_int_equal(users(&s, 2), BOTH_WAIT);
	assert_int_equal(cpu_waits_count(s.w, 2), 2);
	migrates(&s, A, 1);
	assert_int_equal(users(&s, 1), A_WAITS);
	assert_int_equal(users(&s, 2), B_WAITS);
	switches(&s, 1, OTHER, VS_TASK_RUNNING, A);
	assert_int_equal(users(&s, 1), NOBODY);
	assert_int_equal(cpu_waits_running(s.w, 1), A);
	/* Off its CPU, but able to run: it waits there. */
	switches(&s, 1, A, VS_TASK_RUNNING, OTHER);
	assert_int_equal(users(&s, 1), A_WAITS);
	cpu_waits_leave(s.w, &s.a);
	assert_int_equal(users(&s, 1), NOBODY);
	assert_int_equal(cpu_waits_count(s.w, 1), 0);
	cpu_waits_free(s.w);
}

static void asleep_it_waits_for_no_cpu(void **state)
{
	struct scene s = scene();

	(void)state;
	switches(&s, 0, OTHER, VS_TASK_RUNNING, A);
	switches(&s, 0, A, VS_TASK_INTERRUPTIBLE, OTHER);
	migrates(&s, A, 3);
	for (size_t cpu = 0; cpu < CPUS; cpu++)
		assert_int_equal(users(&s, cpu), NOBODY);
	cpu_waits_free(s.w);
}

static void a_wakeup_of_who_runs_or_waits_changes_nothing(void **state)
{
	struct scene s = scene();

	(void)state;
	switches(&s, 0, OTHER, VS_TASK_RUNNING, A);
	wakes(&s, A, 1);
	assert_int_equal(users(&s, 1), NOBODY);
	wakes(&s, B, 2);
	wakes(&s, B, 3);
	assert_int_equal(users(&s, 2), B_WAITS);
	assert_int_equal(users(&s, 3), NOBODY);
	cpu_waits_free(s.w);
}

static void a_lost_switch_does_not_leave_it_running(void **state)
{
	struct scene s = scene();

	(void)state;
	switches(&s, 0, OTHER, VS_TASK_RUNNING, A);
	/* That A left was lost; somebody else leaves the CPU. */
	switches(&s, 0, OTHER, VS_TASK_RUNNING, OTHER + 1);
	wakes(&s, A, 1);
	assert_int_equal(users(&s, 1), A_WAITS);
	switches(&s, 1, OTHER, VS_TASK_RUNNING, A);
	cpu_waits_lost(s.w, 1);
	assert_int_equal(cpu_waits_running(s.w, 1), CPU_WAITS_TASK_UNKNOWN);
	wakes(&s, A, 3);
	assert_int_equal(users(&s, 3), A_WAITS);
	cpu_waits_free(s.w);
}

static void a_cpu_that_is_none_is_ignored(void **state)
{
	struct scene s = scene();

	(void)state;
	wakes(&s, A, CPUS);
	assert_int_equal(s.a.waiting_cpu, -1);
	assert_int_equal(users(&s, CPUS), NOBODY);
	switches(&s, CPUS, A, VS_TASK_RUNNING, B);
	assert_int_equal(s.a.waiting_cpu, -1);
	wakes(&s, B, 1);
	assert_int_equal(users(&s, 1), B_WAITS);
	cpu_waits_free(s.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_the_wakeup_until_it_runs),
		cmocka_unit_test(asleep_it_waits_for_no_cpu),
		cmocka_unit_test(a_wakeup_of_who_runs_or_waits_changes_nothing),
		cmocka_unit_test(a_lost_switch_does_not_leave_it_running),
		cmocka_unit_test(a_cpu_that_is_none_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
