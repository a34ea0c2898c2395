/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds other programs of vcpuscope that the running program starts. */
#ifndef PROTO_SIBLING_H
#define PROTO_SIBLING_H

#include <stddef.h>

/*
 * Writes the path of program `name` to out[0..out_bytes-1]. Searches the folder of the running
 * program, then ../libexec/vcpuscope relative to it, where programs are installed that users do
 * not start themselves. Returns 0 if the program is executable.
 *
 * If the path of the running program is unavailable or too long, `out` is `name` (cut if it does
 * not fit), and the result is -errno of readlink() or -ENAMETOOLONG. If `name` is not executable,
 * `out` is its path in the folder of the running program, and the result is -errno of access().
 */
int sibling_path(const char *name, char *out, size_t out_bytes);

#endif
