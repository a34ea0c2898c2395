/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host-collector/cli/simulate_options.h"
#include "proto/sibling.h"

#define PROGRAM "vcpuscope-simulate" /* proto/sibling.h finds it */

int simulate_command_run(const struct command *self, int argc, char **argv)
{
	char path[PATH_MAX];
	int err = sibling_path(PROGRAM, path, sizeof(path));

	(void)argc;
	if (!err) {
		execv(path, argv);
		err = -errno;
	}
	fprintf(stderr, "vcpuscope %s: %s: %s; it comes with vcpuscope\n", self->name, path,
		strerror(-err));
	return COMMAND_TROUBLE;
}
