/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the outbox: each line is delivered or counted as lost, whatever happens to the
 * processes, the shipper and the disk. The writer is killed at any time, and so is a shipper, which
 * is a loop in another process. VCPUSCOPE_TEST_FULL=1: 200 kills of each. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/outbox_place.h"

static void test_delivers(void **state)
{
	struct target *t = calloc(1, sizeof(*t));
	struct outbox *o = open_with(64 << 20, true);
	struct outbox_stats stats;
	uint64_t now = 1000;

	(void)state;
	assert_non_null(o);
	for (uint64_t i = 0; i < 100; i++)
		number_add(o, i % 2 ? SEGMENT_FIGURES : SEGMENT_INCIDENTS, i, 10);
	outbox_tick(o, now);
	assert_int_equal(ship(t, 100), 0); /* nothing is complete yet */
	tick_all(o, &now, 61000);
	assert_int_equal(ship(t, 100), 2);
	assert_int_equal(t->distinct, 100);
	tick_all(o, &now, 1000);
	assert_int_equal(ship(t, 100), 0); /* in sent/ now */
	outbox_stats_get(o, &stats);
	assert_int_equal(stats.delivered, 2);
	assert_int_equal(stats.written[SEGMENT_INCIDENTS] + stats.written[SEGMENT_FIGURES], 100);
	outbox_close(o);
	free(t);
}

/* Figures go first, incidents last; what went is counted in the next segment. */
static void test_budget(void **state)
{
	struct target *t = calloc(1, sizeof(*t));
	struct outbox *o = open_with(3 << 20, true);
	uint64_t now = 1000, n = 0;
	struct outbox_stats stats;

	(void)state;
	assert_non_null(o);
	for (int i = 0; i < 1200; i++)
		number_add(o, SEGMENT_FIGURES, n++, 1000);
	for (int i = 0; i < 12; i++)
		number_add(o, SEGMENT_INCIDENTS, n++, 1000);
	tick_all(o, &now, 61000);
	for (int r = 0; r < 3; r++) {
		for (int i = 0; i < 1000; i++)
			number_add(o, SEGMENT_FIGURES, n++, 1000);
		tick_all(o, &now, 61000);
	}
	outbox_stats_get(o, &stats);
	assert_true(stats.lost[SEGMENT_FIGURES] >= 1200);
	assert_int_equal(stats.lost[SEGMENT_INCIDENTS], 0);
	tick_all(o, &now, 2000);
	outbox_close(o);
	ship(t, 1000);
	assert_int_equal(t->distinct + t->lost, n);
	for (uint64_t i = 1200; i < 1212; i++)
		assert_int_equal(t->numbers[i], 1);
	free(t);
}

/* Has an outbox of its own lose lines, and returns the number of its report. */
static unsigned long long report_number(void)
{
	struct outbox *o = open_with(3 << 20, true);
	unsigned long long number = 0;
	uint64_t now = 1000;
	char command[256];
	FILE *found;

	assert_non_null(o);
	for (int r = 0; r < 3; r++) {
		for (uint64_t i = 0; i < 2000; i++)
			number_add(o, SEGMENT_FIGURES, i, 1000);
		tick_all(o, &now, 61000);
	}
	tick_all(o, &now, 3000);
	outbox_close(o);
	snprintf(command, sizeof(command), "cat %s/incidents-*; rm -rf %s/*", folder, folder);
	found = popen(command, "re");
	assert_non_null(found);
	assert_int_equal(fscanf(found, "{\"record\":\"loss\",\"number\":%llu,", &number), 1);
	pclose(found);
	return number;
}

/* An engine counts reports with one number once: an outbox that somebody removed, or one of a
 * cloned host, has others. */
static void test_report_numbers(void **state)
{
	const unsigned long long first = report_number();

	(void)state;
	assert_int_not_equal(first, report_number());
}

/* Without a shipper nothing is expected: the oldest goes, and is no loss. */
static void test_local(void **state)
{
	struct outbox *o = open_with(1 << 20, false);
	struct outbox_stats stats;
	uint64_t now = 1000;

	(void)state;
	for (int r = 0; r < 5; r++) {
		for (int i = 0; i < 300; i++)
			number_add(o, SEGMENT_INCIDENTS, (uint64_t)i, 1000);
		tick_all(o, &now, 61000);
	}
	outbox_stats_get(o, &stats);
	assert_int_equal(stats.lost[SEGMENT_INCIDENTS], 0);
	assert_true(stats.bytes <= 1 << 20);
	outbox_close(o);
}

