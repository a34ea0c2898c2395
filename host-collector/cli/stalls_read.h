/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads a recording and finds its stalls, for commands that refer to them. */
#ifndef CLI_STALLS_READ_H
#define CLI_STALLS_READ_H

#include "host-collector/analyze/stall/report.h"

/* than_ns 0: STALL_DEFAULT_NS. Returns the report, which the caller frees, or NULL after it has
 * printed one line that begins with the command's name. */
struct report *stalls_read(const char *command, const char *recording, int64_t than_ns, bool all);

#endif
