// SPDX-License-Identifier: GPL-2.0-only
/* Tests the limit of lines that a peer can cause in the log, and that a log without a reader
 * blocks nothing. */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "proto/log_limit.h"
#include "proto/log_writer.h"

static void lines_are_limited_and_counted(void **state)
{
	struct log_limit l = {0};
	uint64_t shown = 0, hidden = 0;

	(void)state;
	/* A line each millisecond for 60 s, then silence. */
	for (uint64_t ms = 5; ms < 60005; ms++) {
		hidden += log_limit_hidden(&l, ms);
		assert_int_equal(log_limit_is_reached(&l, ms),
				 l.lines == LOG_LIMIT_LINES && ms - l.begin_ms < LOG_LIMIT_MS);
		shown += log_limit_admit(&l, ms);
		if (shown > LOG_LIMIT_LINES * (ms / LOG_LIMIT_MS + 1))
			fail_msg("%" PRIu64 " lines after %" PRIu64 " ms", shown, ms);
	}
	assert_int_equal(shown, 6 * LOG_LIMIT_LINES);
	hidden += log_limit_hidden(&l, 60004);
	assert_true(shown + hidden < 60000); /* the last time is not over */
	hidden += log_limit_hidden(&l, 80000);
	assert_int_equal(shown + hidden, 60000);
	assert_int_equal(log_limit_hidden(&l, 90000), 0);
	assert_true(log_limit_admit(&l, 90000));
}

static void few_lines_are_all_shown(void **state)
{
	struct log_limit l = {0};

	(void)state;
	for (uint64_t ms = 0; ms < 10000000; ms += LOG_LIMIT_MS / LOG_LIMIT_LINES + 1) {
		assert_int_equal(log_limit_hidden(&l, ms), 0);
		assert_true(log_limit_admit(&l, ms));
	}
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* What blocks would block for ever; an emulated CPU on a busy machine takes its time. */
enum { LINES = 20000, LONG_MS = 60000 };

/* Reads up to `bytes` of what comes within LONG_MS, until `end` is in it. */
static size_t pipe_read(int fd, char *out, size_t bytes, const char *end)
{
	const uint64_t until = now_ms() + LONG_MS;
	size_t n = 0;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (now_ms() < until && n < bytes - 1) {
		ssize_t got = read(fd, out + n, bytes - 1 - n);

		if (got > 0)
			n += (size_t)got;
		out[n] = '\0';
		if (end && strstr(out, end))
			break;
		if (got <= 0)
			usleep(1000);
	}
	return n;
}

static void a_log_that_nobody_reads_holds_up_nobody(void **state)
{
	static char text[1 << 20];
	struct log_writer *w;
	uint64_t begin, seen = 0, missing = 0;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(log_writer_new(ends[1], &w), 0);
	begin = now_ms();
	for (int i = 0; i < LINES; i++)
		log_writer_line(w, "line %d of a flood", i);
	assert_true(now_ms() - begin < LONG_MS); /* a write would wait for ever */
	/* Once it is read, it goes on, and says what is missing. */
	pipe_read(ends[0], text, sizeof(text), "are missing here");
	log_writer_line(w, "the end");
	pipe_read(ends[0], text + strlen(text), sizeof(text) - strlen(text), "the end");
	for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
		uint64_t n;

		if (sscanf(at, "%" SCNu64 " lines are missing", &n) == 1)
			missing += n;
		else
			seen++;
	}
	assert_true(missing > 0 && missing < LINES);
	assert_non_null(strstr(text, "the end"));
	assert_int_equal(seen - 1 + missing, LINES);
	log_writer_free(w, 1000);
	close(ends[0]);
	close(ends[1]);
}

static void a_stuck_log_does_not_hold_up_the_end(void **state)
{
	struct log_writer *w;
	uint64_t begin;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(log_writer_new(ends[1], &w), 0);
	for (int i = 0; i < LINES; i++)
		log_writer_line(w, "line %d of a flood", i);
	begin = now_ms();
	log_writer_free(w, 100);
	assert_in_range(now_ms() - begin, 90, LONG_MS);
	close(ends[0]); /* the thread's write fails, and the thread ends */
	usleep(50000);
	close(ends[1]);
}

static void the_descriptor_stays_as_it_was(void **state)
{
	struct log_writer *w;
	char text[64] = "";
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(log_writer_new(ends[1], &w), 0);
	log_writer_line(w, "%s", "said");
	log_writer_free(w, 1000); /* waits until it is written */
	assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(read(ends[0], text, sizeof(text)), 5);
	assert_string_equal(text, "said\n");
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_limited_and_counted),
		cmocka_unit_test(few_lines_are_all_shown),
		cmocka_unit_test(a_log_that_nobody_reads_holds_up_nobody),
		cmocka_unit_test(a_stuck_log_does_not_hold_up_the_end),
		cmocka_unit_test(the_descriptor_stays_as_it_was),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
