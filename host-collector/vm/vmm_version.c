/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/vm/vmm_version.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/proc_file.h"

/* What QEMU prints for --version, up to its number. */
static const char mark[] = "QEMU emulator version ";

enum {
	MARK_LEN = sizeof(mark) - 1,
	TEXT_MAX = 192, /* number and package; a longer text is not QEMU's */
	OVERLAP = MARK_LEN + TEXT_MAX,
	CHUNK = 1 << 18,
	PACKAGE_MAX = 40,   /* of the package's name, as in qmp_version() */
	MOUNTS_MAX = 16384, /* lines that are looked through */
};
static const off_t file_max = 256 << 20;

/* text: what follows the mark, `len` bytes: "7.2.15 (Debian 1:7.2+dfsg-7)\n..". Returns whether it
 * is a version. */
static bool text_take(const char *text, size_t len, char *out, size_t out_bytes)
{
	const char *end = memchr(text, '\n', len), *package;
	size_t number, more = 0;

	if (!end || end - text > TEXT_MAX)
		return false;
	len = (size_t)(end - text);
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] > '~')
			return false;
	}
	for (number = 0;
	     number < len && (isdigit((unsigned char)text[number]) || text[number] == '.');)
		number++;
	if (!number || !isdigit((unsigned char)text[0]))
		return false;
	package = text + number;
	if (end - package > 3 && package[0] == ' ' && package[1] == '(' && end[-1] == ')') {
		package += 2;
		more = (size_t)(end - 1 - package);
	} else if (number != len) {
		return false;
	}
	snprintf(out, out_bytes, "QEMU %.*s%s%.*s%s", (int)number, text, more ? " (" : "",
		 (int)(more < PACKAGE_MAX ? more : PACKAGE_MAX), package, more ? ")" : "");
	return true;
}

/* bytes: a part of the program. last: nothing follows it. A mark whose text may go on in the next
 * part is left to that part. */
static bool part_search(const char *bytes, size_t len, bool last, char *out, size_t out_bytes)
{
	const char *at = bytes;

	while ((at = memmem(at, len - (size_t)(at - bytes), mark, MARK_LEN))) {
		const char *text = at + MARK_LEN;
		const size_t left = len - (size_t)(text - bytes);

		if (!last && left <= TEXT_MAX)
			return false;
		if (text_take(text, left, out, out_bytes))
			return true;
		at = text;
	}
	return false;
}

static int file_search(int fd, char *buffer, char *out, size_t out_bytes)
{
	size_t kept = 0;
	off_t at = 0;

	while (at < file_max) {
		const ssize_t n = pread(fd, buffer + kept, CHUNK, at);
		size_t len;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		len = kept + (size_t)n;
		if (part_search(buffer, len, !n, out, out_bytes))
			return 0;
		if (!n)
			break;
		at += n;
		kept = len < OVERLAP ? len : OVERLAP;
		memmove(buffer, buffer + len - kept, kept);
	}
	return -ENODATA;
}

int vmm_version_read(int program, char *out, size_t out_bytes)
{
	char *buffer = malloc(OVERLAP + CHUNK);
	const int err = buffer ? file_search(program, buffer, out, out_bytes) : -ENOMEM;

	if (err)
		out[0] = '\0';
	free(buffer);
	return err;
}

/* ---- which program ---- */

/* The mount that an open file is on. Asks nothing of the file system. */
static int mount_id(int fd)
{
	static const char key[] = "mnt_id:";
	char path[64], text[512];
	const char *line;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (proc_file_read(path, text, sizeof(text)) <= 0)
		return -1;
	line = strstr(text, key);
	return line ? atoi(line + sizeof(key) - 1) : -1;
}

/*
 * Looks for a mount in lines such as "36 35 98:0 /root /mnt opts - ext4 /dev/sda1 rw": by its id,
 * or by its device if the id is -1. Fills in its device and type. Returns whether there is one.
 */
static bool mount_find(const char *path, int id, char device[24], char type[24])
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t bytes = 0;
	bool found = false;

	for (size_t i = 0; f && !found && i < MOUNTS_MAX && getline(&line, &bytes, f) > 0; i++) {
		const char *rest = strstr(line, " - ");
		char its_device[24];
		int its_id;

		if (!rest || sscanf(line, "%d %*d %23s", &its_id, its_device) != 2 ||
		    sscanf(rest, " - %23s", type) != 1)
			continue;
		found = id == -1 ? !strcmp(its_device, device) : its_id == id;
		if (found)
			snprintf(device, 24, "%s", its_device);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

/*
 * A user can mount a file system whose files claim to be root's and whose server never answers. It
 * is in the user's own mount namespace, or its type is fuse. The mounts of the process are those of
 * its namespace, with other ids than ours, but with the same devices.
 */
static bool mount_trusted(const char *proc, pid_t pid, int fd)
{
	static const char *const types[] = {
		"bcachefs", "btrfs", "erofs",    "ext2",   "ext3",     "ext4",  "f2fs", "jfs",
		"overlay",  "ramfs", "reiserfs", "rootfs", "squashfs", "tmpfs", "xfs",  "zfs"};
	const int id = mount_id(fd);
	char path[512], device[24], type[24];
	bool known = false;

	snprintf(path, sizeof(path), "%s/%d/mountinfo", proc, pid);
	if (id < 0 || !mount_find(path, id, device, type))
		return false;
	snprintf(path, sizeof(path), "%s/self/mountinfo", proc);
	if (!mount_find(path, -1, device, type))
		return false;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		known |= !strcmp(type, types[i]);
	return known;
}

int vmm_program_open(const char *proc, pid_t pid, struct vmm_program *out)
{
	char path[512];
	struct stat st;
	int at, fd = -1, err = 0;

	snprintf(path, sizeof(path), "%s/%d/exe", proc, pid);
	at = open(path, O_PATH | O_CLOEXEC); /* asks nothing of the file system */
	if (at < 0)
		return -errno;
	if (!mount_trusted(proc, pid, at))
		err = -EXDEV;
	else if (fstat(at, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode) || (st.st_uid && st.st_uid != geteuid()) ||
		 st.st_mode & (S_IWGRP | S_IWOTH))
		err = -EPERM;
	if (err)
		goto out;
	*out = (struct vmm_program){
		.device = st.st_dev,
		.inode = st.st_ino,
		.bytes = (uint64_t)st.st_size,
		.changed_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec,
	};
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err = -errno;
out:
	close(at);
	return err ? err : fd;
}
