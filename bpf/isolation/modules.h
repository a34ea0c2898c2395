/* SPDX-License-Identifier: GPL-2.0-only */
/* Lists the executable files that a process has mapped, and opens them through /proc/PID/map_files.
 * It never opens them by path, because the process or its owner chooses the path. These functions
 * do not read the content of the files. */
#ifndef ISOLATION_MODULES_H
#define ISOLATION_MODULES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/isolation/naming_wire.h"

struct module {
	struct naming_module seen; /* the part that the namer receives */
	uint64_t device, inode;    /* from /proc/PID/maps; inode 0: no file */
	struct file_id id;         /* set when the file was opened */
	uid_t owner;
};

/* Reads the executable mappings of a process from at most 16384 lines of /proc/PID/maps and fills
 * out[0..max-1], ordered by address. Returns their number or -errno: -ESRCH (no such process, or a
 * zombie). */
long modules_read(pid_t pid, struct module *out, size_t max);
/* Returns the start time of a process (field 22 of /proc/PID/stat, clock ticks since boot), or 0 if
 * the process is gone or a zombie. */
uint64_t modules_start_time(pid_t pid);
/* Returns the state of a process (field 3 of /proc/PID/stat): 'R' for running or runnable, 'S', 'D'
 * and so on; 0 if it is gone. */
char modules_process_state(pid_t pid);
/* Returns the index of the module that contains `address`, or -1. */
long modules_find(const struct module *modules, size_t n, uint64_t address);
/* Opens the file of `m` for reading if it is a regular file of at most 1 GiB, and fills id and
 * owner of `m`. Returns a descriptor, which the caller closes, or -errno; -EINVAL: not such a file.
 * May block as long as its file system blocks. */
int module_open(pid_t pid, struct module *m);
/* Opens the file of debug symbols with this build-id, from the folder where the packages of this
 * machine install it. Returns as module_open(); -EPERM: root does not own the file. */
int module_open_debug(const uint8_t *build_id, size_t bytes, struct file_id *id);

#endif
