/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `vcpuscope clock RUN.vcs`: shows how the times of each VM in a recording were converted, and the
 * errors.
 */
#ifndef CLI_CLOCK_SHOW_H
#define CLI_CLOCK_SHOW_H

#include <stdbool.h>

/* Reads the recording and writes to standard output. convert: NULL, or a file with one guest TSC of
 * the first VM per line ("-": standard input); then the function writes the times that correspond
 * to each of them instead of the description of the clocks. Returns enum command_exit; reports
 * errors on stderr. */
int clock_show(const char *recording, const char *convert, bool as_json);

#endif
