/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes the reports of saved incidents and then runs the notification command. Each report is made
 * by a process of its own at low priority.
 *
 * Folders wait in a queue. The next folder is the oldest one of the VM that was served least
 * recently, so a VM with many incidents does not delay another VM's first. At most `report_jobs`
 * folders are processed at a time. A process that runs for 5 minutes (10 for a notification) is
 * killed, which is reported; its output is missing.
 */
#ifndef DAEMON_INCIDENT_JOBS_H
#define DAEMON_INCIDENT_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "host-collector/daemon/config.h"

struct incident_jobs;

struct incident_jobs_options {
	const struct daemon_config *config; /* borrowed; a reload may change it */
	/* Reports that the reports of `folder` are made. The notification follows. */
	void (*made)(void *context, const char *vm, const char *folder);
	void (*say)(void *context, const char *vm, const char *line);
	void *context;
};

struct incident_jobs *incident_jobs_new(uv_loop_t *loop,
					const struct incident_jobs_options *options);
/* Kills the processes that run. The loop must run until they are reaped. NULL is allowed. */
void incident_jobs_close(struct incident_jobs *j);
/* Call it every 100 ms. */
void incident_jobs_tick(struct incident_jobs *j);

/* Queues a folder. folder: its final name; until the reports are made, the name has the suffix
 * INCIDENT_UNFINISHED. Returns 0, -ENAMETOOLONG or -ENOMEM. */
int incident_jobs_add(struct incident_jobs *j, const char *vm, const char *folder);
/* Returns whether the folder's notification runs or is next. */
bool incident_jobs_notifies(const struct incident_jobs *j, const char *folder);
/* Cancels the reports of a folder that is about to be removed. */
void incident_jobs_drop(struct incident_jobs *j, const char *folder);

struct incident_jobs_stats {
	size_t waiting, running; /* number of folders */
};
void incident_jobs_stats_get(const struct incident_jobs *j, struct incident_jobs_stats *out);

#define INCIDENT_UNFINISHED ".part"

#endif
