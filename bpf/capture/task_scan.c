/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/capture/task_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 0: no number. */
static pid_t entry_id(const struct dirent *entry)
{
	return (pid_t)strtol(entry->d_name, NULL, 10);
}

static bool comm_read(pid_t tgid, pid_t tid, char comm[16])
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", tgid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	memset(comm, 0, 16);
	n = read(fd, comm, 16);
	close(fd);
	if (n <= 0)
		return false;
	comm[n - 1] = '\0'; /* the line's end */
	return true;
}

int task_scan(void (*task)(void *context, pid_t tid, pid_t tgid, const char comm[16]),
	      void *context)
{
	DIR *processes = opendir("/proc"), *threads;
	struct dirent *entry;
	char path[64], comm[16];

	if (!processes)
		return -errno;
	while ((entry = readdir(processes))) {
		const pid_t tgid = entry_id(entry);

		if (!tgid)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task", tgid);
		threads = opendir(path);
		while (threads && (entry = readdir(threads))) {
			const pid_t tid = entry_id(entry);

			if (tid && comm_read(tgid, tid, comm))
				task(context, tid, tgid, comm);
		}
		if (threads)
			closedir(threads);
	}
	closedir(processes);
	return 0;
}
