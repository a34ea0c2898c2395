/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The daemon's recordings: DIRECTORY/VM/VM-YYYYMMDDTHHMMSSZ.vcs, one growing file for each VM that
 * is being recorded.
 *
 * They never take more than their budget together, in which every VM has its share (disk.h), and
 * never the last of the disk: below its reserve nothing is written, which is said and counted,
 * until there is room again. A file is closed at the configured size or time, or at half of the
 * VM's share.
 *
 * A file that follows another begins with the VM's last seconds. So that these are not written
 * again and again, it is not closed before it has got as much of its own as the next would begin
 * with.
 */
#ifndef DAEMON_SPOOL_H
#define DAEMON_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "host-collector/daemon/config.h"
#include "host-collector/daemon/watched_vm.h"

struct spool;

struct flight_places;
struct recording_writer;

struct spool_options {
	const struct daemon_config *config; /* borrowed, may change under us (reload) */
	/* Begins a recording with the last seconds of a running VM, as flight_continue(); where it
	 * cannot, the VM's streams are made to begin anew. */
	int (*go_on)(void *context, const struct watched_vm *vm, size_t max_bytes,
		     struct recording_writer *out, struct flight_places **places);
	/* How many bytes that would be, without a maximum. */
	size_t (*past_bytes)(void *context, const struct watched_vm *vm);
	bool (*watches)(void *context, const char *vm); /* as of disk.h */
	void (*say)(void *context, const char *vm, const char *line);
	void *context;
};
struct spool *spool_new(const struct spool_options *options); /* NULL on ENOMEM */
void spool_free(struct spool *s);
/* Call it every 100 ms: flushes every second, looks after sizes and the disk. */
void spool_tick(struct spool *s);

/* Records the VM from now, with its last seconds. 0, -EALREADY, -ENOMEM. */
int spool_begin(struct spool *s, struct watched_vm *vm);
/* Closes its file. 0 or -ENOENT (it is not being recorded). */
int spool_end(struct spool *s, struct watched_vm *vm);

struct spool_status {
	bool recording;
	const char *path; /* "" before the first frame; borrowed */
	uint64_t bytes, files, refused_frames;
	int error; /* -errno: why nothing is written now */
};
/* recording is false for a VM that is not being recorded. */
void spool_status_get(const struct spool *s, const struct watched_vm *vm, struct spool_status *out);
/* Of all recordings below the folder, at the last look. */
uint64_t spool_bytes(const struct spool *s);

#endif
