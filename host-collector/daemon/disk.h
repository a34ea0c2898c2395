/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the recordings (spool.h) and the incidents (incident_store.h): folders that only the
 * owner can read, names with a time stamp, and a disk budget.
 *
 * Each VM's share is the budget divided by the number of VMs that hold files. While all files
 * together exceed the budget, the oldest item is removed: first of VMs that are not watched and got
 * no new item for a week, which have no share; then of the VM that holds most, if it exceeds its
 * share. Therefore a VM within its share loses nothing because of another VM.
 */
#ifndef DAEMON_DISK_H
#define DAEMON_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "host-collector/daemon/config.h"

enum {
	DISK_PATH_MAX = DAEMON_PATH_MAX + 3 * DAEMON_NAME_MAX, /* bytes of a path in a store */
	DISK_STAMP_BYTES = sizeof("YYYYMMDDTHHMMSSZ"),
};

/* Creates the last folder of `path`, mode 0700, if it does not exist. Returns 0 or -errno. */
int disk_folder_make(const char *path);

/* Writes the current time in UTC, in the form for file names. Returns it in ns of
 * CLOCK_REALTIME. */
uint64_t disk_stamp(char out[DISK_STAMP_BYTES]);

/* Returns the number of free bytes on the file system of `path`, or UINT64_MAX if it is unknown,
 * for example because the folder does not exist. */
uint64_t disk_free_bytes(const char *path);

/* A file or folder that a store holds for a VM. */
struct disk_item {
	char vm[DAEMON_NAME_MAX];
	char *path;
	uint64_t bytes;
	struct timespec time;
	bool busy; /* being written: counted, but not removed */
	bool gone; /* the caller sets it after it removed the item */
};
/* All items of a store. Initialize with {0}. */
struct disk_items {
	struct disk_item *items;
	size_t n, capacity;
};
/* Adds a copy of `item` and of its path. Returns 0 or -ENOMEM. */
int disk_items_add(struct disk_items *all, const struct disk_item *item);
void disk_items_free(struct disk_items *all);
/* Returns the sum of bytes of all items that are not gone. */
uint64_t disk_items_bytes(const struct disk_items *all);

struct disk_sharing {
	uint64_t budget_bytes;
	bool (*watches)(void *context, const char *vm); /* whether the VM is watched now */
	void *context;
	time_t now; /* seconds of CLOCK_REALTIME */
};
/* Returns the next item to remove by the rule above, or NULL if the budget is kept or no item can
 * be removed. Sorts the items; the result is valid until the next call. */
struct disk_item *disk_items_next(struct disk_items *all, const struct disk_sharing *sharing);

#endif
