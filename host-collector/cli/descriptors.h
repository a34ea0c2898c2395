/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CLI_DESCRIPTORS_H
#define CLI_DESCRIPTORS_H

/* Raises this process's limit of open files to the highest that it may have: a capture opens some
 * files for each CPU, chosen event, VM, vCPU and cgroup, and the usual limit is 1,024. Processes
 * that start later inherit it. If that fails, the old limit stays. */
void descriptors_allow(void);

#endif
