/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t proc_file_read_at(int dir, const char *path, int flags, char *out, size_t bytes)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | flags);
	size_t len = 0;
	ssize_t n = 0;

	out[0] = '\0';
	if (fd < 0)
		return -errno;
	while (len < bytes - 1) {
		n = read(fd, out + len, bytes - 1 - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	n = n < 0 ? -errno : (ssize_t)len;
	out[len] = '\0';
	close(fd);
	return n;
}

ssize_t proc_file_read(const char *path, char *out, size_t bytes)
{
	return proc_file_read_at(AT_FDCWD, path, 0, out, bytes);
}

int proc_file_line(const char *path, char *out, size_t bytes)
{
	const ssize_t n = proc_file_read(path, out, bytes);

	out[n > 0 ? strcspn(out, "\n") : 0] = '\0';
	return n > 0 ? 0 : n ? (int)n : -ENODATA;
}

int proc_id_of(const char *name)
{
	char *end;
	long id = strtol(name, &end, 10);

	return *end || id <= 0 || id > INT32_MAX ? 0 : (int)id;
}
