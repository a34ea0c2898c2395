// SPDX-License-Identifier: GPL-2.0-only
/* Tests the sockets of a VMM that carries its guest's vsock: where they may be created, who may
 * connect, which answers of the VMM are valid, and how they are found. The test plays the VMM and
 * other processes. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "host-collector/link/address.h"
#include "host-collector/link/hybrid_vsock.h"
#include "host-collector/vm/vsock_path.h"

enum { OTHER_UID = 65534, BACKLOG = 8 };

struct rig {
	char folder[64], path[96];
	pid_t vmm; /* a process of OTHER_UID */
};

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	int ends[2];
	char byte;

	*state = r;
	snprintf(r->folder, sizeof(r->folder), "/tmp/test_hybrid.XXXXXX");
	if (!r || !mkdtemp(r->folder) || chmod(r->folder, 0755) || pipe(ends))
		return -1;
	snprintf(r->path, sizeof(r->path), "%s/v.sock_7431", r->folder);
	r->vmm = fork();
	if (!r->vmm) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!geteuid() && (setgid(OTHER_UID) || setuid(OTHER_UID)))
			_exit(1);
		(void)!write(ends[1], "", 1);
		for (;;)
			pause();
	}
	return read(ends[0], &byte, 1) == 1 ? 0 : -1;
}

static int teardown(void **state)
{
	struct rig *r = *state;
	char command[128];

	kill(r->vmm, SIGKILL);
	waitpid(r->vmm, NULL, 0);
	snprintf(command, sizeof(command), "rm -rf %s", r->folder);
	(void)!system(command);
	free(r);
	return 0;
}

static int listen_as(pid_t pid, const char *path)
{
	return hybrid_vsock_listen("/proc", pid, path, BACKLOG);
}

static void the_socket_is_its_users_alone(void **state)
{
	struct rig *r = *state;
	struct stat s;
	int fd, again;

	if (geteuid())
		skip();
	/* The VMM's user may not write here. */
	assert_int_equal(listen_as(r->vmm, r->path), -EACCES);
	assert_int_equal(chown(r->folder, OTHER_UID, OTHER_UID), 0);
	fd = listen_as(r->vmm, r->path);
	assert_true(fd >= 0);
	assert_int_equal(lstat(r->path, &s), 0);
	assert_true(S_ISSOCK(s.st_mode));
	assert_int_equal(s.st_mode & 0777, 0600);
	assert_int_equal(s.st_uid, OTHER_UID);
	assert_int_equal(s.st_gid, OTHER_UID);
	/* We are who we were. */
	assert_int_equal(chown(r->folder, 0, 0), 0);
	assert_int_equal(chown(r->folder, OTHER_UID, OTHER_UID), 0);
	assert_int_equal(listen_as(r->vmm, r->path), -EADDRINUSE);
	/* What nobody serves any more is replaced. */
	close(fd);
	again = listen_as(r->vmm, r->path);
	assert_true(again >= 0);
	hybrid_vsock_remove("/proc", r->vmm, r->path);
	assert_int_equal(lstat(r->path, &s), -1);
	close(again);
}

