/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the reading of cgroups, with a tree of files in place of /proc and of two cgroup mounts.
 * The test changes the counters. */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "host-collector/vm/cgroup.h"

enum { PID = 700, VCPU0 = 701, VCPU1 = 702, SEEN_MAX = 16 };

struct tree {
	char root[64], proc[96];
	struct cgroups *cgroups;
	struct message_vm_info info;
	size_t n_seen;
	struct message_cpu_quota seen[SEEN_MAX];
};

/* "%R" in the text stands for the tree's root. */
static void put(struct tree *t, const char *path, const char *text)
{
	char full[256], content[1024], *at = content;
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", t->root, path);
	for (char *slash = full + strlen(t->root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	for (const char *from = text; *from; from++) {
		if (from[0] == '%' && from[1] == 'R') {
			at = stpcpy(at, t->root);
			from++;
		} else {
			*at++ = *from;
		}
	}
	*at = '\0';
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(content, f);
	fclose(f);
}

static int setup(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));

	snprintf(t->root, sizeof(t->root), "/tmp/test_cgroup.XXXXXX");
	if (!mkdtemp(t->root))
		return -1;
	snprintf(t->proc, sizeof(t->proc), "%s/proc", t->root);
	put(t, "proc/self/mountinfo",
	    "31 23 0:28 / %R rw - tmpfs tmpfs rw\n"
	    "32 31 0:29 / %R/cpuset rw - cgroup cgroup rw,cpuset\n"
	    "33 31 0:30 /docker/1 %R/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
	    "41 31 0:38 / %R/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n");
	put(t, "proc/700/task/701/cgroup",
	    "9:cpuset:/elsewhere\n4:cpu,cpuacct:/docker/1/vm/vcpu0\n0::/machine/vm/vcpu0\n");
	put(t, "proc/700/task/702/cgroup",
	    "9:cpuset:/elsewhere\n4:cpu,cpuacct:/docker/1/vm/vcpu1\n0::/machine/vm/vcpu1\n");
	t->info.vm = 3;
	t->info.qemu_pid = PID;
	t->info.n_threads = 3;
	t->info.threads[0].tid = PID;
	for (int i = 0; i < 2; i++)
		t->info.threads[i + 1] = (struct message_vm_thread){
			.tid = VCPU0 + i, .is_vcpu = true, .vcpu = (uint32_t)i};
	t->cgroups = cgroups_new(t->proc);
	*state = t;
	return 0;
}

