/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/libvirt/hook.h"

enum { AT_ONCE_MS = 20, TRIES = 10 /* on a machine that does other things too */ };

struct place {
	char folder[64], path[96];
};

static int place_make(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	if (!p)
		return -1;
	snprintf(p->folder, sizeof(p->folder), "/tmp/vcpuscope-hook-XXXXXX");
	if (!mkdtemp(p->folder))
		return -1;
	snprintf(p->path, sizeof(p->path), "%s/control", p->folder);
	*state = p;
	return 0;
}

static int place_remove(void **state)
{
	struct place *p = *state;

	unlink(p->path);
	rmdir(p->folder);
	free(p);
	return 0;
}

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return address;
}

static int listener_open(const char *path, int backlog)
{
	const struct sockaddr_un address = address_of(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

/*
 * As libvirt calls it, in a process of its own, which ends with status 0 whatever happens. True if
 * the call was over at once: to start a process is not the hook's.
 */
static bool hook_is_quick(const char *path)
{
	int pipe_fds[2], status;
	double ms = INFINITY; /* its own limit ended it: it had waited for something */
	pid_t pid;

	assert_int_equal(pipe(pipe_fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct timespec begin, end;

		clock_gettime(CLOCK_MONOTONIC, &begin);
		hook_send(path);
		clock_gettime(CLOCK_MONOTONIC, &end);
		ms = (double)(end.tv_sec - begin.tv_sec) * 1e3 +
		     (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
		_exit(write(pipe_fds[1], &ms, sizeof(ms)) != sizeof(ms));
	}
	close(pipe_fds[1]);
	assert_true(read(pipe_fds[0], &ms, sizeof(ms)) >= 0);
	close(pipe_fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	return ms < AT_ONCE_MS;
}

static void assert_over_at_once(const char *path)
{
	int left = TRIES;

	while (left && !hook_is_quick(path))
		left--;
	assert_int_not_equal(left, 0);
}

static void the_daemon_is_told_to_look(void **state)
{
	static const char wanted[] = "{\"command\":\"rescan\"}\n";
	const struct place *p = *state;
	int listener = listener_open(p->path, TRIES), fd;
	char got[256];
	ssize_t n = 0;

	assert_over_at_once(p->path);
	/* One that had been ended may have said nothing. */
	while (!n) {
		fd = accept(listener, NULL, NULL);
		assert_true(fd >= 0);
		n = read(fd, got, sizeof(got));
		assert_int_equal(read(fd, got + (n > 0 ? n : 0), 1), 0);
		close(fd);
	}
	assert_int_equal(n, sizeof(wanted) - 1);
	assert_memory_equal(got, wanted, sizeof(wanted) - 1);
	close(listener);
}

static void a_daemon_that_does_not_accept_is_not_waited_for(void **state)
{
	const struct place *p = *state;
	const struct sockaddr_un address = address_of(p->path);
	int listener = listener_open(p->path, 0), fds[8];
	size_t n = 0;

	/* Until one more would wait. */
	do {
		assert_true(n < sizeof(fds) / sizeof(fds[0]));
		fds[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		assert_true(fds[n] >= 0);
	} while (!connect(fds[n++], (const struct sockaddr *)&address, sizeof(address)));
	assert_int_equal(errno, EAGAIN);
	assert_over_at_once(p->path);
	while (n)
		close(fds[--n]);
	close(listener);
}

static void no_daemon_is_no_trouble(void **state)
{
	const struct place *p = *state;
	char path[512];

	assert_over_at_once(p->path);
	close(listener_open(p->path, 1)); /* a socket whose daemon is gone */
	assert_over_at_once(p->path);
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_over_at_once(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_daemon_is_told_to_look, place_make,
						place_remove),
		cmocka_unit_test_setup_teardown(a_daemon_that_does_not_accept_is_not_waited_for,
						place_make, place_remove),
		cmocka_unit_test_setup_teardown(no_daemon_is_no_trouble, place_make, place_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
