/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads trace.dat, trace-cmd's binary files, with libtracecmd. The library runs in a separate
 * process, because a damaged file can crash it. The events before the crash are kept.
 */
#ifndef IMPORT_TRACE_DAT_H
#define IMPORT_TRACE_DAT_H

#include <stdbool.h>
#include <stddef.h>

#include "host-collector/import/gather.h"

/* Returns whether the file begins like trace-cmd's files; false if it cannot be read. */
bool trace_dat_is(const char *path);
/*
 * Adds all events of all buffers of the file. g->lines counts events. Stamps are nanoseconds, or
 * ticks if g->options.tick_hz is set. Returns 0, -ENOMEM, -errno of the process, or -EBADMSG with
 * one line in `why` if the file could not be read to its end; the events read so far are in `g`.
 */
int trace_dat_gather(struct gather *g, const char *path, char *why, size_t why_bytes);

#endif
