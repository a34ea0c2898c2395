/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/disk.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

int disk_folder_make(const char *path)
{
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

uint64_t disk_stamp(char out[DISK_STAMP_BYTES])
{
	struct timespec now;
	struct tm utc;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(out, DISK_STAMP_BYTES, "%Y%m%dT%H%M%SZ", &utc);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t disk_free_bytes(const char *path)
{
	struct statvfs fs;

	return statvfs(path, &fs) ? UINT64_MAX : (uint64_t)fs.f_bavail * fs.f_frsize;
}

static bool is_older(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

void disk_oldest_offer(struct disk_oldest *oldest, const char *path, const struct timespec *time)
{
	if (oldest->path[0] && !is_older(time, &oldest->time))
		return;
	snprintf(oldest->path, sizeof(oldest->path), "%s", path);
	oldest->time = *time;
}
