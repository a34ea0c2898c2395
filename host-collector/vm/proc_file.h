/* SPDX-License-Identifier: GPL-2.0-only */
/* Reading small files of /proc and its like. */
#ifndef VM_PROC_FILE_H
#define VM_PROC_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Up to bytes - 1 bytes of a file, NUL-terminated. Bytes read or -errno. */
ssize_t proc_file_read(const char *path, char *out, size_t bytes);
/* A number above 0 and nothing else, as process and thread ids are written; else 0. */
int proc_id_of(const char *name);

#endif
