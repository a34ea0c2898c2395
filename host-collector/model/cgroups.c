/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/cgroups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/array.h"

enum { CGROUPS_FIRST = 16 };

void cgroups_known_fini(struct cgroups_known *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->all[i].path);
	free(c->all);
	*c = (struct cgroups_known){0};
}

int cgroups_known_put(struct cgroups_known *c, const char *path, uint64_t quota_us,
		      uint64_t period_us, uint32_t *number)
{
	size_t len = strlen(path);
	struct cgroup *to;

	if (len > CGROUP_PATH_MAX)
		path += len - CGROUP_PATH_MAX;
	for (size_t i = 0; i < c->n; i++) {
		if (c->all[i].quota_us == quota_us && c->all[i].period_us == period_us &&
		    strcmp(c->all[i].path, path) == 0) {
			*number = (uint32_t)i + 1;
			return 0;
		}
	}
	*number = 0;
	if (!len || c->n == CGROUPS_MAX)
		return 0;
	if (ARRAY_RESERVE(&c->all, c->n, &c->capacity, CGROUPS_FIRST))
		return -ENOMEM;
	to = &c->all[c->n];
	*to = (struct cgroup){.path = strdup(path), .quota_us = quota_us, .period_us = period_us};
	if (!to->path)
		return -ENOMEM;
	*number = (uint32_t)++c->n;
	return 0;
}

const struct cgroup *cgroups_known_get(const struct cgroups_known *c, uint32_t number)
{
	return number && number <= c->n ? &c->all[number - 1] : NULL;
}
