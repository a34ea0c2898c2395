// SPDX-License-Identifier: GPL-2.0-only
/* Tests the programs that the daemon starts: their descriptors and environment, and how the
 * daemon learns of their end. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "host-collector/daemon/child.h"

struct seen {
	uv_loop_t loop;
	struct child child;
	int ended, closed, code, signal;
};

static void on_ended(void *context, int code, int number)
{
	struct seen *s = context;

	s->ended++;
	s->code = code;
	s->signal = number;
}

static void on_closed(void *context)
{
	struct seen *s = context;

	assert_int_equal(s->child.pid, 0);
	s->closed++;
}

static int run_begin(struct seen *s, const char *program, const char *script, int in, int out)
{
	char words[512], option[] = "-c", name[] = "sh";
	char *args[] = {name, option, words, NULL};

	*s = (struct seen){.child = {.ended = on_ended, .closed = on_closed, .context = s}};
	snprintf(words, sizeof(words), "%s", script);
	assert_int_equal(uv_loop_init(&s->loop), 0);
	return child_start(&s->child, &s->loop, program, args, in, out);
}

static void run_end(struct seen *s)
{
	uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_int_equal(s->closed, 1);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie is left */
}

static void its_exit_code_is_seen(void **state)
{
	struct seen s;

	(void)state;
	assert_int_equal(run_begin(&s, "/bin/sh", "exit 5", -1, -1), 0);
	run_end(&s);
	assert_int_equal(s.ended, 1);
	assert_int_equal(s.code, 5);
	assert_int_equal(s.signal, 0);
}

static void one_that_is_killed_has_ended_by_the_signal(void **state)
{
	struct seen s;

	(void)state;
	assert_int_equal(run_begin(&s, "/bin/sh", "sleep 100", -1, -1), 0);
	assert_true(s.child.pid > 0);
	child_kill(&s.child);
	run_end(&s);
	assert_int_equal(s.ended, 1);
	assert_int_equal(s.signal, SIGKILL);
	child_kill(&s.child); /* of one that is gone: nothing */
}

static void what_cannot_be_run_is_an_error_and_is_closed_later(void **state)
{
	struct seen s;

	(void)state;
	assert_int_equal(run_begin(&s, "/no/such/program", "", -1, -1), -ENOENT);
	assert_int_equal(s.closed, 0);
	run_end(&s);
	assert_int_equal(s.ended, 0);
}

/* No other descriptor, no blocked and no ignored signal. */
static void it_gets_its_input_and_output_and_nothing_else(void **state)
{
	int to[2], from[2], leaks = fcntl(STDERR_FILENO, F_DUPFD, 77);
	char text[64] = "";
	sigset_t blocked;
	struct seen s;

	(void)state;
	assert_int_equal(leaks, 77);
	assert_int_equal(pipe2(to, O_CLOEXEC) | pipe2(from, O_CLOEXEC), 0);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	signal(SIGTERM, SIG_IGN);
	assert_int_equal(run_begin(&s, "/bin/sh",
				   "read word; test ! -e /proc/$$/fd/77 || word=leak;"
				   "echo $word; kill -TERM $$",
				   to[0], from[1]),
			 0);
	sigprocmask(SIG_UNBLOCK, &blocked, NULL);
	signal(SIGTERM, SIG_DFL);
	assert_int_equal(write(to[1], "word\n", 5), 5);
	run_end(&s);
	assert_int_equal(read(from[0], text, sizeof(text) - 1), 5);
	assert_string_equal(text, "word\n");
	assert_int_equal(s.signal, SIGTERM);
	close(leaks);
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(from[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_exit_code_is_seen),
		cmocka_unit_test(one_that_is_killed_has_ended_by_the_signal),
		cmocka_unit_test(what_cannot_be_run_is_an_error_and_is_closed_later),
		cmocka_unit_test(it_gets_its_input_and_output_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
