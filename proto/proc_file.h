/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads small files of /proc, /sys and similar file systems. */
#ifndef PROTO_PROC_FILE_H
#define PROTO_PROC_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Reads up to bytes - 1 bytes of a file and adds a NUL, also on an error. Returns the number of
 * bytes read or -errno. */
ssize_t proc_file_read(const char *path, char *out, size_t bytes);
/* Does the same for a path relative to the directory `dir`. flags: more flags for open(2). */
ssize_t proc_file_read_at(int dir, const char *path, int flags, char *out, size_t bytes);
/* Reads the first line of a file, without its newline. Cuts a longer line. Returns 0, -ENODATA if
 * the file is empty, or another -errno; `out` is "" on an error. */
int proc_file_line(const char *path, char *out, size_t bytes);
/* Parses a process or thread id. Returns 0 if `name` is not a decimal number above 0. */
int proc_id_of(const char *name);

#endif
