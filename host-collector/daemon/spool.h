/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the daemon's recordings, DIRECTORY/VM/VM-YYYYMMDDTHHMMSSZ.vcs: one open file for each VM
 * that is being recorded.
 *
 * All recordings together stay within a disk budget that the VMs share (disk.h). While the free
 * disk space is below the reserve, nothing is written; this is reported and counted. A file is
 * closed, and the next one opened, when it reaches the configured size or age, or half of the VM's
 * share.
 *
 * The next file starts with a copy of the VM's last seconds (flight.h). A file stays open until its
 * own data are at least as large as this copy. So most of the data on disk are not copies.
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
	const struct daemon_config *config; /* borrowed; a reload may change it */
	/* Starts a recording with the last seconds of a VM, as flight_continue() does. On -ENOENT
	 * or -ENODATA the spool restarts the VM's streams instead. */
	int (*go_on)(void *context, const struct watched_vm *vm, size_t max_bytes,
		     struct recording_writer *out, struct flight_places **places);
	/* Returns how many bytes go_on() would write without a limit. */
	size_t (*past_bytes)(void *context, const struct watched_vm *vm);
	bool (*watches)(void *context, const char *vm); /* see disk.h */
	/* Logs one line about a VM. */
	void (*say)(void *context, const char *vm, const char *line);
	void *context;
};
struct spool *spool_new(const struct spool_options *options); /* NULL: no memory */
void spool_free(struct spool *s);
/* Flushes files every second, starts the next files, and checks the budget and the reserve. Call it
 * every 100 ms. */
void spool_tick(struct spool *s);

/* Starts to record the VM, from its last seconds on. Returns 0, -EALREADY or -ENOMEM. */
int spool_begin(struct spool *s, struct watched_vm *vm);
/* Closes the VM's file. Returns 0, or -ENOENT if the VM is not being recorded. */
int spool_end(struct spool *s, struct watched_vm *vm);

struct spool_status {
	bool recording;
	const char *path; /* "" before the first frame; borrowed */
	uint64_t bytes, files, refused_frames;
	int error; /* -errno: why nothing is written now; 0: none */
};
/* Sets `recording` to false if the VM is not being recorded. */
void spool_status_get(const struct spool *s, const struct watched_vm *vm, struct spool_status *out);
/* Returns the size of all recordings at the last check. */
uint64_t spool_bytes(const struct spool *s);

#endif
