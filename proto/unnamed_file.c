/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/unnamed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

int unnamed_file_open(void)
{
	const char *folder = getenv("TMPDIR");
	int fd =
		open(folder && *folder ? folder : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	return fd;
}
