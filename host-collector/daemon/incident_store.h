/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stores the daemon's incidents, one folder each: DIRECTORY/incidents/VM-YYYYMMDDTHHMMSSZ-WHAT with
 *
 *   incident.json   summary; also the input of the notification command
 *   run.vcs         the recording around the incident
 *   report.txt, report.json, report.html
 *
 * The first two files are the evidence and are saved at once. The reports are made later, from a
 * queue (incident_jobs.h). Until then the folder's name ends with ".part"; a new daemon continues
 * with the folders that an earlier one left unfinished. All folders together stay within a budget
 * that the VMs share (disk.h), and nothing is saved below the disk's reserve.
 */
#ifndef DAEMON_INCIDENT_STORE_H
#define DAEMON_INCIDENT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "host-collector/daemon/config.h"

struct json_object;
struct incident_store;

struct incident_store_options {
	const struct daemon_config *config; /* borrowed; a reload may change it */
	void (*say)(void *context, const char *vm, const char *line);
	bool (*watches)(void *context, const char *vm); /* see disk.h */
	void *context;
};

/* Allocates the store and queues unfinished folders of an earlier daemon. Returns NULL if there is
 * no memory. */
struct incident_store *incident_store_new(uv_loop_t *loop,
					  const struct incident_store_options *options);
/* Kills the processes that run. The loop must run until they are reaped. NULL is allowed. */
void incident_store_close(struct incident_store *s);
/* Call it every 100 ms. */
void incident_store_tick(struct incident_store *s);

struct incident_request {
	const char *vm;
	const char *what;            /* a word for the folder's name: the verdict or the trigger */
	struct json_object *summary; /* the store takes it over, even on an error */
	int (*write)(void *context, const char *path); /* writes run.vcs; 0 or -errno */
	void *context;
};

/* Saves the evidence and queues the reports. Stores the folder's final name in `path`. Returns 0,
 * -ENOSPC (the disk's reserve is reached) or -errno; on an error no folder remains. */
int incident_store_make(struct incident_store *s, const struct incident_request *request,
			char *path, size_t path_bytes);

struct incident_store_stats {
	size_t waiting, running; /* folders whose reports are queued; are being made */
};
void incident_store_stats_get(const struct incident_store *s, struct incident_store_stats *out);

#endif
