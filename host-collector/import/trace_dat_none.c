/* SPDX-License-Identifier: GPL-2.0-only */
/* trace_dat.c in a build without libtracecmd: the file is one of foreign.h's, to be read as text.
 */
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
	snprintf(why, why_bytes, "this build has no libtracecmd");
	return -ENOTSUP;
}
