/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/import/event_row.h"

#include <stddef.h>
#include <string.h>

const struct event_tracepoint *event_row_find(const char *name)
{
	size_t n;
	const struct event_tracepoint *all = event_tracepoints(&n);

	for (size_t i = 0; i < n; i++) {
		if (all[i].users & BY_IMPORT && !strcmp(all[i].name, name))
			return &all[i];
	}
	return NULL;
}
