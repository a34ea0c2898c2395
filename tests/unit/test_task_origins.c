/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests where tasks come from, with this machine's /proc, and with a tree of files in its place.
 */
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
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "host-collector/record/task_origins.h"
#include "host-collector/vm/task_files.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define SECOND       1000000000ull

struct tree {
	char root[64], proc[80], passwd[80];
	struct task_files files;
};

static void put(const struct tree *t, const char *path, const void *bytes, size_t len)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", t->root, path);
	for (char *slash = full + strlen(t->root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(full, 0755);
		*slash = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fwrite(bytes, 1, len, f);
	fclose(f);
}

static void put_text(const struct tree *t, const char *path, const char *text)
{
	put(t, path, text, strlen(text));
}

/* A thread that began so many ticks after the boot. */
static void task_put(const struct tree *t, int pid, int tid, const char *comm, unsigned ticks,
		     const char *cgroup)
{
	char path[96], text[256];

	snprintf(path, sizeof(path), "proc/%d/task/%d/stat", pid, tid);
	snprintf(text, sizeof(text),
		 "%d (%s) S 1 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 %u 9 10\n", tid, comm,
		 ticks);
	put_text(t, path, text);
	snprintf(path, sizeof(path), "proc/%d/task/%d/comm", pid, tid);
	snprintf(text, sizeof(text), "%s\n", comm);
	put_text(t, path, text);
	snprintf(path, sizeof(path), "proc/%d/task/%d/cgroup", pid, tid);
	put_text(t, path, cgroup);
}

static void process_put(const struct tree *t, int pid, const char *comm, unsigned uid,
			const char *cmdline, size_t cmdline_bytes)
{
	char path[96], text[256];

	snprintf(path, sizeof(path), "proc/%d/comm", pid);
	snprintf(text, sizeof(text), "%s\n", comm);
	put_text(t, path, text);
	snprintf(path, sizeof(path), "proc/%d/status", pid);
	snprintf(text, sizeof(text), "Name:\t%s\nUid:\t%u\t%u\t%u\t%u\n", comm, uid, uid, uid, uid);
	put_text(t, path, text);
	snprintf(path, sizeof(path), "proc/%d/cmdline", pid);
	put(t, path, cmdline, cmdline_bytes);
}

static int tree_setup(void **state)
{
	static const char vm[] = "/usr/bin/qemu-system-x86_64\0-name\0guest=web2,debug-threads=on";
	static const char odd[] = "qemu-system-x86\0-m\0512";
	struct tree *t = calloc(1, sizeof(*t));

	snprintf(t->root, sizeof(t->root), "/tmp/test_origins.XXXXXX");
	if (!mkdtemp(t->root))
		return -1;
	snprintf(t->proc, sizeof(t->proc), "%s/proc", t->root);
	snprintf(t->passwd, sizeof(t->passwd), "%s/passwd", t->root);
	put_text(t, "passwd",
		 "root:x:0:0::/:/bin/sh\nlibvirt-qemu:x:64055:994::/:/bin/false\n"
		 "eve:x:1000:1000::/home/eve:/bin/sh\n");
	task_put(t, 800, 801, "CPU 3/KVM", 100, "0::/machine.slice/web2.scope\n");
	process_put(t, 800, "qemu-system-x86", 64055, vm, sizeof(vm));
	task_put(t, 810, 811, "CPU 0/KVM", 100, "0::/user.slice/user-1000.slice/session-1.scope\n");
	process_put(t, 810, "backup", 1000, vm, sizeof(vm));
	task_put(t, 820, 820, "qemu-system-x86", 100, "0::/\n");
	process_put(t, 820, "qemu-system-x86", 0, odd, sizeof(odd));
	task_put(t, 900, 900, "a (b) c", 1000,
		 "9:cpuset:/x\n4:cpu,cpuacct:/batch\n1:name=systemd:/batch.slice\n0::/\n");
	process_put(t, 900, "a (b) c", 0, "batch", 6);
	task_facts_init(&t->files, t->proc, t->passwd);
	t->files.tick_ns = 10000000;
	t->files.suspended_ns = 0;
	*state = t;
	return 0;
}

static int file_remove(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
	(void)s, (void)type, (void)ftw;
	return remove(path);
}

static int tree_teardown(void **state)
{
	struct tree *t = *state;

	nftw(t->root, file_remove, 8, FTW_DEPTH | FTW_PHYS);
	free(t);
	return 0;
}

static struct task_identity identity(int32_t tgid, int32_t tid, const char *comm, uint64_t seen_ns)
{
	struct task_identity i = {.tid = tid, .tgid = tgid, .seen_ns = seen_ns};

	snprintf(i.comm, sizeof(i.comm), "%s", comm);
	return i;
}

static void a_vm_is_named_and_whose_word_that_is(void **state)
{
	const struct {
		int32_t tgid, tid;
		const char *comm, *vm, *cgroup;
		bool vcpu_known, claimed;
		uint32_t vcpu, uid;
	} table[] = {
		{800, 801, "CPU 3/KVM", "web2", "/machine.slice/web2.scope", true, false, 3, 64055},
		{810, 811, "CPU 0/KVM", "web2", "/user.slice/user-1000.slice/session-1.scope", true,
		 true, 0, 1000},
		{820, 820, "qemu-system-x86", "qemu-820", "/", false, false, 0, 0},
		{900, 900, "a (b) c", "", "/batch.slice", false, false, 0, 0},
	};
	struct tree *t = *state;

	for (size_t i = 0; i < COUNT(table); i++) {
		const struct task_identity who =
			identity(table[i].tgid, table[i].tid, table[i].comm, 60 * SECOND);
		struct task_facts facts;

		assert_int_equal(task_facts_read(&t->files, &who, &facts), 0);
		assert_string_equal(facts.vm, table[i].vm);
		assert_string_equal(facts.cgroup, table[i].cgroup);
		assert_int_equal(facts.vcpu_known, table[i].vcpu_known);
		assert_int_equal(facts.claimed, table[i].claimed);
		assert_int_equal(facts.vcpu, table[i].vcpu);
		assert_int_equal(facts.uid, table[i].uid);
	}
}

/* Thread 900 began 1000 ticks of 10 ms after the boot. */
static void a_thread_id_that_is_used_again_is_another_task(void **state)
{
	const struct {
		uint64_t seen_ns;
		int32_t tgid;
		const char *comm;
		int err;
	} table[] = {
		{10 * SECOND - 1, 900, "a (b) c", -ESRCH}, /* before it began */
		{10 * SECOND + 5000000, 900, "a (b) c", 0},
		{10 * SECOND + 5000000, 900, "make",
		 -ESRCH},                                 /* in its tick, and it had another name */
		{10 * SECOND + 10000000, 900, "make", 0}, /* it was renamed since */
		{11 * SECOND, 899, "a (b) c", -ESRCH},    /* of another process */
	};
	struct tree *t = *state;

	for (size_t i = 0; i < COUNT(table); i++) {
		const struct task_identity who =
			identity(table[i].tgid, 900, table[i].comm, table[i].seen_ns);
		struct task_facts facts;

		assert_int_equal(task_facts_read(&t->files, &who, &facts), table[i].err);
		if (!table[i].err)
			assert_int_equal(facts.age_ns, table[i].seen_ns - 10 * SECOND);
	}
}

static uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void wait_ms(unsigned ms)
{
	const struct timespec pause = {.tv_nsec = ms * 1000000l};

	nanosleep(&pause, NULL);
}

static struct vs_event name_event(int32_t tid, int32_t tgid, const char *comm)
{
	struct vs_event e = {.type = VS_EVENT_TASK_NAME, .pid = tid, .pid2 = tgid};
	char text[16] = "";

	snprintf(text, sizeof(text), "%s", comm);
	memcpy(&e.arg0, text, 8);
	memcpy(&e.arg1, text + 8, 8);
	return e;
}

static void ask(struct origins_asker *a, int32_t tid, int32_t tgid, const char *comm, uint64_t now)
{
	struct vs_event name = name_event(tid, tgid, comm);
	struct vs_event in = {.type = VS_EVENT_SCHED_SWITCH, .pid2 = tid, .time = 5000000000};

	origins_event(a, &name, now);
	origins_event(a, &in, now);
}

static void this_process_is_found_in_the_machines_own_proc(void **state)
{
	struct task_origins *o = task_origins_new(NULL, NULL);
	struct origins_asker *a = origins_asker_new(o);
	static struct message_task_origins got;
	char comm[32] = "", path[64];
	bool found = false;
	FILE *f = fopen("/proc/self/comm", "r");

	(void)state;
	assert_non_null(f);
	assert_non_null(fgets(comm, sizeof(comm), f));
	fclose(f);
	comm[strcspn(comm, "\n")] = 0;
	wait_ms(20); /* older than a tick */
	ask(a, getpid(), getpid(), comm, monotonic_ns());
	for (int i = 0; i < 1000 && !found; i++, wait_ms(5))
		found = origins_take(a, 1000000000, &got);
	assert_true(found);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.tasks[0].tid, getpid());
	assert_int_equal(got.tasks[0].seen, 5000000000);
	assert_true(got.tasks[0].began < got.tasks[0].seen);
	assert_true(got.tasks[0].cgroup[0] == '/');
	assert_string_equal(got.tasks[0].vm, "");
	/* It was asked for a moment ago. */
	snprintf(path, sizeof(path), "%s", comm);
	origins_event(a,
		      &(struct vs_event){
			      .type = VS_EVENT_SCHED_SWITCH, .pid2 = getpid(), .time = 6000000000},
		      monotonic_ns());
	wait_ms(60);
	assert_false(origins_take(a, 1000000000, &got));
	origins_asker_free(a);
	task_origins_free(o);
}

