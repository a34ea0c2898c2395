/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "proto/array.h"

enum { LEFT_S = 7 * 24 * 3600 }; /* a VM that is no longer watched keeps its share for this time */

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

/* ---- shares ---- */

int disk_items_add(struct disk_items *all, const struct disk_item *item)
{
	char *path;

	if (ARRAY_RESERVE(&all->items, all->n, &all->capacity, 64))
		return -ENOMEM;
	path = strdup(item->path);
	if (!path)
		return -ENOMEM;
	all->items[all->n] = *item;
	all->items[all->n++].path = path;
	return 0;
}

void disk_items_free(struct disk_items *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->items[i].path);
	free(all->items);
	*all = (struct disk_items){0};
}

uint64_t disk_items_bytes(const struct disk_items *all)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < all->n; i++)
		bytes += all->items[i].gone ? 0 : all->items[i].bytes;
	return bytes;
}

static int time_compare(const struct timespec *a, const struct timespec *b)
{
	if (a->tv_sec != b->tv_sec)
		return a->tv_sec < b->tv_sec ? -1 : 1;
	return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

static int item_compare(const void *a, const void *b)
{
	const struct disk_item *x = a, *y = b;
	int order = strcmp(x->vm, y->vm);

	if (!order)
		order = time_compare(&x->time, &y->time);
	return order ? order : strcmp(x->path, y->path);
}

/* The items of one VM, which are adjacent after sorting. */
struct holding {
	uint64_t bytes;
	struct timespec newest;
	struct disk_item *oldest; /* of those that may be removed; NULL: none may */
};

/* Sums up the items of the VM of item `i`. Returns the index of the next VM's first item. */
static size_t holding_read(struct disk_items *all, size_t i, struct holding *out)
{
	const char *vm = all->items[i].vm;

	*out = (struct holding){0};
	for (; i < all->n && !strcmp(all->items[i].vm, vm); i++) {
		struct disk_item *item = &all->items[i];

		if (item->gone)
			continue;
		out->bytes += item->bytes;
		out->newest = item->time;
		if (!out->oldest && !item->busy)
			out->oldest = item;
	}
	return i;
}

static bool holding_is_left(const struct holding *h, const char *vm, const struct disk_sharing *s)
{
	return h->newest.tv_sec < s->now - LEFT_S && !s->watches(s->context, vm);
}

struct disk_item *disk_items_next(struct disk_items *all, const struct disk_sharing *sharing)
{
	struct disk_item *left = NULL, *most = NULL;
	uint64_t most_bytes = 0;
	size_t sharers = 0;
	struct holding h;

	if (disk_items_bytes(all) <= sharing->budget_bytes)
		return NULL;
	qsort(all->items, all->n, sizeof(*all->items), item_compare);
	for (size_t i = 0, next; i < all->n; i = next) {
		next = holding_read(all, i, &h);
		if (!h.bytes && !h.oldest)
			continue;
		if (holding_is_left(&h, all->items[i].vm, sharing)) {
			if (h.oldest && (!left || time_compare(&h.oldest->time, &left->time) < 0))
				left = h.oldest;
			continue;
		}
		sharers++;
		if (h.oldest && h.bytes > most_bytes) {
			most_bytes = h.bytes;
			most = h.oldest;
		}
	}
	if (left)
		return left;
	/* VMs that hold more may have only files that are still written. */
	return most && most_bytes > sharing->budget_bytes / sharers ? most : NULL;
}
