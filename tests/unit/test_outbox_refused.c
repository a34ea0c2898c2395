/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests segments that the disk refuses to complete: fsync() and rename() of this process fail as
 * the test chooses. The segments are tried again and count in the budget; dropped lines are counted
 * as lost. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/outbox_place.h"

static int fsync_fails; /* the next ones of files, with EIO */

/* In place of libc's. */
int fsync(int fd)
{
	struct stat st;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    __atomic_load_n(&fsync_fails, __ATOMIC_SEQ_CST) > 0) {
		__atomic_sub_fetch(&fsync_fails, 1, __ATOMIC_SEQ_CST);
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}

static int renames_fail; /* the next ones of files that end with ".part", with EROFS */
static bool unlinks_fail, unlinks_end; /* those of such files; with EROFS, with the process's end */

static bool is_part(const char *path)
{
	const size_t len = strlen(path), end = strlen(SEGMENT_PART);

	return len > end && !strcmp(path + len - end, SEGMENT_PART);
}

/* In place of libc's. */
int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	if (is_part(from) && __atomic_load_n(&renames_fail, __ATOMIC_SEQ_CST) > 0) {
		__atomic_sub_fetch(&renames_fail, 1, __ATOMIC_SEQ_CST);
		errno = EROFS;
		return -1;
	}
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}

int unlinkat(int dir, const char *path, int flags)
{
	if (is_part(path) && unlinks_end)
		_exit(42);
	if (is_part(path) && unlinks_fail) {
		errno = EROFS;
		return -1;
	}
	return (int)syscall(SYS_unlinkat, dir, path, flags);
}

static void renames_fail_set(int n)
{
	__atomic_store_n(&renames_fail, n, __ATOMIC_SEQ_CST);
}

/* A segment that the disk refused is completed by the same process, when the disk takes it. */
static void test_refused_by_the_disk(void **state)
{
	struct target *t = calloc(1, sizeof(*t));
	struct outbox *o = open_with(64 << 20, true);
	struct outbox_stats stats;
	uint64_t now = 1000;

	(void)state;
	assert_non_null(o);
	number_add(o, SEGMENT_INCIDENTS, 7, 10);
	__atomic_store_n(&fsync_fails, 2, __ATOMIC_SEQ_CST);
	outbox_tick(o, now);
	outbox_tick(o, now + 1100); /* completes it: the first failure */
	for (int i = 0; i < 500 && __atomic_load_n(&fsync_fails, __ATOMIC_SEQ_CST) > 1; i++)
		usleep(10000);
	usleep(100000);
	outbox_stats_get(o, &stats);
	assert_int_equal(stats.error, -EIO);
	assert_int_equal(ship(t, 100), 0);
	for (int i = 0; i < 1000 && !ship(t, 100); i++) /* after 1 s and 2 s more */
		usleep(10000);
	assert_int_equal(t->distinct, 1);
	usleep(100000);
	outbox_stats_get(o, &stats);
	assert_int_equal(stats.error, 0);
	assert_int_equal(stats.lost[SEGMENT_INCIDENTS], 0);
	outbox_close(o);
	free(t);
}

/* The same for a rename. The reason is logged once, and that it is over. */
static void test_rename_refused(void **state)
{
	struct target *t = calloc(1, sizeof(*t));
	struct outbox *o = open_with(64 << 20, true);
	struct outbox_stats stats;
	uint64_t now = 1000;

	(void)state;
	assert_non_null(o);
	said = 0;
	number_add(o, SEGMENT_INCIDENTS, 7, 10);
	renames_fail_set(2);
	outbox_tick(o, now);
	outbox_tick(o, now += 1100);
	for (int i = 0; i < 500 && !said; i++) {
		usleep(10000);
		outbox_tick(o, now += 1100);
	}
	assert_int_equal(said, 1);
	assert_non_null(strstr(said_text, strerror(EROFS)));
	outbox_stats_get(o, &stats);
	assert_int_equal(stats.error, -EROFS);
	assert_int_equal(stats.refused_error, -EROFS);
	assert_int_equal(stats.refused, 1);
	assert_int_equal(ship(t, 100), 0);
	for (int i = 0; i < 1000 && !ship(t, 100); i++) /* after 1 s and 2 s more */
		usleep(10000);
	assert_int_equal(t->distinct, 1);
	usleep(100000);
	outbox_tick(o, now + 60000);
	assert_int_equal(said, 2);
	outbox_stats_get(o, &stats);
	assert_int_equal(stats.error, 0);
	assert_int_equal(stats.refused, 0);
	assert_int_equal(stats.lost[SEGMENT_INCIDENTS], 0);
	outbox_close(o);
	free(t);
}

/* Waits until the disk has refused `n` segments. */
static void refused_wait(struct outbox *o, uint64_t n)
{
	struct outbox_stats stats;

	for (int i = 0; i < 500; i++) {
		outbox_stats_get(o, &stats);
		if (stats.refused >= n)
			return;
		usleep(10000);
	}
	fail_msg("%llu segments are refused, not %llu", (unsigned long long)stats.refused,
		 (unsigned long long)n);
}

enum { REFUSED_ROUNDS = 8, REFUSED_LINES = 600 };

