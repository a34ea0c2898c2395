/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is made of an incident after its evidence is saved: the reports, by processes of their own
 * at low priority, then the notification.
 *
 * Folders wait in a queue. Of those that wait, the VM whose last turn is longest ago is served
 * first, its oldest folder first, so a VM with many incidents does not hold up another's first. No
 * more than `report_jobs` reports are made at a time. A process that takes too long is killed; what
 * it should have made is missing then, which is said.
 */
#ifndef DAEMON_INCIDENT_JOBS_H
#define DAEMON_INCIDENT_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "host-collector/daemon/config.h"

struct incident_jobs;

struct incident_jobs_options {
	const struct daemon_config *config; /* borrowed, may change under us (reload) */
	/* The reports of `folder` are made; the notification follows. */
	void (*made)(void *context, const char *vm, const char *folder);
	void (*say)(void *context, const char *vm, const char *line);
	void *context;
};

struct incident_jobs *incident_jobs_new(uv_loop_t *loop,
					const struct incident_jobs_options *options);
/* Ends the processes that run. The loop must run once more. NULL is allowed. */
void incident_jobs_close(struct incident_jobs *j);
/* Call it every 100 ms. */
void incident_jobs_tick(struct incident_jobs *j);

/* folder: where it will be when the reports are made; until then INCIDENT_UNFINISHED is appended to
 * its name. 0, -ENAMETOOLONG or -ENOMEM. */
int incident_jobs_add(struct incident_jobs *j, const char *vm, const char *folder);
/* Is its notification under way, or about to be? */
bool incident_jobs_notifies(const struct incident_jobs *j, const char *folder);
/* The folder is to go: no reports of it are made any more. */
void incident_jobs_drop(struct incident_jobs *j, const char *folder);

struct incident_jobs_stats {
	size_t waiting, running; /* folders */
};
void incident_jobs_stats_get(const struct incident_jobs *j, struct incident_jobs_stats *out);

#define INCIDENT_UNFINISHED ".part"

#endif
