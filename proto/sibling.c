/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/sibling.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define INSTALLED "../libexec/vcpuscope/"

/* Replaces `name` at `end` of `out` by where it is installed, if it can be run there. */
static bool installed_path(char *out, char *end, const char *name, size_t out_bytes)
{
	if ((size_t)(end - out) + strlen(INSTALLED) + strlen(name) + 1 > out_bytes)
		return false;
	sprintf(end, INSTALLED "%s", name);
	if (!access(out, X_OK))
		return true;
	strcpy(end, name); /* that is the one to speak of */
	return false;
}

int sibling_path(const char *name, char *out, size_t out_bytes)
{
	ssize_t n = readlink("/proc/self/exe", out, out_bytes - 1);
	int err = n < 0 ? -errno : 0;
	char *slash;

	out[n < 0 ? 0 : n] = '\0';
	slash = strrchr(out, '/');
	if (!slash || (size_t)(slash + 1 - out) + strlen(name) + 1 > out_bytes) {
		snprintf(out, out_bytes, "%s", name);
		return err ? err : -ENAMETOOLONG;
	}
	strcpy(slash + 1, name);
	if (!access(out, X_OK))
		return 0;
	err = -errno;
	return err == -ENOENT && installed_path(out, slash + 1, name, out_bytes) ? 0 : err;
}