/* Writes segments that the disk refuses, of about 600 KiB. Returns the number of lines so far. */
static uint64_t refused_write(struct outbox *o, enum segment_kind kind, uint64_t n, uint64_t *now)
{
	uint64_t before;
	struct outbox_stats stats;

	outbox_stats_get(o, &stats);
	before = stats.refused;
	for (int i = 0; i < REFUSED_LINES; i++)
		number_add(o, kind, n++, 1000);
	outbox_tick(o, *now += 100);
	outbox_tick(o, *now += 60000);
	outbox_tick(o, *now += 100); /* it is complete, if it was one more tick in the making */
	if (before < 3)
		refused_wait(o, before + 1);
	else
		usleep(50000);
	return n;
}

/* What the disk refuses to complete counts in the budget. What is dropped for it is counted, and
 * reported as refused. */
static void test_refused_budget(void **state)
{
	struct target *t = calloc(1, sizeof(*t));
	struct outbox *o = open_with(3 << 20, true);
	uint64_t now = 1000, n = 0, bytes = 0;
	struct segment *all;
	struct outbox_stats stats;
	long parts;

	(void)state;
	assert_non_null(o);
	renames_fail_set(1 << 20);
	n = refused_write(o, SEGMENT_INCIDENTS, n, &now);
	for (int r = 0; r < REFUSED_ROUNDS; r++)
		n = refused_write(o, SEGMENT_FIGURES, n, &now);
	outbox_tick(o, now += 60000);
	parts = segments_list(folder, SEGMENT_PART, &all);
	for (long i = 0; i < parts; i++)
		bytes += all[i].bytes;
	free(all);
	outbox_stats_get(o, &stats);
	assert_true(parts > 2);
	assert_true(bytes <= 3 << 20);
	assert_true(stats.bytes >= bytes && stats.bytes <= 3 << 20);
	assert_true(stats.lost[SEGMENT_FIGURES] >= 4 * REFUSED_LINES);
	assert_int_equal(stats.lost[SEGMENT_INCIDENTS], 0);
	renames_fail_set(0);
	refused_reported = 0;
	tick_all(o, &now, 61000);
	outbox_close(o); /* completes the others */
	ship(t, 1000);
	assert_int_equal(t->distinct + t->lost, n);
	assert_int_equal(t->lost, stats.lost[SEGMENT_FIGURES]);
	for (uint64_t i = 0; i < REFUSED_LINES; i++)
		assert_int_equal(t->numbers[i], 1);
	free(t);
}

/* A segment that the disk refuses to complete and to remove is not counted as lost. */
static void test_refused_removal(void **state)
{
	struct target *t = calloc(1, sizeof(*t));
	struct outbox *o = open_with(1 << 20, true);
	struct outbox_stats stats;
	uint64_t now = 1000, n = 0;

	(void)state;
	assert_non_null(o);
	renames_fail_set(1 << 20);
	unlinks_fail = true;
	for (int r = 0; r < 3; r++)
		n = refused_write(o, SEGMENT_FIGURES, n, &now);
	outbox_stats_get(o, &stats);
	assert_int_equal(stats.lost[SEGMENT_FIGURES], 0);
	assert_true(stats.bytes > 1 << 20);
	unlinks_fail = false;
	renames_fail_set(0);
	outbox_close(o);
	ship(t, 1000);
	assert_int_equal(t->distinct, n);
	assert_int_equal(t->lost, 0);
	free(t);
}

/* A process that is killed after it counted such a segment, before it removed it: it counts once.
 */
static void test_refused_killed(void **state)
{
	struct target *t = calloc(1, sizeof(*t));
	const uint64_t n = 3 * REFUSED_LINES;
	struct outbox *o;
	uint64_t now = 1000;
	pid_t child;
	int status;

	(void)state;
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		o = open_with(1 << 20, true);
		renames_fail_set(1 << 20);
		unlinks_end = true;
		for (uint64_t i = 0; o && i < n; i += REFUSED_LINES)
			refused_write(o, SEGMENT_FIGURES, i, &now);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 42);
	o = open_with(64 << 20, true);
	assert_non_null(o);
	tick_all(o, &now, 61000);
	outbox_close(o);
	ship(t, 1000);
	assert_int_equal(t->lost, REFUSED_LINES);
	/* It was killed while it added a line, which was in a file. */
	assert_true(t->distinct > 0);
	for (uint64_t i = 0; i < REFUSED_LINES; i++)
		assert_int_equal(t->numbers[i], 0);
	for (uint64_t i = REFUSED_LINES; i < REFUSED_LINES + t->distinct; i++)
		assert_int_equal(t->numbers[i], 1);
	free(t);
}

/* What the disk refuses when an outbox opens is tried again, too. */
static void test_refused_at_start(void **state)
{
	struct target *t = calloc(1, sizeof(*t));
	struct outbox *o = open_with(64 << 20, true);
	uint64_t now = 1000;

	(void)state;
	assert_non_null(o);
	renames_fail_set(1 << 20);
	number_add(o, SEGMENT_INCIDENTS, 7, 10);
	outbox_close(o);
	assert_int_equal(ship(t, 100), 0);
	o = open_with(64 << 20, true);
	refused_wait(o, 1);
	renames_fail_set(0);
	for (int i = 0; i < 1000 && !ship(t, 100); i++) {
		usleep(10000);
		outbox_tick(o, now += 100);
	}
	assert_int_equal(t->distinct, 1);
	outbox_close(o);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_refused_by_the_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rename_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_budget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_removal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_at_start, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
