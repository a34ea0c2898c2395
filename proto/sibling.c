/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/sibling.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int sibling_path(const char *name, char *out, size_t out_bytes)
{
	ssize_t n = readlink("/proc/self/exe", out, out_bytes - 1);
	const int err = n < 0 ? -errno : 0;
	char *slash;

	out[n < 0 ? 0 : n] = '\0';
	slash = strrchr(out, '/');
	if (!slash || (size_t)(slash + 1 - out) + strlen(name) + 1 > out_bytes) {
		snprintf(out, out_bytes, "%s", name);
		return err ? err : -ENAMETOOLONG;
	}
	strcpy(slash + 1, name);
	return access(out, X_OK) ? -errno : 0;
}
