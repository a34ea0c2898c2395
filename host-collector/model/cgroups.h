/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A table of the host's cgroups that a recording names. Tasks and quotas refer to an entry by its
 * number. The table is bounded: when it is full, a new cgroup takes the place of the one that was
 * named least recently, whose number then means nothing. No number is given twice.
 */
#ifndef MODEL_CGROUPS_H
#define MODEL_CGROUPS_H

#include <stddef.h>
#include <stdint.h>

enum { CGROUPS_MAX = 2048, CGROUP_PATH_MAX = 255 };

/* A cgroup and its CPU quota; quota_us 0: unknown. */
struct cgroup {
	char *path; /* below the mount point: "/machine.slice/web.scope" */
	uint64_t quota_us, period_us;
	uint32_t number;
	uint64_t named; /* rises with each naming */
};

struct cgroups_known {
	size_t n, capacity;
	uint64_t namings;
	struct cgroup *all; /* a number's place is (number - 1) % CGROUPS_MAX */
};

void cgroups_known_fini(struct cgroups_known *c);
/* Finds or adds a cgroup. Sets *number to 1 or higher, or to 0 if the path is empty. The path is
 * copied; only the end of a path that is too long is kept. Returns 0 or -ENOMEM. */
int cgroups_known_put(struct cgroups_known *c, const char *path, uint64_t quota_us,
		      uint64_t period_us, uint32_t *number);
/* Returns the cgroup with this number, or NULL if it is not known any more. Valid until the next
 * put. */
const struct cgroup *cgroups_known_get(const struct cgroups_known *c, uint32_t number);

#endif
