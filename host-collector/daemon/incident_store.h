/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The daemon's incidents, one folder each: DIRECTORY/incidents/VM-YYYYMMDDTHHMMSSZ-WHAT with
 *
 *   incident.json   what happened, in short; also what the notification command reads
 *   run.vcs         the recording around it
 *   report.txt, report.json, report.html
 *
 * The evidence (the first two) is saved at once; the reports come later, from a queue
 * (incident_jobs.h). The folder's name ends with .part until all is in it. What a daemon that ended
 * left in the queue, the next one takes up. All folders together stay below a budget, in which
 * every VM has its share (disk.h), and the disk keeps its reserve.
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
	const struct daemon_config *config; /* borrowed, may change under us (reload) */
	void (*say)(void *context, const char *vm, const char *line);
	bool (*watches)(void *context, const char *vm); /* as of disk.h */
	void *context;
};

/* Takes up what an earlier run left. NULL on ENOMEM. */
struct incident_store *incident_store_new(uv_loop_t *loop,
					  const struct incident_store_options *options);
/* Ends the processes that run. The loop must run once more. NULL is allowed. */
void incident_store_close(struct incident_store *s);
/* Call it every 100 ms. */
void incident_store_tick(struct incident_store *s);

struct incident_request {
	const char *vm;
	const char *what;            /* a word for the folder's name: the verdict, "snapshot" */
	struct json_object *summary; /* taken over, in any case */
	int (*write)(void *context, const char *path); /* the recording: 0 or -errno */
	void *context;
};

/* Saves the evidence now and queues the rest. `path`: the folder's name to be. 0, -ENOSPC (the
 * disk's reserve), -errno; nothing is left then. */
int incident_store_make(struct incident_store *s, const struct incident_request *request,
			char *path, size_t path_bytes);

struct incident_store_stats {
	size_t waiting, running; /* folders whose reports are to be made, are being made */
};
void incident_store_stats_get(const struct incident_store *s, struct incident_store_stats *out);

#endif
