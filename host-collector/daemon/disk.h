/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the daemon's stores (spool.h, incident_store.h) do alike on the disk: folders for root's
 * eyes only, names with the time in them, and room that is made by removing what is oldest.
 */
#ifndef DAEMON_DISK_H
#define DAEMON_DISK_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "host-collector/daemon/config.h"

enum {
	DISK_PATH_MAX = DAEMON_PATH_MAX + 3 * DAEMON_NAME_MAX, /* of what a store keeps */
	DISK_STAMP_BYTES = sizeof("YYYYMMDDTHHMMSSZ"),
};

/* Makes the last folder of `path`, mode 0700, unless it is there. 0 or -errno. */
int disk_folder_make(const char *path);

/* Writes the time now, UTC, as names have it. Returns it as ns of CLOCK_REALTIME. */
uint64_t disk_stamp(char out[DISK_STAMP_BYTES]);

/* Bytes that are free on the file system of `path`; UINT64_MAX if that cannot be said, as when the
 * folder is not there yet. */
uint64_t disk_free_bytes(const char *path);

/* The oldest of what was offered; begins as {0}. */
struct disk_oldest {
	char path[DISK_PATH_MAX]; /* "": nothing was offered */
	struct timespec time;
};
/* The first of two of the same age stays. */
void disk_oldest_offer(struct disk_oldest *oldest, const char *path, const struct timespec *time);

#endif
