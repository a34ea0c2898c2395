/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/isolation/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proto/text.h"

enum { LINES_MAX = 16384, FILE_BYTES_MAX = 1 << 30 };

/* Consecutive mappings of one file. */
struct span {
	struct module m;
	bool used, executable;
	char path[4096];
};

static size_t span_add(const struct span *s, struct module *out, size_t n, size_t max)
{
	const char *slash = strrchr(s->path, '/');
	struct module *m = &out[n];

	if (!s->used || !s->executable || n == max)
		return n;
	if (s->path[0] != '/' && !s->m.seen.is_vdso)
		return n;
	*m = s->m;
	text_copy(m->seen.name, sizeof(m->seen.name), slash ? slash + 1 : s->path);
	return n + 1;
}

static void span_begin(struct span *s, uint64_t device, uint64_t inode, const char *path)
{
	s->m = (struct module){.device = device, .inode = inode};
	s->m.seen.is_vdso = !strcmp(path, "[vdso]");
	s->used = true;
	s->executable = false;
	snprintf(s->path, sizeof(s->path), "%s", path);
}

static void line_take(struct span *s, const char *line, struct module *out, size_t *n, size_t max)
{
	unsigned long long begin, end, offset;
	unsigned int major, minor;
	unsigned long inode;
	uint64_t device;
	char access[8];
	int name = 0;

	if (sscanf(line, "%llx-%llx %7s %llx %x:%x %lu %n", &begin, &end, access, &offset, &major,
		   &minor, &inode, &name) != 7 ||
	    !line[name] || strlen(line + name) >= sizeof(s->path))
		return;
	device = makedev(major, minor);
	if (!s->used || strcmp(s->path, line + name) || s->m.inode != inode ||
	    s->m.device != device) {
		*n = span_add(s, out, *n, max);
		span_begin(s, device, inode, line + name);
		s->m.seen.begin = begin;
	}
	s->m.seen.end = end;
	if (access[2] == 'x' && !s->executable) {
		s->executable = true;
		s->m.seen.code_begin = begin;
		s->m.seen.code_end = end;
		s->m.seen.code_offset = offset;
	}
}

long modules_read(pid_t pid, struct module *out, size_t max)
{
	struct span *span = calloc(1, sizeof(*span));
	size_t n = 0, capacity = 0, lines = 0;
	char path[64], *line = NULL;
	FILE *f = NULL;
	long result = -ENOMEM;

	if (!span)
		goto out;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f) {
		result = errno == ENOENT ? -ESRCH : -errno;
		goto out;
	}
	for (; lines < LINES_MAX && getline(&line, &capacity, f) > 0; lines++) {
		line[strcspn(line, "\n")] = 0;
		line_take(span, line, out, &n, max);
	}
	n = span_add(span, out, n, max);
	result = lines ? (long)n : -ESRCH; /* a zombie's maps are empty */
out:
	free(line);
	if (f)
		fclose(f);
	free(span);
	return result;
}

/* Reads fields 3 and 22 of /proc/PID/stat. Returns false if the process has ended. */
static bool stat_read(pid_t pid, char *state, unsigned long long *start)
{
	char path[64], text[1024];
	const char *after;
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[len] = 0;
	after = strrchr(text, ')'); /* a process's name may contain ")" */
	return after && sscanf(after + 1,
			       " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
			       "%*d %*d %*d %llu",
			       state, start) == 2;
}

uint64_t modules_start_time(pid_t pid)
{
	unsigned long long start;
	char state;

	return stat_read(pid, &state, &start) && state != 'Z' && state != 'X' ? start : 0;
}

char modules_process_state(pid_t pid)
{
	unsigned long long start;
	char state;

	return stat_read(pid, &state, &start) ? state : 0;
}

long modules_find(const struct module *modules, size_t n, uint64_t address)
{
	for (size_t i = 0; i < n; i++) {
		if (address >= modules[i].seen.begin && address < modules[i].seen.end)
			return (long)i;
	}
	return -1;
}

/*
 * Opens a regular file that is not too large. Finds out the kind of the file before it opens it,
 * because opening a device may have an effect. With O_NONBLOCK, open() does not wait for a lease.
 */
static int regular_open(const char *path, struct file_id *id, uid_t *owner)
{
	const int place = open(path, O_PATH | O_CLOEXEC);
	char again[32];
	struct stat s;
	int fd;

	if (place < 0)
		return -errno;
	if (fstat(place, &s))
		fd = -errno;
	else if (!S_ISREG(s.st_mode) || s.st_size <= 0 || s.st_size > FILE_BYTES_MAX)
		fd = -EINVAL;
	else {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
		fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		fd = fd < 0 ? -errno : fd;
	}
	close(place);
	if (fd < 0)
		return fd;
	*owner = s.st_uid;
	*id = (struct file_id){.device = s.st_dev,
			       .inode = s.st_ino,
			       .mtime_ns = (uint64_t)s.st_mtim.tv_sec * 1000000000 +
					   (uint64_t)s.st_mtim.tv_nsec,
			       .size_bytes = (uint64_t)s.st_size};
	return fd;
}

int module_open(pid_t pid, struct module *m)
{
	char path[96];

	if (!m->inode)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid,
		 (unsigned long long)m->seen.code_begin, (unsigned long long)m->seen.code_end);
	return regular_open(path, &m->id, &m->owner);
}

int module_open_debug(const uint8_t *build_id, size_t bytes, struct file_id *id)
{
	char path[256] = "/usr/lib/debug/.build-id/";
	size_t used = strlen(path);
	uid_t owner = 0;
	int fd;

	if (bytes < 2 || bytes > NAMING_BUILD_ID_MAX)
		return -EINVAL;
	for (size_t i = 0; i < bytes; i++)
		used += (size_t)sprintf(path + used, i == 0 ? "%02x/" : "%02x", build_id[i]);
	strcpy(path + used, ".debug");
	fd = regular_open(path, id, &owner);
	if (fd >= 0 && owner) { /* not installed by root, so not by a package */
		close(fd);
		return -EPERM;
	}
	return fd;
}
