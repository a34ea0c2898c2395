/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The daemon's incidents, one folder each: DIRECTORY/incidents/VM-YYYYMMDDTHHMMSSZ-WHAT with
 *
 *   incident.json   what happened, in short; also what the notification command reads
 *   run.vcs         the recording around it
 *   report.txt, report.json, report.html
 *
 * The reports are made by processes of their own. A folder gets its name when all is in it; until
 * then it ends with .part. All folders together stay below a budget (the oldest go), and the disk
 * keeps its reserve.
 */
#ifndef DAEMON_INCIDENT_STORE_H
#define DAEMON_INCIDENT_STORE_H

#include <stddef.h>
#include <uv.h>

#include "host-collector/daemon/config.h"

struct json_object;
struct incident_store;

struct incident_store_options {
	const struct daemon_config *config; /* borrowed, may change under us (reload) */
	void (*say)(void *context, const char *vm, const char *line);
	void *context;
};

/* Removes what an earlier run left unfinished. NULL on ENOMEM. */
struct incident_store *incident_store_new(uv_loop_t *loop,
					  const struct incident_store_options *options);
/* Ends the processes that run. The loop must run once more. NULL is allowed. */
void incident_store_close(struct incident_store *s);

struct incident_request {
	const char *vm;
	const char *what;            /* a word for the folder's name: the verdict, "snapshot" */
	struct json_object *summary; /* taken over, in any case */
	int (*write)(void *context, const char *path); /* the recording: 0 or -errno */
	void *context;
};

/* Writes the recording now and begins with the rest. `path`: the folder's name to be. 0, -ENOSPC
 * (the disk's reserve), -EBUSY (four are being made already), -errno; nothing is left then. */
int incident_store_make(struct incident_store *s, const struct incident_request *request,
			char *path, size_t path_bytes);

/* Of finished folders, at the last look. */
uint64_t incident_store_bytes(const struct incident_store *s);

#endif
