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

enum config_value {
	CONFIG_VALUE_UNKNOWN, /* there is no such key */
	CONFIG_VALUE_TEXT,    /* a name, a path, a command: any text */
	CONFIG_VALUE_PLAIN,   /* a number with its unit, or one of a few words */
};

/* Returns the form of the values of a key. */
enum config_value config_key_value(enum config_section section, const char *name);

/* Sets a key in the struct `to` of its section, to a value written as in the file. Returns 0, or
 * -EINVAL with one line in `why` (no such key, or a wrong value). */
int config_key_set(enum config_section section, void *to, const char *name, const char *value,
		   char *why, size_t why_bytes);

#endif
