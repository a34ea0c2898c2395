/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs a BPF iterator over the open files of processes. */
#ifndef BPF_TASK_FILES_H
#define BPF_TASK_FILES_H

#include <stddef.h>
#include <sys/types.h>
#include <bpf/libbpf.h>

/*
 * Reads what the program writes, records of `bytes` each, and calls `record` for each until it
 * returns other than 0. pid: of this process only, where the kernel can (since 6.1): the program
 * must tell them apart itself; 0: of all. 0, what `record` returned, or -errno.
 */
int task_files_read(struct bpf_program *program, pid_t pid, size_t bytes,
		    int (*record)(void *context, const void *data), void *context);

#endif
