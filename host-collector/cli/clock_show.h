/* SPDX-License-Identifier: GPL-2.0-only */
/* vcpuscope clock RUN.vcs: how each VM's times were converted, by what, and how well it held. */
#ifndef CLI_CLOCK_SHOW_H
#define CLI_CLOCK_SHOW_H

#include <stdbool.h>

/* Reads the recording, writes to standard output. `convert`: instead of the account, what every
 * clock read at each guest TSC in this file ("-": standard input), of the recording's first VM;
 * NULL: the account. Returns enum command_exit; says what is wrong. */
int clock_show(const char *recording, const char *convert, bool as_json);

#endif
