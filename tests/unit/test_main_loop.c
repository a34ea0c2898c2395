// SPDX-License-Identifier: GPL-2.0-only
/* Tests the event loop that record, watch, top, the daemon and the agent share. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "proto/program/main_loop.h"
#include "proto/program/options.h"

struct program {
	struct main_loop loop;
	uv_timer_t own;
	unsigned ticks, signals, stops;
	int raise_at; /* the tick that raises `number` */
	int number;
};

static void on_tick(void *context)
{
	struct program *p = context;

	if (++p->ticks == (unsigned)p->raise_at)
		raise(p->number);
	if (p->ticks > 2000) /* a loop that does not stop fails instead of hanging */
		main_loop_fail(&p->loop, -ETIMEDOUT);
}

static void on_user_signal(void *context, int number)
{
	struct program *p = context;

	p->signals += number == SIGUSR1;
	main_loop_stop(&p->loop);
}

static void program_open(struct program *p, void (*stop)(void *context))
{
	*p = (struct program){0};
	assert_int_equal(main_loop_open(&p->loop, p, stop), 0);
	assert_int_equal(main_loop_stop_on_signals(&p->loop), 0);
	assert_int_equal(main_loop_on_signal(&p->loop, SIGUSR1, on_user_signal), 0);
	assert_int_equal(main_loop_every(&p->loop, 0, 1, on_tick), 0);
}

static void test_signals_stop(void **state)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct program p;

		program_open(&p, NULL);
		p.raise_at = 3;
		p.number = numbers[i];
		main_loop_run(&p.loop);
		assert_true(p.loop.stopping && !p.loop.error && p.ticks >= 3);
		assert_int_equal(p.signals, numbers[i] == SIGUSR1);
		main_loop_close(&p.loop);
	}
}

static void test_limit_stops(void **state)
{
	struct program p;

	(void)state;
	program_open(&p, NULL);
	assert_int_equal(main_loop_stop_after(&p.loop, 0), 0); /* never */
	assert_int_equal(main_loop_stop_after(&p.loop, 20000000), 0);
	main_loop_run(&p.loop);
	assert_true(p.loop.stopping && !p.loop.error && p.ticks);
	main_loop_close(&p.loop);
}

static void on_uv_stop(void *context)
{
	struct program *p = context;

	uv_stop(&p->loop.uv);
}

/* `vcpuscope ctl stop` reaches the loop from within the daemon. */
static void test_uv_stop(void **state)
{
	struct program p;

	(void)state;
	program_open(&p, NULL);
	assert_int_equal(main_loop_every(&p.loop, 5, 0, on_uv_stop), 0);
	main_loop_run(&p.loop);
	assert_true(p.loop.stopping && !p.loop.error && p.ticks < 2000);
	main_loop_close(&p.loop);
}

/* What stops while it is opened never runs, and the first error counts. */
static void test_stop_before_run(void **state)
{
	struct program p;

	(void)state;
	program_open(&p, NULL);
	main_loop_fail(&p.loop, 0);
	assert_false(p.loop.stopping);
	main_loop_fail(&p.loop, -EIO);
	main_loop_fail(&p.loop, -EPIPE);
	main_loop_run(&p.loop);
	assert_int_equal(p.ticks, 0);
	assert_int_equal(p.loop.error, -EIO);
	main_loop_close(&p.loop);
}

static void on_stop(void *context)
{
	struct program *p = context;

	p->stops++;
	uv_close((uv_handle_t *)&p->own, NULL);
}

static void on_own(uv_timer_t *timer)
{
	(void)timer;
}

/* The agent's way: the loop ends when the program has closed what is its own. */
static void test_stop_callback(void **state)
{
	struct program p;

	(void)state;
	program_open(&p, on_stop);
	uv_timer_init(&p.loop.uv, &p.own);
	uv_timer_start(&p.own, on_own, 1, 1);
	p.raise_at = 2;
	p.number = SIGTERM;
	main_loop_run(&p.loop);
	assert_int_equal(p.stops, 1);
	main_loop_stop(&p.loop);
	assert_int_equal(p.stops, 1);
	main_loop_close(&p.loop);
}

/* After the first signal the program hangs; the second one ends it. */
static void test_second_signal_kills(void **state)
{
	int status, ready[2];
	pid_t child;
	char byte;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct program p;

		alarm(20);
		program_open(&p, NULL);
		p.raise_at = 1;
		p.number = SIGTERM;
		main_loop_run(&p.loop);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	kill(child, SIGTERM);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	close(ready[0]);
	close(ready[1]);
}

static void test_exit_codes(void **state)
{
	static const int unsupported[] = {-EPERM, -EACCES, -EOPNOTSUPP, -ENOSYS};

	(void)state;
	assert_int_equal(command_exit_of(0), COMMAND_OK);
	assert_int_equal(command_exit_of(-ENOMEM), COMMAND_TROUBLE);
	for (size_t i = 0; i < sizeof(unsupported) / sizeof(unsupported[0]); i++)
		assert_int_equal(command_exit_of(unsupported[i]), COMMAND_UNSUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals_stop),    cmocka_unit_test(test_limit_stops),
		cmocka_unit_test(test_stop_before_run), cmocka_unit_test(test_stop_callback),
		cmocka_unit_test(test_uv_stop),         cmocka_unit_test(test_second_signal_kills),
		cmocka_unit_test(test_exit_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
