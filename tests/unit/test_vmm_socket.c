/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests a socket inside a container that this test creates (PID, mount and network namespaces),
 * and paths that try to leave it. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/link/address.h"
#include "host-collector/vm/vmm_socket.h"

enum { LIMIT_MS = 200 };

struct container {
	char root[64];
	pid_t pid;   /* of the VMM, as we see it */
	int outside; /* a socket of ours that listens beside the container's root */
};

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 8))
		return -1;
	return fd;
}

/* The VMM: the first process of its namespaces, with a root of its own. */
static int vmm_main(const char *root, int ready)
{
	int fd;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", root, "tmpfs", 0, NULL) || chdir(root) || mkdir("run", 0755) ||
	    mkdir("proc", 0755) || mount("proc", "proc", "proc", 0, NULL) || chroot("."))
		return 1;
	fd = open("/run/file", O_CREAT | O_WRONLY, 0644);
	if (fd < 0 || mkfifo("/run/fifo", 0644) || listen_at("/run/qmp") < 0 ||
	    symlink("/run/qmp", "/run/absolute") || symlink("../../../run/qmp", "/run/upwards") ||
	    symlink("/proc/1/root/run/qmp", "/run/magic") ||
	    symlink("/run/nothing", "/run/dangling") || symlink("/run/loop", "/run/loop"))
		return 1;
	/* Somebody else's socket, in the same container. */
	if (!fork()) {
		if (listen_at("/run/other") < 0)
			_exit(1);
		if (write(ready, "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	for (;;)
		pause();
}

/* Starts it; its pid comes from a clone in new namespaces. */
static int setup(void **state)
{
	struct container *c = calloc(1, sizeof(*c));
	char path[96], byte;
	int ends[2], own;

	*state = c;
	if (geteuid())
		return 0; /* said by the test */
	snprintf(c->root, sizeof(c->root), "/tmp/test_vmm_socket.XXXXXX");
	if (!mkdtemp(c->root) || pipe(ends))
		return -1;
	snprintf(path, sizeof(path), "%s/outside", c->root);
	c->outside = listen_at(path);
	/* Only children are in the new PID namespace. */
	own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	if (own < 0 || unshare(CLONE_NEWPID))
		return -1;
	c->pid = fork();
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNS | CLONE_NEWNET))
			_exit(1);
		_exit(vmm_main(c->root, ends[1]));
	}
	close(ends[1]);
	/* Later children are in ours again: a sanitizer starts one at the end. */
	if (setns(own, CLONE_NEWPID))
		return -1;
	close(own);
	return c->pid > 0 && read(ends[0], &byte, 1) == 1 ? 0 : -1;
}

static int teardown(void **state)
{
	struct container *c = *state;
	char path[96];

	if (c->pid > 0) {
		kill(c->pid, SIGKILL); /* with it, all of its namespace */
		waitpid(c->pid, NULL, 0);
	}
	snprintf(path, sizeof(path), "%s/outside", c->root);
	unlink(path);
	rmdir(c->root);
	free(c);
	return 0;
}

static void test_a_path_leads_to_the_vmms_own_socket_only(void **state)
{
	static const struct {
		const char *path;
		int err;
	} cases[] = {
		{"/run/qmp", 0},
		{"run/qmp", 0},
		{"/run/absolute", 0}, /* below its root */
		{"/run/upwards", 0},  /* as far up as its root */
		{"/../../../../run/qmp", 0},
		{"/run/magic", -ELOOP},
		{"/proc/self/root/run/qmp", -ENOENT}, /* nobody of that namespace asks */
		{"/proc/1/root/run/qmp", -ELOOP},
		{"/run/other", -EPERM}, /* another process's */
		{"/run/file", -ENOTSOCK},
		{"/run/fifo", -ENOTSOCK},
		{"/run", -ENOTSOCK},
		{"/run/dangling", -ENOENT},
		{"/run/loop", -ELOOP},
		{"/outside", -ENOENT},
		{"/run/nothing", -ENOENT},
	};
	const struct container *c = *state;
	struct link_address address;
	char why[256];
	int channel;

	if (geteuid())
		skip(); /* makes namespaces: root only */
	assert_true(vmm_root_differs("/proc", c->pid));
	assert_false(vmm_root_differs("/proc", getpid()));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = vmm_socket_connect("/proc", c->pid, cases[i].path, LIMIT_MS);

		if (cases[i].err ? fd != cases[i].err : fd < 0)
			fail_msg("%s: %s", cases[i].path, fd < 0 ? strerror(-fd) : "connected");
		if (fd >= 0)
			close(fd);
	}
	/* As a channel's address: it does not block. */
	assert_int_equal(link_address_parse("vmm:/run/absolute", &address, why, sizeof(why)), 0);
	address.vmm_pid = c->pid;
	channel = link_address_open(&address);
	assert_true(channel >= 0);
	assert_true(fcntl(channel, F_GETFL) & O_NONBLOCK);
	close(channel);
	assert_int_equal(link_address_parse("vmm:/run/other", &address, why, sizeof(why)), 0);
	address.vmm_pid = c->pid;
	assert_int_equal(link_address_open(&address), -EPERM);
	/* Ours has the path, and is not the VMM's. */
	assert_true(c->outside >= 0);
	assert_int_equal(vmm_socket_connect("/proc", 0x7ffffff0, "/run/qmp", LIMIT_MS), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_path_leads_to_the_vmms_own_socket_only,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
