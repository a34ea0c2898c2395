/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/record/watched_tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "host-collector/vm/threads.h"

struct watched_tasks {
	struct capture_watch *list;
	int *fds; /* of each member: the thread's or the cgroup's directory; -1: none */
	size_t n;
};

static int thread_open(struct watched_tasks *w, const char *proc, pid_t tid, char *why,
		       size_t why_bytes)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%d", proc, tid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		snprintf(why, why_bytes, "there is no thread %d", tid);
		return -ESRCH;
	}
	w->fds[w->n] = fd;
	w->list[w->n++] = (struct capture_watch){CAPTURE_WATCH_THREAD, tid, "a thread of --tid"};
	return 0;
}

static int cgroup_open(struct watched_tasks *w, const char *path, char *why, size_t why_bytes)
{
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs = {0};
	int err = fd < 0 || fstatfs(fd, &fs) ? -errno : 0;

	if (!err && fs.f_type != CGROUP2_SUPER_MAGIC)
		err = -EBADF;
	if (err) {
		snprintf(why, why_bytes, "cgroup %s: %s", path,
			 err == -EBADF ? "it is not a directory of cgroup v2" : strerror(-err));
		if (fd >= 0)
			close(fd);
		return err;
	}
	w->fds[w->n] = fd;
	w->list[w->n++] = (struct capture_watch){CAPTURE_WATCH_CGROUP, fd, path};
	return 0;
}

int watched_tasks_open(const struct watched_tasks_options *options, struct watched_tasks **out,
		       char *why, size_t why_bytes)
{
	const size_t most = options->n_threads + options->n_cgroups + 1;
	const char *proc = options->proc ? options->proc : "/proc";
	struct watched_tasks *w = calloc(1, sizeof(*w));
	int err = 0;

	if (w) {
		w->list = calloc(most, sizeof(*w->list));
		w->fds = calloc(most, sizeof(*w->fds));
	}
	if (!w || !w->list || !w->fds) {
		snprintf(why, why_bytes, "out of memory");
		err = -ENOMEM;
	} else if ((options->n_threads || options->process) && !threads_ids_global(proc)) {
		snprintf(why, why_bytes,
			 "vcpuscope runs in a PID namespace of its own, where threads have other "
			 "ids than in the kernel's events; run it in the host's (--pid=host)");
		err = -EXDEV;
	}
	for (size_t i = 0; i < options->n_threads && !err; i++)
		err = thread_open(w, proc, options->threads[i], why, why_bytes);
	for (size_t i = 0; i < options->n_cgroups && !err; i++)
		err = cgroup_open(w, options->cgroups[i], why, why_bytes);
	if (err) {
		watched_tasks_close(w);
		return err;
	}
	if (options->process) {
		w->fds[w->n] = -1;
		w->list[w->n++] = (struct capture_watch){CAPTURE_WATCH_PROCESS, options->process,
							 "the command"};
	}
	*out = w;
	return 0;
}

void watched_tasks_close(struct watched_tasks *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n; i++) {
		if (w->fds[i] >= 0)
			close(w->fds[i]);
	}
	free(w->list);
	free(w->fds);
	free(w);
}

const struct capture_watch *watched_tasks_list(const struct watched_tasks *w, size_t *n)
{
	*n = w->n;
	return w->list;
}

bool watched_tasks_ended(const struct watched_tasks *w)
{
	for (size_t i = 0; i < w->n; i++) {
		/* The directory of a thread that has ended is empty, whoever has its id now. */
		if (w->list[i].kind != CAPTURE_WATCH_THREAD ||
		    !faccessat(w->fds[i], "comm", F_OK, 0))
			return false;
	}
	return true;
}
