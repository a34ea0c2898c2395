/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock/sample.h"
#include "host-collector/util/escape.h"

enum { END_MS = 2000, LOOK_NS = 10000000, EXIT_NOT_STARTED = 127 };

static int program_check(const char *path)
{
	struct stat s;

	if (stat(path, &s))
		return -errno;
	return S_ISREG(s.st_mode) && !access(path, X_OK) ? 0 : -EACCES;
}

/* Whether execvp() would find it: a recording is not begun for a program that does not exist. */
static int program_find(const char *name)
{
	const char *path = getenv("PATH");
	int err = -ENOENT;

	if (strchr(name, '/'))
		return program_check(name);
	if (!path)
		path = "/bin:/usr/bin";
	while (path) {
		const size_t len = strcspn(path, ":");
		char file[PATH_MAX];
		int found;

		snprintf(file, sizeof(file), "%.*s/%s", len ? (int)len : 1, len ? path : ".", name);
		found = program_check(file);
		if (!found)
			return 0;
		if (found == -EACCES)
			err = found;
		path = path[len] ? path + len + 1 : NULL;
	}
	return err;
}

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void __attribute__((noreturn)) run(char *const *argv, int go_fd, int error_fd)
{
	char go;
	int err;

	if (read(go_fd, &go, 1) != 1)
		_exit(EXIT_NOT_STARTED); /* the recording did not begin */
	execvp(argv[0], argv);
	err = errno;
	if (write(error_fd, &err, sizeof(err)) < 0)
		_exit(EXIT_NOT_STARTED);
	_exit(EXIT_NOT_STARTED);
}

int workload_prepare(struct workload *w, char *const *argv, char *why, size_t why_bytes)
{
	int go[2] = {-1, -1}, error[2] = {-1, -1}, err = program_find(argv[0]);

	*w = (struct workload){.name = argv[0], .go_fd = -1, .error_fd = -1};
	if (!err && (pipe2(go, O_CLOEXEC) || pipe2(error, O_CLOEXEC)))
		err = -errno;
	if (!err) {
		w->pid = fork();
		if (w->pid < 0) {
			err = -errno;
			w->pid = 0;
		}
	}
	if (!err && !w->pid) {
		close(go[1]);
		close(error[0]);
		run(argv, go[0], error[1]);
	}
	fd_close(&go[0]);
	fd_close(&error[1]);
	if (err) {
		fd_close(&go[1]);
		fd_close(&error[0]);
		snprintf(why, why_bytes, "%s: %s", escape(argv[0]).text, strerror(-err));
		return err;
	}
	w->go_fd = go[1];
	w->error_fd = error[0];
	return 0;
}

int workload_start(struct workload *w, char *why, size_t why_bytes)
{
	int err = write(w->go_fd, "", 1) == 1 ? 0 : ESRCH;

	/* Nothing, if the program runs. */
	while (!err && read(w->error_fd, &err, sizeof(err)) < 0 && errno == EINTR)
		;
	fd_close(&w->go_fd);
	fd_close(&w->error_fd);
	w->started = !err;
	if (err)
		snprintf(why, why_bytes, "%s: %s", escape(w->name).text, strerror(err));
	return -err;
}

bool workload_ended(struct workload *w)
{
	if (w->pid && !w->ended)
		w->ended = waitpid(w->pid, &w->status, WNOHANG) == w->pid;
	return w->ended;
}

void workload_end(struct workload *w)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	const uint64_t until_ms = clock_monotonic_ms() + END_MS;

	if (!w->pid)
		return;
	fd_close(&w->go_fd);
	fd_close(&w->error_fd);
	if (!workload_ended(w)) {
		w->stopped = true;
		kill(w->pid, SIGTERM);
	}
	while (!workload_ended(w) && clock_monotonic_ms() < until_ms)
		nanosleep(&look, NULL);
	if (w->ended)
		return;
	kill(w->pid, SIGKILL);
	while (waitpid(w->pid, &w->status, 0) < 0 && errno == EINTR)
		;
	w->ended = true;
}

bool workload_failed(const struct workload *w)
{
	return w->started && w->ended && !w->stopped && w->status;
}

void workload_text(const struct workload *w, char *out, size_t out_bytes)
{
	const int number = WTERMSIG(w->status);

	if (WIFSIGNALED(w->status))
		snprintf(out, out_bytes, "%s: ended by signal %d (%s)", escape(w->name).text,
			 number, strsignal(number));
	else
		snprintf(out, out_bytes, "%s: exit status %d", escape(w->name).text,
			 WEXITSTATUS(w->status));
}