/* The recording is there before the line that names it, and moves nothing. */
static void test_evidence(void **state)
{
	struct outbox *o = open_with(64 << 20, true);
	char path[256];
	struct segment *all;
	uint64_t now = 1000;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/run.vcs", folder);
	f = fopen(path, "we");
	fputs("recording", f);
	fclose(f);
	number_add(o, SEGMENT_INCIDENTS, 1, 1);
	assert_int_equal(outbox_evidence(o, path, "0123456789abcdef0123456789abcdef"), 0);
	number_add(o, SEGMENT_INCIDENTS, 2, 1);
	assert_int_equal(outbox_evidence(o, "/nonexistent", "0123456789abcdef0123456789abcdef"),
			 -ENOENT);
	tick_all(o, &now, 2000);
	assert_int_equal(segments_list(folder, "", &all), 3);
	assert_int_equal(all[0].kind, SEGMENT_INCIDENTS);
	assert_int_equal(all[1].kind, SEGMENT_EVIDENCE);
	assert_int_equal(all[2].kind, SEGMENT_INCIDENTS);
	free(all);
	ship(NULL, 10);
	tick_all(o, &now, 2000);
	assert_int_equal(access(path, F_OK), 0);
	outbox_close(o);
}

static int kills(void)
{
	const char *full = getenv("VCPUSCOPE_TEST_FULL");

	return full && strcmp(full, "1") == 0 ? 200 : 12;
}

/* The pipe says which lines are in a file: those that a writer has said must arrive or be counted.
 */
static void writer(int to, uint64_t first, bool shipped)
{
	struct outbox *o = open_with(256 << 20, shipped);
	uint64_t n = first, now = 1000;

	if (!o)
		_exit(1);
	for (;; n++) {
		number_add(o, n % 3 ? SEGMENT_FIGURES : SEGMENT_INCIDENTS, n, n % 997);
		if (write(to, &n, sizeof(n)) != sizeof(n))
			_exit(1);
		now += n % 7 * 400;
		outbox_tick(o, now);
	}
}

static void test_kill(void **state)
{
	struct target *t = calloc(1, sizeof(*t));
	uint64_t first = 0, said_last = 0, said_n = 0, now = 1000, most = 0;
	struct outbox_stats stats;
	struct outbox *o;

	(void)state;
	srand(7);
	for (int k = 0; k < kills(); k++) {
		int pipes[2];
		pid_t pid;
		uint64_t n;

		assert_int_equal(pipe(pipes), 0);
		pid = fork();
		if (!pid) {
			close(pipes[0]);
			writer(pipes[1], first, true);
		}
		close(pipes[1]);
		/* A shipper beside it, which may be killed between the delivery and its word. */
		usleep((useconds_t)(rand() % 15000));
		ship_some(t, rand() % 3, rand() % 2);
		usleep((useconds_t)(rand() % 15000));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		while (read(pipes[0], &n, sizeof(n)) == sizeof(n)) {
			said_last = n;
			said_n++;
		}
		close(pipes[0]);
		if (said_n)
			most = said_last + 1;
		first = most + 1; /* that one may be in a file, too, before it was said */
		ship_some(t, 2, rand() % 2);
	}
	o = open_with(1 << 30, true);
	assert_non_null(o);
	tick_all(o, &now, 61000);
	tick_all(o, &now, 61000);
	outbox_stats_get(o, &stats);
	outbox_close(o);
	ship(t, 1 << 20);
	printf("%d kills: %llu lines said, %llu distinct at the target, %llu twice, %llu lost and "
	       "counted in %llu reports\n",
	       kills(), (unsigned long long)said_n, (unsigned long long)t->distinct,
	       (unsigned long long)t->duplicates, (unsigned long long)t->lost,
	       (unsigned long long)t->n_loss_reports);
	/* A line that was in a file but not said yet is one more for each kill at most. */
	assert_true(t->distinct + t->lost >= said_n);
	assert_true(t->distinct + t->lost <= said_n + (uint64_t)kills());
	assert_int_equal(t->lost, stats.lost[SEGMENT_INCIDENTS] + stats.lost[SEGMENT_FIGURES]);
	free(t);
}

