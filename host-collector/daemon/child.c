/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/isolation/helper.h"

static int file_prepare(posix_spawn_file_actions_t *files, int fd, int as)
{
	return fd < 0 ? posix_spawn_file_actions_addopen(files, as, "/dev/null", O_RDWR, 0)
		      : posix_spawn_file_actions_adddup2(files, fd, as);
}

static int files_prepare(posix_spawn_file_actions_t *files, int in, int out)
{
	int err = file_prepare(files, in, STDIN_FILENO);

	if (!err)
		err = file_prepare(files, out, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
	return err;
}

static int spawn(pid_t *pid, const char *program, char *const *args, int in, int out)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int err = posix_spawn_file_actions_init(&files);

	if (err)
		return -err;
	err = posix_spawnattr_init(&attributes);
	if (!err) {
		err = files_prepare(&files, in, out);
		if (!err)
			err = helper_attributes_prepare(&attributes, 0);
		if (!err)
			err = posix_spawn(pid, program, &files, &attributes, args, environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&files);
	return -err;
}

static void on_closed(uv_handle_t *handle)
{
	struct child *child = handle->data;

	child->closed(child->context);
}

static void on_exit_seen(uv_poll_t *poll, int event, int events)
{
	struct child *child = poll->data;
	int status = 0;

	(void)event, (void)events;
	if (waitpid(child->pid, &status, WNOHANG) == 0)
		return;
	child->pid = 0;
	uv_poll_stop(poll);
	close(child->pidfd);
	child->ended(child->context, WIFEXITED(status) ? WEXITSTATUS(status) : 0,
		     WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	uv_close(&child->handle.any, on_closed);
}

static int exit_await(struct child *child, uv_loop_t *loop)
{
	int err = 0;

	child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
	if (child->pidfd < 0)
		err = -errno;
	if (!err)
		err = uv_poll_init(loop, &child->handle.exit, child->pidfd);
	if (!err) /* cannot fail: the handle is new */
		return uv_poll_start(&child->handle.exit, UV_READABLE, on_exit_seen);
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	if (child->pidfd >= 0)
		close(child->pidfd);
	return err;
}

int child_start(struct child *child, uv_loop_t *loop, const char *program, char *const *args,
		int in, int out)
{
	int err = spawn(&child->pid, program, args, in, out);

	if (!err)
		err = exit_await(child, loop);
	child->handle.any.data = child;
	if (!err)
		return 0;
	child->pid = 0;
	uv_idle_init(loop, &child->handle.unstarted);
	uv_close(&child->handle.any, on_closed);
	return err;
}

void child_kill(struct child *child)
{
	if (child->pid)
		kill(child->pid, SIGKILL);
}
