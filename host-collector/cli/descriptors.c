/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/descriptors.h"

#include <sys/resource.h>

void descriptors_allow(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur == files.rlim_max)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}
