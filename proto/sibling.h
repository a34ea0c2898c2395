/* SPDX-License-Identifier: GPL-2.0-only */
/* A program of ours that the running one starts. */
#ifndef PROTO_SIBLING_H
#define PROTO_SIBLING_H

#include <stddef.h>

/*
 * Writes the path of `name` into out[0..out_bytes-1]: in the folder of the running program, or, if
 * there is none, in ../libexec/vcpuscope from there, where what is not for people is installed. 0;
 * -ENAMETOOLONG, or why the running program is not found: out is `name` then, if it fits; else why
 * `name` cannot be run, with its path beside the program in out.
 */
int sibling_path(const char *name, char *out, size_t out_bytes);

#endif
