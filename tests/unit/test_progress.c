/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that progress is shown on a terminal after one second, and erased at the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include <fcntl.h>

#include "host-collector/util/progress.h"

static double seconds_since(const struct timespec *begin)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) / 1e9;
}

/* Works for so long with standard error at `fd`. */
static void work(int fd, double seconds, uint64_t done, uint64_t total)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	int saved = dup(STDERR_FILENO);
	struct progress p;
	struct timespec begin;

	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	progress_begin(&p, "run.vcs", "reads the events", total);
	while (seconds_since(&begin) < seconds) {
		for (int i = 0; i < 100; i++)
			progress_step(&p, done);
		nanosleep(&nap, NULL);
	}
	progress_end(&p);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
}

static size_t output_read(int fd, char *out, size_t out_bytes)
{
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, out + len, out_bytes - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = '\0';
	return len;
}

static void shows_the_share_after_a_second(void **state)
{
	char text[4096];
	int screen = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK), terminal;

	(void)state;
	assert_true(screen >= 0);
	assert_int_equal(grantpt(screen) | unlockpt(screen), 0);
	terminal = open(ptsname(screen), O_RDWR | O_NOCTTY);
	assert_true(terminal >= 0);
	work(terminal, 0.2, 1, 4);
	assert_int_equal(output_read(screen, text, sizeof(text)), 0); /* too short to matter */
	work(terminal, 1.5, 1, 4);
	output_read(screen, text, sizeof(text));
	assert_non_null(strstr(text, "\rrun.vcs: reads the events, 25 %"));
	assert_string_equal(text + strlen(text) - 4, "\r\033[K");
	work(terminal, 1.5, 70000000, 0);
	output_read(screen, text, sizeof(text));
	assert_non_null(strstr(text, "reads the events, 70 MB"));
	close(terminal);
	close(screen);
}

static void is_silent_without_a_terminal(void **state)
{
	char text[64];
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	work(ends[1], 1.5, 1, 4);
	close(ends[1]);
	assert_int_equal(output_read(ends[0], text, sizeof(text)), 0);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_the_share_after_a_second),
		cmocka_unit_test(is_silent_without_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
