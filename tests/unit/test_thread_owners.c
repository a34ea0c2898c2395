/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the processes of threads: read data are used again, but not for another process with the
 * same number, nor for a thread that moved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/fleet/thread_owners.h"

#define UUID_A "6f0d1c2b-3a49-4586-97a8-b9cadbecfd0e"
#define UUID_B "00000000-1111-2222-3333-444444444444"

enum { VMM = 100, VCPU = 101, KEEP_MS = 60000 };

static char proc[64];

static void shell(const char *format, int a, int b)
{
	char inner[256], command[512];

	snprintf(inner, sizeof(inner), format, a, b);
	snprintf(command, sizeof(command), "cd %s && %s", proc, inner);
	assert_int_equal(system(command), 0);
}

/* A file of /proc, of this process. */
static void file(int pid, const char *name, const char *text, size_t bytes)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d/%s", proc, pid, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, bytes, f), bytes);
	fclose(f);
}

static void command_line(int pid, const char *uuid)
{
	char text[128];
	const int len = snprintf(text, sizeof(text), "/usr/bin/qemu-system-x86_64%c-uuid%c%s%c", 0,
				 0, uuid, 0);

	file(pid, "cmdline", text, (size_t)len);
	file(pid, "comm", "qemu-system-x86\n", 16);
}

/* A thread of this process. */
static void thread_add(int process, int tid)
{
	char text[64];
	const int len = snprintf(text, sizeof(text), "Name:\tCPU 0/KVM\nTgid:\t%d\n", process);

	shell("mkdir -p %d %d", tid, tid);
	shell("mkdir -p %d/task/%d", process, tid);
	file(tid, "status", text, (size_t)len);
}

static void process_add(int pid, const char *uuid)
{
	thread_add(pid, pid);
	command_line(pid, uuid);
}

static int setup(void **state)
{
	(void)state;
	snprintf(proc, sizeof(proc), "/tmp/thread_owners.XXXXXX");
	assert_non_null(mkdtemp(proc));
	process_add(VMM, UUID_A);
	thread_add(VMM, VCPU);
	*state = thread_owners_new(proc);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	thread_owners_free(*state);
	shell("rm -r $PWD", 0, 0);
	return 0;
}

static void assert_owner(struct thread_owners *o, pid_t tid, uint64_t now_ms, pid_t process,
			 const char *uuid)
{
	char found[IDENTITY_UUID_BYTES];

	assert_int_equal(thread_owners_process(o, tid, now_ms), process);
	if (!process)
		return;
	thread_owners_uuid(o, process, found);
	assert_string_equal(found, uuid);
}

static void test_of_this_machine(void **state)
{
	struct thread_owners *o = thread_owners_new("/proc");

	(void)state;
	assert_non_null(o);
	assert_owner(o, getpid(), 0, getpid(), "");
	assert_owner(o, getpid(), 1, getpid(), "");
	assert_int_equal(thread_owners_process(o, 0, 1), 0);
	assert_int_equal(thread_owners_process(o, -1, 1), 0);
	thread_owners_free(o);
}

static void test_reads_once(void **state)
{
	assert_owner(*state, VCPU, 0, VMM, UUID_A);
	command_line(VMM, UUID_B);
	shell("rm %d/status %d/status", VMM, VCPU);
	assert_owner(*state, VCPU, KEEP_MS - 1, VMM, UUID_A);
}

/* A process that starts another program keeps its number and its start. */
static void test_reads_again_after_a_minute(void **state)
{
	assert_owner(*state, VCPU, 0, VMM, UUID_A);
	command_line(VMM, UUID_B);
	assert_owner(*state, VCPU, KEEP_MS, VMM, UUID_B);
}

static void test_a_new_process_with_an_old_number(void **state)
{
	assert_owner(*state, VCPU, 0, VMM, UUID_A);
	shell("rm -r %d %d", VMM, VCPU);
	assert_owner(*state, VCPU, 1, 0, NULL);
	process_add(VMM, UUID_B);
	thread_add(VMM, VCPU);
	assert_owner(*state, VCPU, 2, VMM, UUID_B);
}

static void test_a_thread_of_another_process(void **state)
{
	assert_owner(*state, VCPU, 0, VMM, UUID_A);
	shell("rm -r %d/task/%d", VMM, VCPU);
	process_add(200, UUID_B);
	thread_add(200, VCPU);
	assert_owner(*state, VCPU, 1, 200, UUID_B);
	assert_owner(*state, VMM, 1, VMM, UUID_A);
}

/* More processes and threads than are kept, twice: each answer is right, and no descriptor leaks.
 */
static void test_bounded(void **state)
{
	enum { PROCESSES = THREAD_OWNERS_PROCESSES + 20, FIRST = 1000, STEP = 20 };
	int fd;

	for (int p = 0; p < PROCESSES; p++) {
		process_add(FIRST + p * STEP, p % 2 ? UUID_A : UUID_B);
		thread_add(FIRST + p * STEP, FIRST + p * STEP + 1);
	}
	for (int round = 0; round < 2; round++) {
		for (int p = 0; p < PROCESSES; p++)
			assert_owner(*state, FIRST + p * STEP + 1, (uint64_t)round,
				     FIRST + p * STEP, p % 2 ? UUID_A : UUID_B);
	}
	fd = dup(0);
	assert_true(fd >= 0 && fd < THREAD_OWNERS_PROCESSES + 32);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_this_machine),
		cmocka_unit_test_setup_teardown(test_reads_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reads_again_after_a_minute, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_new_process_with_an_old_number, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_thread_of_another_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bounded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
