/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A list of the files that killed or blocked the process that read them. It lies in memory that the
 * asking process shares with its opener, so it outlives opener and namer. Device, inode, time of
 * change and size identify a file. If a user other than root owns three of them, all files of this
 * user are refused. If no file was being read, the process whose stack was being named is listed
 * instead. A process is refused once it has two entries.
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
	/* the file or process that the opener works on; inode 0: none */
	struct file_id current;
	uint32_t n, n_owners; /* numbers of entries ever added; the newest replaces the oldest */
	struct file_id files[BAD_FILES_MAX];
	struct bad_owner owners[BAD_OWNERS_MAX];
};

/* Creates a memory file for a struct bad_files. Returns its descriptor, which the caller closes, or
 * -errno. */
int bad_files_create(void);
struct bad_files *bad_files_map(int fd); /* NULL with errno set on failure */
void bad_files_unmap(struct bad_files *b);

/* Adds an entry and counts it for its owner, unless that is root. */
void bad_files_add(struct bad_files *b, const struct file_id *id, uid_t owner);
/* Returns whether the file, process or owner is refused. */
bool bad_files_has(const struct bad_files *b, const struct file_id *id, uid_t owner);
/* Adds `current`, if it is set, and clears it. Call it when the opener died or hung. */
void bad_files_blame(struct bad_files *b);

/* Returns the id of a file that has not been opened yet. */
struct file_id bad_files_unopened(uint64_t device, uint64_t inode);
/* Returns an id that identifies a process instead of a file. */
struct file_id bad_files_process(pid_t pid, uint64_t start_time);

#endif