static int file_remove(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
	(void)s, (void)type, (void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	struct tree *t = *state;

	cgroups_free(t->cgroups);
	nftw(t->root, file_remove, 8, FTW_DEPTH | FTW_PHYS);
	free(t);
	return 0;
}

static uint64_t now;

static uint64_t tsc(void)
{
	return now++;
}

static void on_reading(void *context, const struct message_cpu_quota *reading)
{
	struct tree *t = context;

	assert_true(t->n_seen < SEEN_MAX);
	t->seen[t->n_seen++] = *reading;
}

static void look(struct tree *t, uint64_t at)
{
	now = at;
	t->n_seen = 0;
	cgroups_read(t->cgroups, tsc, on_reading, t);
}

/* A second passes: only then a group without a quota is read. */
static void look_for_a_second(struct tree *t, uint64_t at)
{
	now = at;
	t->n_seen = 0;
	for (int i = 0; i < 10; i++)
		cgroups_read(t->cgroups, tsc, on_reading, t);
}

static void a_parents_quota_of_v2_is_read_for_all_vcpus_below(void **state)
{
	struct tree *t = *state;

	put(t, "unified/machine/cpu.stat",
	    "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 1000\n");
	put(t, "unified/machine/cpu.max", "20000 100000\n");
	put(t, "unified/machine/vm/vcpu0/cpu.stat", "usage_usec 5\n"); /* not switched on */
	assert_int_equal(cgroups_follow(t->cgroups, &t->info), 0);
	look(t, 1000);
	assert_int_equal(t->n_seen, 0); /* against what? */
	put(t, "unified/machine/cpu.stat",
	    "usage_usec 5\nnr_periods 11\nnr_throttled 6\nthrottled_usec 161000\n");
	look(t, 2000);
	assert_int_equal(t->n_seen, 1);
	assert_int_equal(t->seen[0].vm, 3);
	assert_int_equal(t->seen[0].n_vcpus, 2);
	assert_int_equal(t->seen[0].vcpus[0] + t->seen[0].vcpus[1], 1);
	assert_int_equal(t->seen[0].from, 1000);
	assert_int_equal(t->seen[0].until, 2000);
	assert_int_equal(t->seen[0].periods, 2);
	assert_int_equal(t->seen[0].throttled_ns, 160000000);
	assert_int_equal(t->seen[0].quota_us, 20000);
	assert_int_equal(t->seen[0].period_us, 100000);
	assert_string_equal(t->seen[0].cgroup, "/machine");
	look(t, 3000);
	assert_int_equal(t->n_seen, 1); /* a quota that cost nothing is known, too */
	assert_int_equal(t->seen[0].from, 2000);
	assert_int_equal(t->seen[0].throttled_ns, 0);
	/* Its counters begin anew: another of the same name. */
	put(t, "unified/machine/cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_usec 7\n");
	look(t, 4000);
	assert_int_equal(t->seen[0].throttled_ns, 0);
}

/* A wait is kept for 200 ms after a reading: a quota that is lifted within a second needs one
 * before its waits end. */
static void a_new_quota_is_read_at_once(void **state)
{
	static const struct {
		const char *stat, *quota, *none, *some, *counters;
	} versions[] = {{"unified/machine/cpu.stat", "unified/machine/cpu.max", "max 100000\n",
			 "10000 1000000\n", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"},
			{"cpu/vm/cpu.stat", "cpu/vm/cpu.cfs_quota_us", "-1\n", "10000\n",
			 "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"}};
	struct tree *t = *state;

	put(t, "cpu/vm/cpu.cfs_period_us", "1000000\n");
	for (int i = 0; i < 2; i++) {
		put(t, versions[i].stat, versions[i].counters);
		put(t, versions[i].quota, versions[i].none);
	}
	assert_int_equal(cgroups_follow(t->cgroups, &t->info), 0);
	look(t, 100);
	look(t, 200);
	assert_int_equal(t->n_seen, 0);
	for (int i = 0; i < 2; i++) {
		put(t, versions[i].quota, versions[i].some);
		look(t, 300);
		assert_int_equal(t->n_seen, 1);
		assert_int_equal(t->seen[0].quota_us, 10000);
		assert_int_equal(t->seen[0].period_us, 1000000);
		put(t, versions[i].quota, versions[i].none);
		look(t, 400);
		look(t, 500);
		assert_int_equal(t->n_seen, 0);
	}
}

static void a_threads_own_quota_of_v1_is_its_alone(void **state)
{
	struct tree *t = *state;

	put(t, "cpu/vm/vcpu1/cpu.stat", "nr_periods 1\nnr_throttled 0\nthrottled_time 0\n");
	put(t, "cpu/vm/vcpu1/cpu.cfs_quota_us", "-1\n");
	put(t, "cpu/vm/vcpu1/cpu.cfs_period_us", "50000\n");
	assert_int_equal(cgroups_follow(t->cgroups, &t->info), 0);
	look(t, 100);
	look_for_a_second(t, 200);
	assert_int_equal(t->n_seen, 0); /* no quota, nothing throttled */
	put(t, "cpu/vm/vcpu1/cpu.stat", "nr_periods 4\nnr_throttled 3\nthrottled_time 70000001\n");
	look_for_a_second(t, 300);
	assert_int_equal(t->n_seen, 1); /* set, used up, and taken away again */
	assert_int_equal(t->seen[0].n_vcpus, 1);
	assert_int_equal(t->seen[0].vcpus[0], 1);
	assert_int_equal(t->seen[0].throttled_ns, 70000001);
	assert_int_equal(t->seen[0].quota_us, 0);
	assert_string_equal(t->seen[0].cgroup, "/vm/vcpu1");
	put(t, "cpu/vm/vcpu1/cpu.cfs_quota_us", "10000\n");
	look_for_a_second(t, 400);
	assert_int_equal(t->seen[0].quota_us, 10000);
	assert_int_equal(t->seen[0].period_us, 50000);
	/* It moves away: its old cgroup is no longer read. */
	put(t, "proc/700/task/702/cgroup", "4:cpu,cpuacct:/docker/1\n0::/\n");
	assert_int_equal(cgroups_follow(t->cgroups, &t->info), 0);
	look(t, 500);
	assert_int_equal(t->n_seen, 0);
}

/* A quota that is used up at once stops the thread long before the next cgroups_follow(). */
static void a_thread_that_moves_takes_its_new_cgroups_quota_at_once(void **state)
{
	struct tree *t = *state;

	put(t, "cpu/new/cpu.stat", "nr_periods 8\nnr_throttled 5\nthrottled_time 3000\n");
	put(t, "cpu/new/cpu.cfs_quota_us", "10000\n");
	put(t, "cpu/new/cpu.cfs_period_us", "1000000\n");
	assert_int_equal(cgroups_follow(t->cgroups, &t->info), 0);
	look(t, 100);
	look(t, 200);
	put(t, "proc/700/task/702/cgroup", "4:cpu,cpuacct:/docker/1/new\n0::/\n");
	look(t, 300); /* the first reading: the counters grew before the thread came, too */
	assert_int_equal(t->n_seen, 0);
	put(t, "cpu/new/cpu.stat", "nr_periods 9\nnr_throttled 6\nthrottled_time 890003000\n");
	look(t, 400);
	assert_int_equal(t->n_seen, 1);
	assert_string_equal(t->seen[0].cgroup, "/new");
	assert_int_equal(t->seen[0].n_vcpus, 1);
	assert_int_equal(t->seen[0].vcpus[0], 1);
	assert_int_equal(t->seen[0].from, 300);
	assert_int_equal(t->seen[0].quota_us, 10000);
	assert_int_equal(t->seen[0].throttled_ns, 890000000);
	/* A list of threads without it, or of another process, ends that. */
	t->info.n_threads = 2;
	assert_int_equal(cgroups_follow(t->cgroups, &t->info), 0);
	look(t, 500);
	assert_int_equal(t->n_seen, 0);
	t->info.n_threads = 3;
	assert_int_equal(cgroups_follow(t->cgroups, &t->info), 0);
	look(t, 600);
	look(t, 700);
	assert_int_equal(t->n_seen, 1);
	t->info.qemu_pid = PID + 50;
	assert_int_equal(cgroups_follow(t->cgroups, &t->info), 0);
	look(t, 800);
	assert_int_equal(t->n_seen, 0);
}

static void a_line_that_is_too_long_leaves_the_others(void **state)
{
	struct tree *t = *state;
	char text[1024];

	snprintf(text, sizeof(text), "1:cpu:/%0900d\n0::/machine\n", 0);
	put(t, "proc/700/task/702/cgroup", text);
	put(t, "unified/machine/cpu.stat", "nr_throttled 4\nthrottled_usec 1000\n");
	put(t, "unified/machine/cpu.max", "20000 100000\n");
	assert_int_equal(cgroups_follow(t->cgroups, &t->info), -E2BIG);
	look(t, 100);
	look(t, 200);
	assert_int_equal(t->n_seen, 1);
	assert_int_equal(t->seen[0].n_vcpus, 2);
}

static void a_machine_without_cgroups_has_no_quotas(void **state)
{
	struct tree *t = *state;

	cgroups_free(t->cgroups);
	t->cgroups = cgroups_new("/nonexistent");
	assert_int_equal(cgroups_follow(t->cgroups, &t->info), 0);
	look(t, 1);
	assert_int_equal(t->n_seen, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_parents_quota_of_v2_is_read_for_all_vcpus_below,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_new_quota_is_read_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_threads_own_quota_of_v1_is_its_alone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_thread_that_moves_takes_its_new_cgroups_quota_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_line_that_is_too_long_leaves_the_others, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_machine_without_cgroups_has_no_quotas, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
