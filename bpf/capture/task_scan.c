/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/capture/task_scan.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/proc_file.h"

/* Returns the entry's name as a number, or 0 if it is not a number. */
static pid_t entry_id(const struct dirent *entry)
{
	return (pid_t)strtol(entry->d_name, NULL, 10);
}

static bool comm_read(pid_t tgid, pid_t tid, char comm[16])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", tgid, tid);
	memset(comm, 0, 16);
	return !proc_file_line(path, comm, 16);
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
