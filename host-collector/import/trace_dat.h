/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * trace.dat, trace-cmd's own files, by libtracecmd: numbers instead of text. The library reads in a
 * process of its own, because a damaged file can crash it: what came before is kept then.
 */
#ifndef IMPORT_TRACE_DAT_H
#define IMPORT_TRACE_DAT_H

#include <stdbool.h>
#include <stddef.h>

#include "host-collector/import/gather.h"

/* Does the file begin as trace-cmd's do? Also false if it cannot be read. */
bool trace_dat_is(const char *path);
/*
 * Every event of every buffer in it. g->lines counts events. Stamps are nanoseconds, or ticks if
 * g->options.tick_hz is set. 0, -ENOMEM, -errno of the process, or -EBADMSG with one line in `why`:
 * the file could not be read to its end; what was read is in `g` all the same.
 */
int trace_dat_gather(struct gather *g, const char *path, char *why, size_t why_bytes);

#endif
