/* SPDX-License-Identifier: GPL-2.0-only */
/* vcpuscope clock RUN.vcs: how each VM's times were converted, by what, and how well it held. */
#ifndef CLI_CLOCK_SHOW_H
#define CLI_CLOCK_SHOW_H

#include <stdbool.h>

/* Reads the recording, writes to standard output. Returns enum command_exit; says what is wrong. */
int clock_show(const char *recording, bool as_json);

#endif
