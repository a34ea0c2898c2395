/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel lockdown (kernel_lockdown(7)): in mode confidentiality, not even root's BPF programs may
 * read the kernel's memory. */
#ifndef CAPTURE_LOCKDOWN_H
#define CAPTURE_LOCKDOWN_H

#include <stdbool.h>

#define LOCKDOWN_PATH "/sys/kernel/security/lockdown"

/*
 * Is lockdown the reason for the verifier's complaint? `path` is LOCKDOWN_PATH, which says what is
 * in force. Where it cannot be read (securityfs is not mounted), the complaint decides: under
 * lockdown the verifier does not know the functions that read memory. Very old kernels do not have
 * them.
 */
bool lockdown_explains(const char *path, const char *complaint);

#endif
