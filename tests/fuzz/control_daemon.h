/* SPDX-License-Identifier: GPL-2.0-only */
/* A daemon without VMs, for fuzzing its control socket. Implements the functions of daemon.h,
 * watched_vm.h, spool.h and flight.h that commands.c calls. */
#ifndef TESTS_FUZZ_CONTROL_DAEMON_H
#define TESTS_FUZZ_CONTROL_DAEMON_H

struct vm_daemon;

struct vm_daemon *control_daemon(void);

#endif