static void folders_of_others_are_refused(void **state)
{
	struct rig *r = *state;
	char elsewhere[96], outside[160];
	struct stat s;
	int fd;

	if (geteuid())
		skip();
	/* Of a user who is neither root nor the VMM's: he could put his own socket there. */
	assert_int_equal(chown(r->folder, OTHER_UID, OTHER_UID), 0);
	assert_int_equal(listen_as(getpid(), r->path), -EACCES);
	assert_int_equal(chown(r->folder, 0, 0), 0);
	assert_int_equal(chmod(r->folder, 0777), 0);
	assert_int_equal(listen_as(getpid(), r->path), -EACCES);
	assert_int_equal(chmod(r->folder, 01777), 0);
	/* A symbolic link does not lead us elsewhere. */
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", r->folder);
	assert_int_equal(symlink(elsewhere, r->path), 0);
	assert_int_equal(listen_as(getpid(), r->path), -EEXIST);
	assert_int_equal(lstat(elsewhere, &s), -1);
	unlink(r->path);
	fd = open(r->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	close(fd);
	assert_int_equal(listen_as(getpid(), r->path), -EEXIST);
	hybrid_vsock_remove("/proc", getpid(), r->path);
	assert_int_equal(lstat(r->path, &s), 0); /* it is no socket */
	assert_int_equal(listen_as(getpid(), "v.sock_1"), -EINVAL);
	assert_int_equal(listen_as(getpid(), "/tmp/.."), -EINVAL);
	assert_int_equal(listen_as(getpid(), "/nowhere/at/all"), -ENOENT);
	snprintf(outside, sizeof(outside), "/proc/%d/root%s", getpid(), r->path);
	assert_int_equal(listen_as(getpid(), outside), -ELOOP);
	assert_int_equal(listen_as(999999999, r->path), -ESRCH);
}

static int dial(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void only_the_vmm_is_accepted(void **state)
{
	struct link_address address;
	struct rig *r = *state;
	char text[160], why[256];
	int listener, mine, fd;
	uint32_t cid;

	snprintf(text, sizeof(text), "hybrid:%s/v.sock", r->folder);
	assert_int_equal(link_address_parse(text, &address, why, sizeof(why)), 0);
	address.vmm_pid = getpid();
	listener = link_address_open(&address);
	assert_true(listener >= 0);
	mine = dial(r->path);
	fd = link_address_accept(&address, listener, &cid);
	assert_true(fd >= 0);
	close(fd);
	close(mine);
	/* Now another process is the VMM. */
	address.vmm_pid = r->vmm;
	mine = dial(r->path);
	assert_int_equal(link_address_accept(&address, listener, &cid), -EPERM);
	assert_int_equal(read(mine, why, 1), 0); /* closed */
	close(mine);
	close(listener);
}

static void addresses_are_checked(void **state)
{
	static const struct {
		const char *text, *path;
		uint32_t port;
	} good[] = {{"hybrid:/run/v.sock", "/run/v.sock_7431", 0},
		    {"hybrid:/run/v.sock:52", "/run/v.sock_52", 0},
		    {"hybrid-connect:/run/v.sock:52", "/run/v.sock", 52}};
	static const char *const bad[] = {"hybrid:",           "hybrid:v.sock",
					  "hybrid:/run/v:x",   "hybrid:/run/v:0",
					  "hybrid:/run/v:-1",  "hybrid-connect:/run/v.sock",
					  "hybrid-connect::1", "hybrid:/run/v:4294967296"};
	struct link_address address;
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(link_address_parse(good[i].text, &address, why, sizeof(why)), 0);
		assert_string_equal(((struct sockaddr_un *)&address.sockaddr)->sun_path,
				    good[i].path);
		assert_int_equal(address.ask_port, good[i].port);
		assert_int_equal(address.listens, !good[i].port);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(link_address_parse(bad[i], &address, why, sizeof(why)), -EINVAL);
		assert_non_null(strstr(why, "hybrid"));
	}
}

static void answers_are_checked(void **state)
{
	static const struct {
		const char *text;
		int result;
	} answers[] = {
		{"OK 1073741824\n", 0}, {"OK 0\nGUEST", 0},
		{"OK \n", -EPROTO},     {"OK 12x\n", -EPROTO},
		{"OK -1\n", -EPROTO},   {"ok 1\n", -EPROTO},
		{"\n", -EPROTO},        {"ERROR\n", -EPROTO},
		{"O", -EAGAIN},         {"OK 10", -EAGAIN},
		{"OKAY 1\n", -EPROTO},  {"OK 11111111111111111111111111111111111111", -EPROTO},
	};
	struct hybrid_vsock_answer none = {0};
	char rest[16] = "";
	int ends[2];

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct hybrid_vsock_answer answer = {0};

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		assert_int_equal(hybrid_vsock_answer(ends[0], &answer), -EAGAIN);
		assert_int_equal(hybrid_vsock_request(ends[0], 7431), 0);
		(void)!write(ends[1], answers[i].text, strlen(answers[i].text));
		if (hybrid_vsock_answer(ends[0], &answer) != answers[i].result)
			fail_msg("`%s`", answers[i].text);
		if (i == 1) {
			assert_int_equal(recv(ends[0], rest, sizeof(rest) - 1, 0), 5);
			assert_string_equal(rest, "GUEST");
		}
		close(ends[1]);
		close(ends[0]);
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	close(ends[1]);
	assert_int_equal(hybrid_vsock_answer(ends[0], &none), -ECONNREFUSED);
	assert_int_equal(hybrid_vsock_request(ends[0], 1), -EPIPE);
	close(ends[0]);
}

static int bound_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void the_vmms_socket_is_found(void **state)
{
	struct rig *r = *state;
	char found[96], second[96];
	int fd, other;

	fd = bound_at(r->path);
	assert_int_equal(vsock_path_find("/proc", getpid(), found, sizeof(found)), -ENOENT);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(vsock_path_find("/proc", getpid(), found, sizeof(found)), 0);
	assert_string_equal(found, r->path);
	assert_int_equal(vsock_path_find("/proc", getpid(), found, 8), -ENOENT);
	snprintf(second, sizeof(second), "%s/b", r->folder);
	other = bound_at(second);
	assert_int_equal(listen(other, 1), 0);
	assert_int_equal(vsock_path_find("/proc", getpid(), found, sizeof(found)), -ENOTUNIQ);
	close(other);
	close(fd);
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG(the_socket_is_its_users_alone),    RIG(folders_of_others_are_refused),
		RIG(only_the_vmm_is_accepted),         RIG(the_vmms_socket_is_found),
		cmocka_unit_test(answers_are_checked), cmocka_unit_test(addresses_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