static void answer_await(struct origins_asker *a, struct message_task_origins *got)
{
	bool found = false;

	for (int i = 0; i < 1000 && !found; i++, wait_ms(5))
		found = origins_take(a, 1000, got); /* so that ages are in ms */
	assert_true(found);
	assert_int_equal(got->n, 1);
	assert_int_equal(got->tasks[0].tid, 900);
}

/* What was read for one stream serves the others, as long as it is the same task. */
static void streams_that_saw_one_task_share_what_was_read(void **state)
{
	static const struct {
		int64_t seen_ns; /* since the first stream saw the task */
		const char *comm;
		unsigned ticks;     /* when the task in /proc began */
		const char *cgroup; /* the task in /proc is in this one */
		const char *got;
	} table[] = {
		{0, "a (b) c", 1000, "/a", "/a"},
		{-(int64_t)SECOND, "a (b) c", 1000, "/b", "/a"}, /* it was seen before */
		{2 * SECOND, "a (b) c", 1000, "/c", "/a"},       /* later, and it is still there */
		{2 * SECOND, "renamed", 1000, "/d", "/d"},
		{2 * SECOND, "renamed", 1001, "/e", "/e"}, /* another task has its id */
	};
	static struct message_task_origins got;
	struct tree *t = *state;
	struct task_origins *o = task_origins_new(t->proc, t->passwd);
	struct origins_asker *askers[COUNT(table)];
	const uint64_t begin = monotonic_ns();
	int64_t age_ms[COUNT(table)];

	for (size_t i = 0; i < COUNT(table); i++) {
		char line[64];

		snprintf(line, sizeof(line), "0::%s\n", table[i].cgroup);
		task_put(t, 900, 900, table[i].comm, table[i].ticks, line);
		askers[i] = origins_asker_new(o);
		ask(askers[i], 900, 900, table[i].comm, begin + (uint64_t)table[i].seen_ns);
		answer_await(askers[i], &got);
		assert_string_equal(got.tasks[0].cgroup, table[i].got);
		age_ms[i] = (int64_t)(got.tasks[0].seen - got.tasks[0].began);
		assert_in_range(age_ms[i] - age_ms[0] - table[i].seen_ns / 1000000 + 20, 0, 20);
	}
	for (size_t i = 0; i < COUNT(table); i++)
		origins_asker_free(askers[i]);
	task_origins_free(o);
}

