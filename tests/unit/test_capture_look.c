// SPDX-License-Identifier: GPL-2.0-only
/* Tests looks on the running kernel. The condition is the number of switches on a CPU: a thread
 * that spins is found if the number must be 0, a thread that switches often if it must be large.
 * The same holds for a guest capture. The threads have real-time priority, so that no other task
 * runs between. Needs root and BPF; skips otherwise. */
#include "tests/unit/capture_log.h"

#include "bpf/chosen/look_condition.h"
#include "proto/event_fields.h"

enum { VM = 7, PERIOD_NS = 10000000, RUN_MS = 600 };

static const struct variant *variant;

static struct capture *capture_begin(enum capture_kind kind)
{
	const struct capture_options options = {.kind = kind,
						.stacks = kind == CAPTURE_HOST,
						.sample_hz_max = kind == CAPTURE_GUEST ? 100 : 0,
						.backend = variant->backend,
						.raw_tracepoints = variant->raw_tracepoints};
	struct capture *c;
	char why[256];

	if (capture_open(&options, &c, why, sizeof(why)))
		fail_msg("capture_open: %s", why);
	return c;
}

static void look_begin(struct capture *c, enum event_side side, const char *when)
{
	struct capture_look look = {.period_ns = PERIOD_NS};
	struct expr_error error;
	char why[256];

	if (look_condition_compile(when, side, false, &look, &error))
		fail_msg("%s: %s", when, error.text);
	if (capture_look_set(c, &look, why, sizeof(why)))
		fail_msg("%s: %s", when, why);
}

static void rt_begin(int cpu)
{
	const struct sched_param param = {.sched_priority = 1};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(cpu);
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		_exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Computes for 4 periods without a switch, and leaves as much time to others. */
static pid_t start_spinner(int cpu)
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	rt_begin(cpu);
	for (;;) {
		const uint64_t end = now_ns() + 4 * PERIOD_NS;

		while (now_ns() < end)
			;
		sleep_ms(4 * PERIOD_NS / 1000000);
	}
}

