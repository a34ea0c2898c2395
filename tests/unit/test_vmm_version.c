/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the search for the version of QEMU in its program file: with generated programs in a
 * generated /proc, and with the QEMU of this machine, whose output it compares. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

#include "host-collector/daemon/version_search.h"
#include "host-collector/vm/vmm_version.h"

#define QEMU "/usr/bin/qemu-system-x86_64"
#define MARK "QEMU emulator version "

static char folder[64], program[80], version[64];

static int link_in_proc(const char *name, const char *to)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	unlink(path);
	return symlink(to, path);
}

/* Processes 700 and 800 have the mounts of this process. 800 runs the same file as 700. */
static int setup(void **state)
{
	static const char *const folders[] = {"700", "800", "self"};

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_vmm_version.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(program, sizeof(program), "%s/program", folder);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char path[96], name[32];

		snprintf(path, sizeof(path), "%s/%s", folder, folders[i]);
		snprintf(name, sizeof(name), "%s/mountinfo", folders[i]);
		if (mkdir(path, 0700) || link_in_proc(name, "/proc/self/mountinfo"))
			return -1;
	}
	return link_in_proc("700/exe", program) | link_in_proc("800/exe", program);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static int version_of(pid_t pid)
{
	struct vmm_program p;
	const int fd = vmm_program_open(folder, pid, &p);
	int err = fd;

	version[0] = 0;
	if (fd >= 0) {
		err = vmm_version_read(fd, version, sizeof(version));
		close(fd);
	}
	return err;
}

/* A program of `pad` bytes and the text. */
static void program_write(size_t pad, const char *text, size_t len)
{
	FILE *f = fopen(program, "we");
	char *before = malloc(pad + 1);

	assert_non_null(f);
	assert_non_null(before);
	for (size_t i = 0; i < pad; i++)
		before[i] = (char)(i * 7 % 251);
	assert_int_equal(fwrite(before, 1, pad, f), pad);
	assert_int_equal(fwrite(text, 1, len, f), len);
	free(before);
	fclose(f);
	assert_int_equal(chmod(program, 0755), 0);
}

static int read_of(size_t pad, const char *text, size_t len)
{
	program_write(pad, text, len);
	return version_of(700);
}

static void test_texts(void **state)
{
	static const struct {
		const char *text, *version;
	} cases[] = {
		{MARK "7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright",
		 "QEMU 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)"},
		{MARK "9.1.0\nCopyright", "QEMU 9.1.0"},
		{MARK "%s\n" MARK "8.0.0\n", "QEMU 8.0.0"},
		{MARK "8.0.0 (a package whose name has more than forty characters, each)\n",
		 "QEMU 8.0.0 (a package whose name has more than forty)"},
		{MARK "8.0.0", NULL},
		{MARK "8.0.0 ()\n", NULL},
		{MARK "8.0.0 (x\n", NULL},
		{MARK "8.0.0 (\x1b[31mred)\n", NULL},
		{MARK "8.0.0 (\xff\xfe)\n", NULL},
		{MARK ".\n", NULL},
		{MARK, NULL},
		{"", NULL},
	};
	char longer[512] = MARK "8.0.0 (";

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const int err = read_of(100, cases[i].text, strlen(cases[i].text));

		assert_int_equal(err, cases[i].version ? 0 : -ENODATA);
		assert_string_equal(version, cases[i].version ? cases[i].version : "");
	}
	memset(longer + strlen(longer), 'x', sizeof(longer) - strlen(longer) - 3);
	memcpy(longer + sizeof(longer) - 3, ")\n", 3);
	assert_int_equal(read_of(100, longer, strlen(longer)), -ENODATA);
}

/* The text may be anywhere in the program, also across the borders of the parts that are read. */
static void test_places(void **state)
{
	static const char text[] = MARK "9.2.0 (x)\n";

	(void)state;
	for (size_t pad = (1 << 18) - 300; pad < (1 << 18) + 4; pad++) {
		assert_int_equal(read_of(pad, text, sizeof(text)), 0);
		assert_string_equal(version, "QEMU 9.2.0 (x)");
	}
}

static void test_not_trusted(void **state)
{
	static const char text[] = MARK "9.2.0\n";

	(void)state;
	assert_int_equal(read_of(0, text, sizeof(text)), 0);
	assert_int_equal(chmod(program, 0775), 0);
	assert_int_equal(version_of(700), -EPERM);
	assert_int_equal(chmod(program, 0755), 0);
	if (!geteuid()) {
		assert_int_equal(chown(program, 4321, 4321), 0);
		assert_int_equal(version_of(700), -EPERM);
	}
	unlink(program);
	assert_int_equal(mkfifo(program, 0600), 0); /* does not wait for a writer */
	assert_int_equal(version_of(700), -EPERM);
	assert_int_equal(version_of(701), -ENOENT);
}

/* Copies the mounts of this process, with another type if that is not NULL, and with the devices
 * exchanged if `other_devices`. */
