/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the conclusions from perf's records about records that perf omitted. This process is the
 * followed thread; the records are generated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/perf/perf_follow.h"

enum { STRANGER = 1 };

static void on_emit(void *context, const struct vs_event *event)
{
	(void)context;
	(void)event;
}

static void on_missed(void *context, uint16_t cpu)
{
	(void)cpu;
	(*(unsigned *)context)++;
}

static unsigned n_long, n_short;

static void on_slept(void *context, const struct vs_event *event, const struct task *task,
		     enum vs_stack_role role, bool sampled)
{
	(void)context;
	(void)event;
	(void)task;
	n_long += role == VS_STACK_WAITER;
	n_short += role == VS_STACK_SHORT && sampled;
}

static void on_woke(void *context, const struct vs_event *event, const struct task *woken,
		    const struct task *waker)
{
	(void)context;
	(void)event;
	(void)woken;
	(void)waker;
}

static void replay(struct perf_follow *f, uint64_t time, uint16_t type, int32_t pid, int32_t pid2,
		   uint64_t arg0)
{
	const struct vs_event event = {
		.time = time, .type = type, .pid = pid, .pid2 = pid2, .arg0 = arg0};

	perf_follow_until(f, time);
	perf_follow_record(f, &event);
}

static void a_sleeper_that_runs_was_woken_unseen(void **state)
{
	static const struct {
		const char *name;
		uint32_t left; /* enum vs_task_state */
		bool woken;
		uint64_t unseen;
	} cases[] = {
		{"woken", VS_TASK_INTERRUPTIBLE, true, 0},
		{"woken by whom perf does not see", VS_TASK_INTERRUPTIBLE, false, 1},
		{"preempted", VS_TASK_RUNNING, false, 0},
	};
	const pid_t self = getpid();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned missed = 0;
		const struct perf_follow_sink sink = {on_emit, on_missed, on_slept, on_woke,
						      &missed};
		struct perf_follow *f = perf_follow_new(&sink, 20000000);

		print_message("  %s\n", cases[i].name);
		assert_non_null(f);
		assert_int_equal(perf_follow_add(f, 1, self, self, 1, true), 0);
		/* How it came to sleep before it was followed is not known, and no loss. */
		replay(f, 10, VS_EVENT_SCHED_SWITCH, STRANGER, self, VS_TASK_RUNNING);
		assert_int_equal(perf_follow_unseen_wakeups(f), 0);
		replay(f, 20, VS_EVENT_SCHED_SWITCH, self, STRANGER, cases[i].left);
		if (cases[i].woken)
			replay(f, 30, VS_EVENT_SCHED_WAKEUP, self, STRANGER, 0);
		replay(f, 40, VS_EVENT_SCHED_SWITCH, STRANGER, self, VS_TASK_RUNNING);
		assert_int_equal(perf_follow_unseen_wakeups(f), cases[i].unseen);
		assert_int_equal(missed, 0); /* no switch is missing */
		perf_follow_free(f);
	}
}

/* 1 ms of sleep after 1 ms of running, and now and then 30 ms; in a halt, by its exit, or not. */
static void of_short_sleeps_samples_are_told(void **state)
{
	static const struct {
		const char *name;
		uint64_t sleep_us, exit; /* reason | isa << 32 */
		int n;
		unsigned n_long, n_short;
	} cases[] = {
		{"short", 1000, 1ull << 32 | 48, 100, 0, 10},
		{"too short to count", 90, 1ull << 32 | 48, 1000, 0, 0},
		{"in a halt", 1000, 1ull << 32 | 12, 100, 0, 0},
		{"in a halt of the other kind", 1000, 2ull << 32 | 0x78, 100, 0, 0},
		{"long", 30000, 1ull << 32 | 48, 10, 10, 0},
		{"long, in a halt", 30000, 1ull << 32 | 12, 10, 10, 0},
	};
	const pid_t self = getpid();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned missed = 0;
		const struct perf_follow_sink sink = {on_emit, on_missed, on_slept, on_woke,
						      &missed};
		struct perf_follow *f = perf_follow_new(&sink, 20000000);
		uint64_t t = 1000;

		print_message("  %s\n", cases[i].name);
		assert_non_null(f);
		assert_int_equal(perf_follow_add(f, 1, self, self, 1, true), 0);
		replay(f, t, VS_EVENT_SCHED_SWITCH, STRANGER, self, VS_TASK_RUNNING);
		n_long = n_short = 0;
		for (int k = 0; k < cases[i].n; k++) {
			replay(f, t += 1000000, VS_EVENT_KVM_EXIT, self, 0, cases[i].exit);
			replay(f, t += 1000, VS_EVENT_SCHED_SWITCH, self, STRANGER,
			       VS_TASK_INTERRUPTIBLE);
			replay(f, t += cases[i].sleep_us * 1000, VS_EVENT_SCHED_SWITCH, STRANGER,
			       self, VS_TASK_RUNNING);
		}
		assert_int_equal(n_long, cases[i].n_long);
		assert_int_equal(n_short, cases[i].n_short);
		perf_follow_free(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sleeper_that_runs_was_woken_unseen),
		cmocka_unit_test(of_short_sleeps_samples_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