/* Two tasks that wake each other and wait for that, all the time. */
static void start_switchers(int cpu, pid_t pids[2])
{
	int pipes[2][2];

	assert_int_equal(pipe(pipes[0]), 0);
	assert_int_equal(pipe(pipes[1]), 0);
	for (int i = 0; i < 2; i++) {
		char byte = 0;

		pids[i] = fork();
		if (pids[i])
			continue;
		rt_begin(cpu);
		for (;;) {
			if (write(pipes[i][1], &byte, 1) != 1 || read(pipes[!i][0], &byte, 1) != 1)
				_exit(1);
		}
	}
	for (int i = 0; i < 2; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* What was looked at, by task. */
struct looks {
	pid_t spinner, switcher;
	size_t with_user, of_spinner, of_switcher, others;
};

static void look_count(struct looks *l, pid_t tid, uint64_t period_ns)
{
	/* Ticks may be late or skipped, as the machine is busy, but not early. */
	assert_true(period_ns >= PERIOD_NS * 7 / 8);
	l->of_spinner += tid == l->spinner;
	l->of_switcher += tid == l->switcher;
	l->others += tid != l->spinner && tid != l->switcher;
}

static void looks_read(struct looks *l, const struct log *log, enum capture_kind kind)
{
	l->of_spinner = l->of_switcher = l->others = 0;
	for (size_t i = 0; i < log->n_stacks; i++) {
		const struct capture_stack *s = &log->stacks[i].s;

		if (s->role != VS_STACK_LOOK)
			continue;
		assert_int_equal(s->explains, 0);
		l->with_user += s->has_user; /* not of a task that ends */
		look_count(l, s->tid, s->wait_ns);
	}
	for (size_t i = 0; i < log->n && kind == CAPTURE_GUEST; i++) {
		const struct vs_event *e = &log->events[i];

		if (e->type != VS_EVENT_TASK_STACK)
			continue;
		/* Without samples, no stack is taken at a switch. */
		assert_int_equal(ev_task_stack_role(e), VS_STACK_LOOK);
		look_count(l, ev_task_stack_task(e), ev_task_stack_period_ns(e));
	}
}

/* One after the other on the same CPU. */
static struct looks looks_take(enum capture_kind kind, const char *when)
{
	struct capture *c = capture_begin(kind);
	struct log *log = log_new();
	struct looks l = {0};
	pid_t switchers[2];
	int cpus[2];

	two_cpus(cpus);
	l.spinner = start_spinner(cpus[1]);
	if (kind == CAPTURE_HOST)
		assert_int_equal(capture_add_thread(c, l.spinner, l.spinner, VM, true), 0);
	look_begin(c, kind == CAPTURE_HOST ? EVENT_HOST : EVENT_GUEST, when);
	drain_for(c, log, RUN_MS);
	end(l.spinner);
	start_switchers(cpus[1], switchers);
	l.switcher = switchers[0];
	if (kind == CAPTURE_HOST)
		assert_int_equal(capture_add_thread(c, l.switcher, l.switcher, VM, true), 0);
	drain_for(c, log, RUN_MS);
	end(switchers[0]);
	end(switchers[1]);
	drain(c, log);
	looks_read(&l, log, kind);
	assert_true(capture_look_hits(c) > 1000);
	capture_close(c);
	log_free(log);
	return l;
}

static void who_keeps_its_cpu_is_looked_at(void **state)
{
	struct looks l;

	(void)state;
	l = looks_take(CAPTURE_HOST, "sched_switch == 0");
	assert_true(l.with_user >= 5);
	assert_in_range(l.of_spinner, 5, 2 * RUN_MS * 1000000l / PERIOD_NS);
	assert_int_equal(l.of_switcher, 0);
	assert_int_equal(l.others, 0);
}

static void who_switches_often_is_looked_at(void **state)
{
	struct looks l;

	(void)state;
	l = looks_take(CAPTURE_HOST, "sched_switch > 20");
	assert_in_range(l.of_switcher, 2, 2 * RUN_MS * 1000000l / PERIOD_NS);
	/* When it begins to spin, other tasks may have been switched since the tick before. */
	assert_true(l.of_spinner <= RUN_MS / (8 * PERIOD_NS / 1000000) + 1);
	assert_int_equal(l.others, 0);
}

static void tasks_of_a_guest_are_looked_at(void **state)
{
	struct looks l;

	(void)state;
	l = looks_take(CAPTURE_GUEST, "sched_switch == 0 && comm != \"\"");
	assert_true(l.of_spinner >= 5);
	assert_int_equal(l.of_switcher, 0);
}

static size_t looks_of(const struct log *log)
{
	size_t n = 0;

	for (size_t i = 0; i < log->n_stacks; i++)
		n += log->stacks[i].s.role == VS_STACK_LOOK;
	return n;
}

/* After the end of the looks there are none, and other conditions may follow. */
static void looks_end_and_begin_again(void **state)
{
	const struct capture_look none = {0};
	struct capture *c = capture_begin(CAPTURE_HOST);
	struct log *log = log_new();
	struct looks l = {0};
	size_t before;
	char why[256];
	int cpus[2];

	(void)state;
	two_cpus(cpus);
	l.spinner = start_spinner(cpus[1]);
	assert_int_equal(capture_add_thread(c, l.spinner, l.spinner, VM, true), 0);
	for (int round = 0; round < 2; round++) {
		before = looks_of(log);
		look_begin(c, EVENT_HOST, round ? "sched_switch < 1000000" : "cpu < 4096");
		drain_for(c, log, RUN_MS / 2);
		assert_int_equal(capture_look_set(c, &none, why, sizeof(why)), 0);
		drain(c, log);
		assert_true(looks_of(log) >= before + 3);
		before = looks_of(log);
		drain_for(c, log, 10 * PERIOD_NS / 1000000);
		assert_int_equal(looks_of(log), before);
	}
	end(l.spinner);
	looks_read(&l, log, CAPTURE_HOST);
	assert_int_equal(l.others, 0);
	capture_close(c);
	log_free(log);
}

static void what_the_kernel_lacks_is_named(void **state)
{
	struct capture_look look = {
		.period_ns = PERIOD_NS, .n_counts = 1, .counts[0] = {"sched", "sched_nonsense"}};
	struct capture *c = capture_begin(CAPTURE_HOST);
	char why[256];

	(void)state;
	assert_int_equal(capture_look_set(c, &look, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "this kernel has no sched:sched_nonsense"));
	capture_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_keeps_its_cpu_is_looked_at),
		cmocka_unit_test(who_switches_often_is_looked_at),
		cmocka_unit_test(tasks_of_a_guest_are_looked_at),
		cmocka_unit_test(looks_end_and_begin_again),
		cmocka_unit_test(what_the_kernel_lacks_is_named),
	};
	int failed = 0, ran = 0;

	for (size_t i = 0; i < N_VARIANTS; i++) {
		variant = &variants[i];
		if (variant->backend != CAPTURE_BY_BPF || !variant_works(variant, CAPTURE_HOST))
			continue;
		failed += cmocka_run_group_tests_name(variant->name, tests, NULL, NULL);
		ran++;
	}
	return ran ? failed : 77;
}
