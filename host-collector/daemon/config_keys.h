/* SPDX-License-Identifier: GPL-2.0-only */
/* The keys of the daemon's configuration: one row for each, with the form of its values. */
#ifndef DAEMON_CONFIG_KEYS_H
#define DAEMON_CONFIG_KEYS_H

#include <stddef.h>

enum config_section {
	CONFIG_DAEMON, /* [daemon]: struct daemon_config */
	CONFIG_VM,     /* [vm NAME]: struct vm_config */
	CONFIG_PAIR,   /* [pair NAME]: struct pair_definition */
};

/* Sets a key in the struct `to` of its section, to a value written as in the file. Returns 0, or
 * -EINVAL with one line in `why` (no such key, or a wrong value). */
int config_key_set(enum config_section section, void *to, const char *name, const char *value,
		   char *why, size_t why_bytes);

#endif