static void mounts_write(const char *name, const char *type, bool other_devices)
{
	FILE *from = fopen("/proc/self/mountinfo", "re"), *to;
	char path[128], line[8192];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	unlink(path);
	to = fopen(path, "we");
	assert_non_null(from);
	assert_non_null(to);
	while (fgets(line, sizeof(line), from)) {
		char id[16], parent[16], device[24], was[64];
		const char *rest = strstr(line, " - ");

		assert_non_null(rest);
		assert_int_equal(sscanf(line, "%15s %15s %23s", id, parent, device), 3);
		assert_int_equal(sscanf(rest, " - %63s", was), 1);
		fprintf(to, "%s %s %s / /somewhere rw - %s source rw\n", id, parent,
			other_devices ? "4095:4095" : device, type ? type : was);
	}
	fclose(from);
	fclose(to);
}

/* A file system that a user has mounted may pretend that root owns a file, and may never answer. */
static void test_mounts(void **state)
{
	static const char text[] = MARK "9.2.0\n";

	(void)state;
	assert_int_equal(read_of(0, text, sizeof(text)), 0);
	mounts_write("700/mountinfo", NULL, false);
	mounts_write("self/mountinfo", NULL, false);
	assert_int_equal(version_of(700), 0);
	mounts_write("self/mountinfo", NULL, true); /* it is not one of ours */
	assert_int_equal(version_of(700), -EXDEV);
	mounts_write("self/mountinfo", "fuse.sshfs", false);
	assert_int_equal(version_of(700), -EXDEV);
	mounts_write("self/mountinfo", "ext4", false);
	assert_int_equal(version_of(700), 0);
	assert_int_equal(link_in_proc("700/mountinfo", "/dev/null"), 0); /* it is gone */
	assert_int_equal(version_of(700), -EXDEV);
}

/* ---- the search ---- */

/* Bytes that this process has read. */
static unsigned long long bytes_read(void)
{
	FILE *f = fopen("/proc/self/io", "re");
	unsigned long long n = 0;

	if (f) {
		assert_int_equal(fscanf(f, "rchar: %llu", &n), 1);
		fclose(f);
	}
	return n;
}

static void test_search(void **state)
{
	static const char text[] = MARK "9.2.0\n";
	struct version_wanted a = {0}, b = {0}, none = {0};
	const size_t bytes = 1 << 22;
	struct version_search *s;
	unsigned long long before;
	uv_loop_t loop;

	(void)state;
	program_write(bytes, text, sizeof(text));
	assert_int_equal(uv_loop_init(&loop), 0);
	s = version_search_new(&loop, folder);
	assert_non_null(s);
	before = bytes_read(); /* the search begins at once, on another thread */
	assert_true(version_ask(s, &a, 700));
	assert_false(version_ask(s, &b, 800)); /* one at a time */
	assert_true(version_ask(s, &a, 700));
	assert_string_equal(a.version, "");
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_string_equal(a.version, "QEMU 9.2.0");
	if (before)
		assert_true(bytes_read() - before > bytes);
	/* The same program is not read again, a changed one is. */
	before = bytes_read();
	assert_true(version_ask(s, &b, 800));
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_string_equal(b.version, "QEMU 9.2.0");
	if (before)
		assert_true(bytes_read() - before < bytes);
	program_write(bytes, MARK "9.3.0\n", sizeof(text));
	version_forget(s, &b);
	assert_string_equal(b.version, "");
	assert_true(version_ask(s, &b, 800));
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_string_equal(b.version, "QEMU 9.3.0");
	assert_string_equal(a.version, "QEMU 9.2.0"); /* a process goes on with what it runs */
	assert_true(version_ask(s, &none, 701));
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_true(none.asked);
	assert_string_equal(none.version, "");
	/* What is forgotten meanwhile is not written. */
	version_forget(s, &a);
	assert_true(version_ask(s, &a, 700));
	version_forget(s, &a);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_string_equal(a.version, "");
	/* It may end during a search. */
	assert_true(version_ask(s, &a, 700));
	version_search_free(s);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_string_equal(a.version, "");
	assert_int_equal(uv_loop_close(&loop), 0);
}

/* The expected text is the output of this QEMU. */
static void test_real(void **state)
{
	FILE *qemu = popen(QEMU " --version 2>/dev/null", "re");
	char line[256] = "", wanted[300];

	(void)state;
	assert_non_null(qemu);
	if (!fgets(line, sizeof(line), qemu))
		line[0] = 0;
	pclose(qemu);
	if (strncmp(line, MARK, strlen(MARK)) != 0) {
		print_message("no " QEMU "\n");
		skip();
	}
	line[strcspn(line, "\n")] = 0;
	snprintf(wanted, sizeof(wanted), "QEMU %s", line + strlen(MARK));
	assert_int_equal(link_in_proc("700/exe", QEMU), 0);
	assert_int_equal(version_of(700), 0);
	assert_string_equal(version, wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_texts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_places, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_trusted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mounts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_search, setup, teardown),
		cmocka_unit_test_setup_teardown(test_real, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
