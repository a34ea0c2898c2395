/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The host's cgroups that a recording names, each text once: tasks and quotas refer to it by a
 * number. A bounded table; what comes when it is full stays unnamed.
 */
#ifndef MODEL_CGROUPS_H
#define MODEL_CGROUPS_H

#include <stddef.h>
#include <stdint.h>

enum { CGROUPS_MAX = 2048, CGROUP_PATH_MAX = 255 };

/* A cgroup under a CPU quota, or (quota_us 0) any. */
struct cgroup {
	char *path; /* below the mount: "/machine.slice/web.scope" */
	uint64_t quota_us, period_us;
};

struct cgroups_known {
	size_t n, capacity;
	struct cgroup *all;
};

void cgroups_known_fini(struct cgroups_known *c);
/* *number: 1 and up; 0 if the table is full or the path is empty. Copied, the end of a path that is
 * too long. 0 or -ENOMEM. */
int cgroups_known_put(struct cgroups_known *c, const char *path, uint64_t quota_us,
		      uint64_t period_us, uint32_t *number);
/* NULL if there is none of this number. Valid until the next put. */
const struct cgroup *cgroups_known_get(const struct cgroups_known *c, uint32_t number);

#endif
