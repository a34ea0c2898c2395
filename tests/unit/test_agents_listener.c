// SPDX-License-Identifier: GPL-2.0-only
/* Tests the socket of the agents: a connection that belongs to no VM waits, and no user can keep
 * the agents of others out. The daemon is simulated and has no VM. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include <uv.h>

#include "host-collector/daemon/agents_listener.h"
#include "host-collector/daemon/daemon.h"

enum { OTHER_UID = 65534 };

size_t vm_daemon_n_vms(const struct vm_daemon *d)
{
	(void)d;
	return 0;
}

struct watched_vm *vm_daemon_vm(const struct vm_daemon *d, size_t index)
{
	(void)d, (void)index;
	return NULL;
}

static int dial(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static bool is_open(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 0;
}

static void turns(uv_loop_t *loop, int n)
{
	while (n--)
		uv_run(loop, UV_RUN_NOWAIT);
}

static void no_user_keeps_the_others_out(void **state)
{
	struct rlimit files = {4 * DAEMON_VMS_MAX, 4 * DAEMON_VMS_MAX};
	char folder[] = "/tmp/test_agents_door.XXXXXX", path[64], why[256];
	int others[DAEMON_VMS_MAX], mine, closed = 0;
	struct agents_listener *listener = NULL;
	uv_loop_t loop;

	(void)state;
	if (geteuid())
		skip();
	setrlimit(RLIMIT_NOFILE, &files);
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chown(folder, OTHER_UID, (gid_t)-1), 0);
	snprintf(path, sizeof(path), "%s/door", folder);
	uv_loop_init(&loop);
	assert_int_equal(agents_listener_open(&loop, path, NULL, &listener, why, sizeof(why)), 0);
	/* The kernel notes the user at connect(). */
	assert_int_equal(seteuid(OTHER_UID), 0);
	for (int i = 0; i < DAEMON_VMS_MAX; i++) {
		others[i] = dial(path);
		turns(&loop, 2);
	}
	/* One more of that user does not displace its own. */
	mine = dial(path);
	turns(&loop, 2);
	assert_false(is_open(mine));
	close(mine);
	assert_int_equal(seteuid(0), 0);
	mine = dial(path);
	turns(&loop, 2);
	assert_true(is_open(mine));
	for (int i = 0; i < DAEMON_VMS_MAX; i++) {
		closed += !is_open(others[i]);
		close(others[i]);
	}
	assert_int_equal(closed, 1);
	close(mine);
	agents_listener_close(listener);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_user_keeps_the_others_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