/* A disk of its own, of 1 MiB, that gets full. */
static void test_full_disk(void **state)
{
	struct target *t = calloc(1, sizeof(*t));
	struct outbox_stats stats;
	struct outbox *o;
	uint64_t now = 1000, n = 0;

	(void)state;
	if (mount("none", folder, "tmpfs", 0, "size=1M")) {
		print_message("no rights to mount: %s\n", strerror(errno));
		free(t);
		skip();
	}
	o = open_with(64 << 20, true);
	assert_non_null(o);
	for (int i = 0; i < 2000; i++)
		number_add(o, SEGMENT_INCIDENTS, n++, 1000);
	outbox_stats_get(o, &stats);
	assert_int_equal(stats.error, -ENOSPC);
	assert_true(stats.lost[SEGMENT_INCIDENTS] > 800);
	tick_all(o, &now, 61000);
	outbox_close(o); /* a restart in between does not forget the counts */
	o = open_with(64 << 20, true);
	ship(t, 1000);
	tick_all(o, &now, 2000); /* they are in sent/, and give way to the next lines */
	number_add(o, SEGMENT_INCIDENTS, n++, 10);
	tick_all(o, &now, 2000);
	tick_all(o, &now, 2000);
	outbox_close(o);
	ship(t, 1000);
	assert_int_equal(t->distinct + t->lost, n);
	assert_true(t->lost > 800);
	umount(folder);
	free(t);
}

/* An outbox that cannot be opened is tried again, and counts meanwhile. */
static void test_opens_later(void **state)
{
	struct target *t = calloc(1, sizeof(*t));
	struct outbox_stats stats;
	uint64_t now = 1000;
	struct outbox *o;

	(void)state;
	/* A file where the folder is to be: also root cannot open it. */
	assert_int_equal(rmdir(folder), 0);
	close(open(folder, O_WRONLY | O_CREAT, 0600));
	said = 0;
	o = open_with(64 << 20, true);
	assert_non_null(o);
	for (uint64_t i = 0; i < 100; i++) {
		number_add(o, i % 4 ? SEGMENT_INCIDENTS : SEGMENT_FIGURES, i, 10);
		outbox_tick(o, now += 100);
	}
	assert_int_equal(outbox_evidence(o, "/dev/null", BOOT), -ENOTDIR);
	assert_int_equal(said, 1);
	outbox_stats_get(o, &stats);
	assert_int_equal(stats.error, -ENOTDIR);
	assert_int_equal(stats.lost[SEGMENT_INCIDENTS], 75);
	assert_int_equal(unlink(folder), 0);
	outbox_tick(o, now += 60000);
	number_add(o, SEGMENT_INCIDENTS, 100, 10);
	tick_all(o, &now, 2000);
	outbox_stats_get(o, &stats);
	assert_int_equal(stats.error, 0);
	assert_int_equal(stats.written[SEGMENT_INCIDENTS], 76);
	outbox_close(o);
	assert_int_equal(said, 2); /* that it is open again */
	ship(t, 10);
	assert_int_equal(t->distinct, 1);
	assert_int_equal(t->lost, 100);
	free(t);
}

/* Names that a shipper's user may make up. */
static void test_hostile_done(void **state)
{
	struct outbox *o = open_with(64 << 20, true);
	char path[256];
	uint64_t now = 1000;

	(void)state;
	number_add(o, SEGMENT_INCIDENTS, 1, 1);
	snprintf(path, sizeof(path), "%s/" OUTBOX_DONE "/account", folder);
	close(open(path, O_WRONLY | O_CREAT, 0600));
	snprintf(path, sizeof(path), "%s/" OUTBOX_DONE "/incidents-..-..-1.jsonl", folder);
	close(open(path, O_WRONLY | O_CREAT, 0600));
	snprintf(path, sizeof(path),
		 "%s/" OUTBOX_DONE "/incidents-" HOST "-" BOOT "-ffffffffffffffff.jsonl", folder);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	tick_all(o, &now, 2000);
	snprintf(path, sizeof(path), "%s/account", folder);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(access("/etc/passwd", F_OK), 0);
	outbox_close(o);
}

/* As in the daemon's unit: root, but without CAP_CHOWN. */
static int group_give(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];
	struct outbox *o;
	struct stat st;

	if (syscall(SYS_capget, &header, data))
		return 2;
	data[CAP_CHOWN / 32].effective &= ~(1u << CAP_CHOWN);
	data[CAP_CHOWN / 32].permitted &= ~(1u << CAP_CHOWN);
	if (syscall(SYS_capset, &header, data))
		return 3;
	group = 4321;
	o = open_with(1 << 20, true);
	if (!o)
		return 4;
	outbox_close(o);
	return stat(folder, &st) || st.st_gid != group ? 5 : 0;
}

static void test_group(void **state)
{
	int status;
	pid_t child;

	(void)state;
	if (geteuid())
		skip();
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(group_give());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_delivers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_group, setup, teardown),
		cmocka_unit_test_setup_teardown(test_budget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_report_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_local, setup, teardown),
		cmocka_unit_test_setup_teardown(test_evidence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kill, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_opens_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_done, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
