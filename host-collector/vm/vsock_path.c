/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/vm/vsock_path.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/proc_file.h"

enum {
	CMDLINE_MAX = 65536,
	SOCKETS_MAX = 256, /* of one process */
	LISTENS = 0x10000, /* a flag in /proc/net/unix (SO_ACCEPTCON) */
	STREAM = 1,
};

struct sockets {
	uint64_t inodes[SOCKETS_MAX];
	size_t n;
};

static int sockets_read(const char *proc, pid_t pid, struct sockets *out)
{
	char path[512], link[64];
	struct dirent *entry;
	DIR *dir;

	out->n = 0;
	snprintf(path, sizeof(path), "%s/%d/fd", proc, pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (out->n < SOCKETS_MAX && (entry = readdir(dir))) {
		const ssize_t len = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);

		if (len <= 0)
			continue;
		link[len] = 0;
		if (sscanf(link, "socket:[%" SCNu64 "]", &out->inodes[out->n]) == 1)
			out->n++;
	}
	closedir(dir);
	return 0;
}

static bool has(const struct sockets *s, uint64_t inode)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->inodes[i] == inode)
			return true;
	}
	return false;
}

/* The path of a listening socket of the process; NULL: the line is of another socket. */
static char *listener_of(char *line, const struct sockets *its)
{
	unsigned int flags, type;
	uint64_t inode;
	int path = 0;

	line[strcspn(line, "\n")] = 0;
	/* Num RefCount Protocol Flags Type St Inode Path */
	if (sscanf(line, "%*s %*x %*x %x %x %*x %" SCNu64 " %n", &flags, &type, &inode, &path) !=
		    3 ||
	    !path || line[path] != '/' || !(flags & LISTENS) || type != STREAM)
		return NULL;
	return has(its, inode) ? line + path : NULL;
}

/* Is it an operand, or the value of an option other than the vsock's? Firecracker has no option for
 * its vsock, Cloud Hypervisor's is "--vsock cid=3,socket=PATH". */
static bool is_something_else(const char *argv, size_t bytes, const char *path)
{
	bool of_vsock = false;

	if (!strcmp(path, "/run/firecracker.socket")) /* the default of --api-sock */
		return true;
	for (size_t at = 0; at < bytes; at += strlen(argv + at) + 1) {
		if (strstr(argv + at, path))
			return !of_vsock && strncmp(argv + at, "--vsock=", 8) != 0;
		of_vsock = !strcmp(argv + at, "--vsock");
	}
	return false;
}

static int listeners_search(FILE *f, const struct sockets *its, const char *argv, size_t bytes,
			    char *out, size_t out_bytes)
{
	char line[512];
	size_t n = 0;

	while (fgets(line, sizeof(line), f)) {
		const char *path = listener_of(line, its);

		if (!path || is_something_else(argv, bytes, path) || strlen(path) >= out_bytes)
			continue;
		snprintf(out, out_bytes, "%s", path);
		n++;
	}
	return n == 1 ? 0 : n ? -ENOTUNIQ : -ENOENT;
}

int vsock_path_find(const char *proc, pid_t pid, char *out, size_t out_bytes)
{
	char path[512], *argv = malloc(CMDLINE_MAX);
	struct sockets its;
	ssize_t len;
	FILE *f;
	int err = argv ? sockets_read(proc, pid, &its) : -ENOMEM;

	if (err)
		goto out;
	snprintf(path, sizeof(path), "%s/%d/cmdline", proc, pid);
	len = proc_file_read(path, argv, CMDLINE_MAX);
	snprintf(path, sizeof(path), "%s/%d/net/unix", proc, pid);
	f = fopen(path, "re");
	err = f ? listeners_search(f, &its, argv, len > 0 ? (size_t)len : 0, out, out_bytes)
		: -errno;
	if (f)
		fclose(f);
out:
	free(argv);
	return err;
}
