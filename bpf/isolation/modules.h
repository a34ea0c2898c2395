/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The files of code that a process has mapped: which they are, as the kernel says, and a descriptor
 * of the very file, by /proc/PID/map_files: never by a path, which the process or its owner
 * chooses. Nothing is read of any file.
 */
#ifndef ISOLATION_MODULES_H
#define ISOLATION_MODULES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/isolation/naming_wire.h"

struct module {
	struct naming_module seen; /* what the namer gets to see */
	uint64_t device, inode;    /* as in /proc/PID/maps; inode 0: no file */
	struct file_id id;         /* once it was opened */
	uid_t owner;
};

/* Bounded: 16384 lines of /proc/PID/maps are read. Fills out[0..max-1], by address; how many, or
 * -ESRCH (a zombie, too), -errno. */
long modules_read(pid_t pid, struct module *out, size_t max);
/* Field 22 of /proc/PID/stat; 0: the process is gone or only its corpse is there. */
uint64_t modules_start_time(pid_t pid);
/* Field 3: 'R' runs or waits for a CPU, 'S', 'D', ..; 0: gone. */
char modules_process_state(pid_t pid);
/* The module that holds `address`; -1: none. */
long modules_find(const struct module *modules, size_t n, uint64_t address);
/* A descriptor to read, of a regular file of at most 1 GiB; fills id and owner of `m`. -errno,
 * -EINVAL: not such a file. May block as long as the file's system does. */
int module_open(pid_t pid, struct module *m);
/* Of a file with symbols only, where this machine's packages put it. As above. */
int module_open_debug(const uint8_t *build_id, size_t bytes, struct file_id *id);

#endif
