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

static struct cgroup *least_recent(struct cgroups_known *c)
{
	struct cgroup *least = &c->all[0];

	for (size_t i = 1; i < c->n; i++) {
		if (c->all[i].named < least->named)
			least = &c->all[i];
	}
	return least;
}

/* Sets *out to a new entry, or to that of the cgroup that was named least recently, without a path.
 */
static int entry_make(struct cgroups_known *c, struct cgroup **out)
{
	struct cgroup *entry;

	if (c->n == CGROUPS_MAX) {
		entry = least_recent(c);
		free(entry->path);
		entry->path = NULL;
		entry->number += CGROUPS_MAX;
	} else {
		if (ARRAY_RESERVE(&c->all, c->n, &c->capacity, CGROUPS_FIRST))
			return -ENOMEM;
		entry = &c->all[c->n++];
		*entry = (struct cgroup){.number = (uint32_t)c->n};
	}
	*out = entry;
	return 0;
}

int cgroups_known_put(struct cgroups_known *c, const char *path, uint64_t quota_us,
		      uint64_t period_us, uint32_t *number)
{
	size_t len = strlen(path);
	struct cgroup *entry;
	char *copy;

	*number = 0;
	if (!len)
		return 0;
	if (len > CGROUP_PATH_MAX)
		path += len - CGROUP_PATH_MAX;
	for (size_t i = 0; i < c->n; i++) {
		entry = &c->all[i];
		if (entry->quota_us == quota_us && entry->period_us == period_us &&
		    strcmp(entry->path, path) == 0) {
			entry->named = ++c->namings;
			*number = entry->number;
			return 0;
		}
	}
	copy = strdup(path);
	if (!copy || entry_make(c, &entry)) {
		free(copy);
		return -ENOMEM;
	}
	entry->path = copy;
	entry->quota_us = quota_us;
	entry->period_us = period_us;
	entry->named = ++c->namings;
	*number = entry->number;
	return 0;
}

const struct cgroup *cgroups_known_get(const struct cgroups_known *c, uint32_t number)
{
	const size_t place = (number - 1) % CGROUPS_MAX;

	return number && place < c->n && c->all[place].number == number ? &c->all[place] : NULL;
}
