/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/isolation/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <unistd.h>

/* Descriptors are first duplicated to this number or above, so that no copy closes another's
 * source. */
enum { LIFTED_MIN = HELPER_FIRST + HELPER_DESCRIPTORS_MAX };

static int files_prepare(posix_spawn_file_actions_t *files, const int *fds, size_t n)
{
	int err = 0;

	for (int i = 0; i < HELPER_FIRST && !err; i++)
		err = posix_spawn_file_actions_addopen(files, i, "/dev/null", O_RDWR, 0);
	for (size_t i = 0; i < n && !err; i++)
		err = posix_spawn_file_actions_adddup2(files, fds[i], HELPER_FIRST + (int)i);
	if (!err)
		err = posix_spawn_file_actions_addclosefrom_np(files, HELPER_FIRST + (int)n);
	return err;
}

int helper_attributes_prepare(posix_spawnattr_t *attributes, short flags)
{
	sigset_t none, all;
	int err;

	sigemptyset(&none);
	sigfillset(&all);
	err = posix_spawnattr_setsigmask(attributes, &none);
	if (!err)
		err = posix_spawnattr_setsigdefault(attributes, &all);
	if (!err)
		err = posix_spawnattr_setflags(attributes, (short)(POSIX_SPAWN_SETSIGMASK |
								   POSIX_SPAWN_SETSIGDEF | flags));
	return err;
}

static int lifted_spawn(const char *name, const int *fds, size_t n, pid_t *pid)
{
	char argv0[64];
	char *const argv[] = {argv0, NULL};
	char *const envp[] = {NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int err;

	snprintf(argv0, sizeof(argv0), "%s", name);
	err = posix_spawn_file_actions_init(&files);
	if (err)
		return -err;
	err = posix_spawnattr_init(&attributes);
	if (!err) {
		err = files_prepare(&files, fds, n);
		if (!err)
			err = helper_attributes_prepare(&attributes, POSIX_SPAWN_SETPGROUP);
		/* This program, even if its file was replaced by an upgrade. */
		if (!err)
			err = posix_spawn(pid, "/proc/self/exe", &files, &attributes, argv, envp);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&files);
	return -err;
}

int helper_spawn(const char *name, const int *fds, size_t n, pid_t *pid)
{
	int lifted[HELPER_DESCRIPTORS_MAX] = {0};
	size_t n_lifted = 0;
	int err = n > HELPER_DESCRIPTORS_MAX ? -E2BIG : 0;

	for (; n_lifted < n && !err; n_lifted++) {
		lifted[n_lifted] = fcntl(fds[n_lifted], F_DUPFD_CLOEXEC, LIFTED_MIN);
		if (lifted[n_lifted] < 0) {
			err = -errno;
			break;
		}
	}
	if (!err)
		err = lifted_spawn(name, lifted, n, pid);
	while (n_lifted)
		close(lifted[--n_lifted]);
	return err;
}
