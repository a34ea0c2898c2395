/* SPDX-License-Identifier: GPL-2.0-only */
/* Detects kernel lockdown (kernel_lockdown(7)). In mode confidentiality no BPF program may read the
 * kernel's memory, not even with root's rights. */
#ifndef CAPTURE_LOCKDOWN_H
#define CAPTURE_LOCKDOWN_H

#include <stdbool.h>

#define LOCKDOWN_PATH "/sys/kernel/security/lockdown"

/*
 * Returns true if lockdown is the reason for the verifier's message `complaint`. `path` is
 * LOCKDOWN_PATH, which holds the mode in force. If that file cannot be opened (securityfs is not
 * mounted), the message decides: under lockdown the verifier does not know the functions that read
 * memory. Then the result is also true on a very old kernel, which does not have these functions.
 */
bool lockdown_explains(const char *path, const char *complaint);

#endif