/* A FIFO that nobody writes: to open it lasts for ever. */
static void a_file_that_hangs_keeps_nobody_waiting(void **state)
{
	static struct message_task_origins got;
	struct tree *t = *state;
	struct task_origins *o;
	struct origins_asker *a, *b;
	uint64_t begin;
	char path[128];

	snprintf(path, sizeof(path), "%s/800/cmdline", t->proc);
	assert_int_equal(remove(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	o = task_origins_new(t->proc, t->passwd);
	a = origins_asker_new(o);
	b = origins_asker_new(o);
	begin = monotonic_ns();
	ask(a, 801, 800, "CPU 3/KVM", begin);
	wait_ms(50);
	for (int i = 0; i < 100000; i++) /* far more than there is room for */
		ask(b, 1 + i, 1 + i, "x", begin);
	assert_false(origins_take(a, 1000000000, &got));
	origins_asker_free(a);
	origins_asker_free(b);
	task_origins_free(o);
	assert_true(monotonic_ns() - begin < 2 * SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_vm_is_named_and_whose_word_that_is, tree_setup,
						tree_teardown),
		cmocka_unit_test_setup_teardown(a_thread_id_that_is_used_again_is_another_task,
						tree_setup, tree_teardown),
		cmocka_unit_test(this_process_is_found_in_the_machines_own_proc),
		cmocka_unit_test_setup_teardown(streams_that_saw_one_task_share_what_was_read,
						tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(a_file_that_hangs_keeps_nobody_waiting, tree_setup,
						tree_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
