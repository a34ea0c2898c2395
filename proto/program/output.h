/* SPDX-License-Identifier: GPL-2.0-only */
/* The output of a command: a file, or standard output. */
#ifndef PROGRAM_OUTPUT_H
#define PROGRAM_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* Returns whether `path` stands for standard output: NULL or "-". */
bool output_is_stdout(const char *path);
/* Returns the name of the output for messages. */
const char *output_name(const char *path);
/* Opens the output, which replaces an existing file. Returns 0 or -errno. */
int output_open(const char *path, FILE **to);
/* Writes what is buffered, and closes the output unless it is standard output. Returns 0, or -errno
 * if this or an earlier write failed. */
int output_close(FILE *to);

#endif
