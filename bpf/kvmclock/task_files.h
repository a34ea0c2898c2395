/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs a BPF iterator over the open files of processes. */
#ifndef BPF_TASK_FILES_H
#define BPF_TASK_FILES_H

#include <stddef.h>
#include <sys/types.h>
#include <bpf/libbpf.h>

/*
 * Reads the records of `bytes` bytes that the program writes, and calls `record` for each until it
 * returns a value other than 0. pid: 0 for all processes, else only this one if the kernel supports
 * it (since 6.1); an older kernel runs the program for all processes, so the program must filter.
 * Returns 0, the value that `record` returned, or -errno.
 */
int task_files_read(struct bpf_program *program, pid_t pid, size_t bytes,
		    int (*record)(void *context, const void *data), void *context);

#endif
