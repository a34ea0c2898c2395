/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks that the values of a configuration are valid and fit each other. config.h declares the
 * checks of a VM, which is also attached without the file. */
#ifndef DAEMON_CONFIG_CHECK_H
#define DAEMON_CONFIG_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "host-collector/daemon/config.h"

/* Returns whether `name` can be the name of a VM or a pair: letters, digits, '.', '_' and '-', less
 * than DAEMON_NAME_MAX characters, and no '.' at its begin. */
bool config_name_is_good(const char *name);
/* Checks the daemon's values and those of all its VMs and pairs. Returns 0, or -EINVAL with one
 * line in `why`. */
int daemon_config_check(const struct daemon_config *c, char *why, size_t why_bytes);

#endif
