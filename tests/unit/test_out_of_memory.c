// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests `report` when memory runs out. Each allocation of the project's code fails in turn, in a
 * separate process (the linker's --wrap replaces the calls). The process must end with an error and
 * a message, or write the complete report. It must not end by a signal or write a part of a report
 * as if it were complete.
 *
 * With VCPUSCOPE_TEST_FULL=1 every allocation fails. Otherwise every QUICK_STEP-th one fails,
 * beginning with another one each day, so that QUICK_STEP days test all of them.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/cli/commands.h"
#include "host-collector/simulate/simulate.h"

enum { QUICK_STEP = 5, DAY_S = 86400 };

static unsigned long countdown; /* 0: none fails */
static unsigned long calls;

static bool fails(void)
{
	calls++;
	return countdown && __atomic_sub_fetch(&countdown, 1, __ATOMIC_RELAXED) == 0;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void *__real_reallocarray(void *p, size_t n, size_t bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
void *__wrap_reallocarray(void *p, size_t n, size_t bytes);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t bytes)
{
	if (!fails())
		return __real_malloc(bytes);
	errno = ENOMEM;
	return NULL;
}

void *__wrap_calloc(size_t n, size_t bytes)
{
	if (!fails())
		return __real_calloc(n, bytes);
	errno = ENOMEM;
	return NULL;
}

void *__wrap_realloc(void *p, size_t bytes)
{
	if (!fails())
		return __real_realloc(p, bytes);
	errno = ENOMEM;
	return NULL;
}

void *__wrap_reallocarray(void *p, size_t n, size_t bytes)
{
	if (!fails())
		return __real_reallocarray(p, n, bytes);
	errno = ENOMEM;
	return NULL;
}

char *__wrap_strdup(const char *text)
{
	if (!fails())
		return __real_strdup(text);
	errno = ENOMEM;
	return NULL;
}

static char recording[] = "/tmp/test_out_of_memory.XXXXXX", output[64], said[64];

static int report_run(const char *format, const char *table)
{
	char *argv[] = {"report",   recording,      "-o",          output,
			"--format", (char *)format, (char *)table, NULL};

	return command_report.run(&command_report, table ? 7 : 6, argv);
}

static char *file_read(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t len = 0, room = 1 << 20;
	char *text = malloc(room);

	assert_non_null(text);
	if (file) {
		len = fread(text, 1, room - 1, file);
		fclose(file);
	}
	text[len] = '\0';
	return text;
}

/* In a process of its own; the n-th allocation fails (0: none). Returns how it ended, and how many
 * allocations there were. */
static int trial(const char *format, const char *table, unsigned long n, unsigned long *n_calls)
{
	int status, ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	unlink(output);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int result;

		if (!freopen(said, "w", stderr))
			_exit(99);
		/* cmocka would take a crash for a failed assertion. */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		signal(SIGFPE, SIG_DFL);
		signal(SIGILL, SIG_DFL);
		countdown = n;
		calls = 0;
		result = report_run(format, table);
		if (write(ends[1], &calls, sizeof(calls)) != sizeof(calls))
			_exit(98);
		fflush(NULL);
		_exit(result);
	}
	close(ends[1]);
	*n_calls = 0;
	if (read(ends[0], n_calls, sizeof(*n_calls)) < 0)
		*n_calls = 0;
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		fail_msg("%s %s: allocation %lu failed: signal %d", format, table ? table : "", n,
			 WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* Without blanks and line ends: a line that cannot be wrapped stays wide. */
static void squeeze(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (*from != ' ' && *from != '\n')
			*to++ = *from;
	}
	*to = '\0';
}

/* Text is longer where alike stalls could not be grouped. */
static bool is_whole(const char *format, char *is, char *expected)
{
	if (!strcmp(is, expected))
		return true;
	if (strcmp(format, "text") != 0 && strcmp(format, "html") != 0)
		return false;
	squeeze(is);
	squeeze(expected);
	return !strcmp(is, expected) || strlen(is) > strlen(expected);
}

static void each_allocation_fails(const char *format, const char *table)
{
	const char *full = getenv("VCPUSCOPE_TEST_FULL");
	unsigned long step = full && !strcmp(full, "1") ? 1 : QUICK_STEP;
	unsigned long first = 1 + (unsigned long)(time(NULL) / DAY_S) % step;
	unsigned long n_calls, n, unused, errors = 0, whole = 0;
	int usual = trial(format, table, 0, &n_calls);
	char *expected = file_read(output), *again;

	assert_true(usual == COMMAND_OK || usual == COMMAND_CANNOT_TELL);
	assert_true(n_calls > 100 && *expected);
	for (n = first; n <= n_calls; n += step) {
		int result = trial(format, table, n, &unused);
		char *is, *message;

		if (result == COMMAND_TROUBLE) {
			message = file_read(said);
			if (!*message)
				fail_msg("%s: allocation %lu failed, and nothing is said", format,
					 n);
			free(message);
			errors++;
			continue;
		}
		assert_int_equal(result, usual);
		is = file_read(output);
		again = strdup(expected);
		assert_non_null(again);
		if (!is_whole(format, is, again))
			fail_msg("%s %s: allocation %lu failed: exit code %d, and another report",
				 format, table ? table : "", n, result);
		free(is);
		free(again);
		whole++;
	}
	print_message(
		"%s%s%s: of %lu allocations every %lu. from the %lu. on: %lu errors, %lu whole "
		"reports\n",
		format, table ? " " : "", table ? table : "", n_calls, step, first, errors, whole);
	assert_true(errors > 10);
	free(expected);
}

static void json_without_memory_is_an_error(void **state)
{
	(void)state;
	each_allocation_fails("json", NULL);
}

static void text_without_memory_is_an_error(void **state)
{
	(void)state;
	each_allocation_fails("text", NULL);
}

static void a_page_without_memory_is_an_error(void **state)
{
	(void)state;
	each_allocation_fails("html", NULL);
}

static void a_table_without_memory_is_an_error(void **state)
{
	(void)state;
	each_allocation_fails("csv", "irq");
}

static int setup(void **state)
{
	struct simulate_options o = {.scenario = scenario_find("vm_paused.signal"),
				     .seed = 1,
				     .for_ns = 1000000000,
				     .recording = recording,
				     .truth = "/dev/null"};
	char why[512];
	int fd = mkstemp(recording);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	snprintf(output, sizeof(output), "%s.out", recording);
	snprintf(said, sizeof(said), "%s.said", recording);
	return simulate_run(&o, why, sizeof(why));
}

static int teardown(void **state)
{
	(void)state;
	unlink(recording);
	unlink(output);
	unlink(said);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_without_memory_is_an_error),
		cmocka_unit_test(text_without_memory_is_an_error),
		cmocka_unit_test(a_page_without_memory_is_an_error),
		cmocka_unit_test(a_table_without_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
