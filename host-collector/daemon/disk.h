/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the daemon's stores (spool.h, incident_store.h) do alike on the disk: folders for root's
 * eyes only, names with the time in them, and a budget in which every VM has a share.
 *
 * The rule of shares: a VM's share is the budget divided by the number of VMs that hold anything.
 * While all of them together exceed the budget, something goes: first the oldest of VMs that are no
 * longer watched and got nothing new for a week (they have no share), then the oldest of the VM
 * that holds most. So a VM that stays within its share loses nothing to another.
 */
#ifndef DAEMON_DISK_H
#define DAEMON_DISK_H

#include <stdbool.h>
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

/* A file or folder that a store holds of a VM. */
struct disk_item {
	char vm[DAEMON_NAME_MAX];
	char *path;
	uint64_t bytes;
	struct timespec time;
	bool busy; /* being written: counts, and stays */
	bool gone; /* set by who removed it */
};
/* All of them; begins as {0}. */
struct disk_items {
	struct disk_item *items;
	size_t n, capacity;
};
/* Copies `item` and its path. 0 or -ENOMEM. */
int disk_items_add(struct disk_items *all, const struct disk_item *item);
void disk_items_free(struct disk_items *all);
/* Of those that are not gone. */
uint64_t disk_items_bytes(const struct disk_items *all);

struct disk_sharing {
	uint64_t budget_bytes;
	bool (*watches)(void *context, const char *vm); /* is the VM watched now? */
	void *context;
	time_t now; /* CLOCK_REALTIME */
};
/* What goes next by the rule of shares; NULL: nothing need go, or can. Changes the order of items;
 * borrowed until the next call. */
struct disk_item *disk_items_next(struct disk_items *all, const struct disk_sharing *sharing);

#endif
