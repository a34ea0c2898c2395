/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The files that killed or hung who read them, in memory that the asking process shares with its
 * opener, so that it outlives both opener and namer. Files are known by device, inode, time of
 * change and size. A user (not root) who owns three of them has all his files refused. A process
 * that did it twice, where no file is known that did, is listed among them.
 */
#ifndef ISOLATION_BAD_FILES_H
#define ISOLATION_BAD_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/isolation/naming_wire.h"

enum { BAD_FILES_MAX = 256, BAD_OWNERS_MAX = 64, BAD_OWNER_FILES = 3 };

struct bad_owner {
	uint32_t uid, files;
};

struct bad_files {
	/* What the opener works on now; inode 0: nothing. */
	struct file_id current;
	uint32_t n, n_owners; /* ever; they wrap around */
	struct file_id files[BAD_FILES_MAX];
	struct bad_owner owners[BAD_OWNERS_MAX];
};

/* A memory file of that size. Descriptor or -errno. */
int bad_files_create(void);
struct bad_files *bad_files_map(int fd); /* NULL: errno says why */
void bad_files_unmap(struct bad_files *b);

void bad_files_add(struct bad_files *b, const struct file_id *id, uid_t owner);
bool bad_files_has(const struct bad_files *b, const struct file_id *id, uid_t owner);
/* Adds `current`, if there is any: the opener died or hung. */
void bad_files_blame(struct bad_files *b);

/* A file of which only this much is known before it is opened. */
struct file_id bad_files_unopened(uint64_t device, uint64_t inode);
/* A process, as if it were a file. */
struct file_id bad_files_process(pid_t pid, uint64_t start_time);

#endif
