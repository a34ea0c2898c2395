/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the public part of the daemon's configuration, for a report to strangers. A value is shown
 * only if it is valid for a key whose values are numbers or choices; of an address only the kind is
 * shown. Comments, unknown keys and unknown sections are left out.
 */
#ifndef DAEMON_CONFIG_PUBLIC_H
#define DAEMON_CONFIG_PUBLIC_H

#include <stddef.h>
#include <stdio.h>

/* Writes the name that replaces the VM's `name` to `out`, and returns `out`. */
typedef const char *(*config_vm_name)(void *context, const char *name, char *out, size_t out_bytes);

/* Writes the public part of the configuration `text` to `out`. vm_name: NULL keeps the names of VMs
 * and pairs. Returns 0 or -ENOMEM. */
int config_public_write(const char *text, config_vm_name vm_name, void *context, FILE *out);

#endif
