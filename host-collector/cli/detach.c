/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/detach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock/sample.h"

enum { LOOK_NS = 5000000 };

static bool is_probe(const char *entry)
{
	char path[64], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%.32s", entry);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return !strncmp(target, "anon_inode:", 11) &&
	       (strstr(target, "bpf") || strstr(target, "perf_event"));
}

/* Whatever is not a probe's is not ours to keep open: sockets, files, the terminal. */
static void others_close(int keep)
{
	DIR *all = opendir("/proc/self/fd");
	struct dirent *entry;

	while (all && (entry = readdir(all))) {
		const int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && fd != keep && fd != dirfd(all) &&
		    !is_probe(entry->d_name))
			close(fd);
	}
	if (all)
		closedir(all);
}

static void __attribute__((noreturn)) closer(int wait_fd)
{
	char nothing;

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	setsid();
	prctl(PR_SET_NAME, "vcpuscope-end");
	others_close(wait_fd);
	while (read(wait_fd, &nothing, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

void detach_begin(struct detach *d)
{
	int ends[2];

	*d = (struct detach){.go_fd = -1};
	if (pipe2(ends, O_CLOEXEC))
		return;
	d->pid = fork();
	if (!d->pid) {
		close(ends[1]);
		closer(ends[0]);
	}
	close(ends[0]);
	if (d->pid < 0) {
		d->pid = 0;
		close(ends[1]);
		return;
	}
	d->go_fd = ends[1];
}

bool detach_end(struct detach *d, unsigned int wait_ms)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	const uint64_t until = clock_monotonic_ns() + wait_ms * 1000000ull;
	pid_t over = 0;

	if (!d->pid)
		return true;
	close(d->go_fd);
	while (!(over = waitpid(d->pid, NULL, WNOHANG)) && clock_monotonic_ns() < until)
		nanosleep(&look, NULL);
	d->pid = 0;
	return over != 0;
}
