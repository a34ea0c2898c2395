/* SPDX-License-Identifier: GPL-2.0-only */
/* Replaces trace_dat.c in a build without libtracecmd. trace-cmd's files are then treated like
 * the formats of foreign.h, which must be converted to text. */
#include "host-collector/import/trace_dat.h"

#include <errno.h>
#include <stdio.h>

bool trace_dat_is(const char *path)
{
	(void)path;
	return false;
}

int trace_dat_gather(struct gather *g, const char *path, char *why, size_t why_bytes)
{
	(void)g;
	(void)path;
	snprintf(why, why_bytes,
		 "this build has no libtracecmd: build with -DVCPUSCOPE_TRACECMD=ON");
	return -ENOTSUP;
}
