/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/trigger.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	enum trigger_limit limit;
	uint64_t by_default;
} rows[] = {
#define X(NAME, name, limit, by_default, ...) {name, limit, by_default},
	TRIGGERS(X)
#undef X
};

const char *trigger_name(enum trigger t)
{
	return rows[t].name;
}

enum trigger_limit trigger_limit_kind(enum trigger t)
{
	return rows[t].limit;
}

int trigger_find(const char *name)
{
	for (int t = 0; t < TRIGGER_COUNT; t++) {
		if (!strcmp(rows[t].name, name))
			return t;
	}
	return -ENOENT;
}

void trigger_limits_default(uint64_t *limits)
{
	for (int t = 0; t < TRIGGER_COUNT; t++)
		limits[t] = rows[t].by_default;
}
