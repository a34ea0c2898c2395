/* SPDX-License-Identifier: GPL-2.0-only */
/* Chooses the backend of a capture: BPF, or perf where that does not work. */
#ifndef BACKEND_CAPTURE_OPEN_H
#define BACKEND_CAPTURE_OPEN_H

#include "bpf/capture/capture.h"

/* Loads and attaches. `why` (may be NULL) receives one line that says what failed and what to do.
 * 0 or -errno. */
int capture_open(const struct capture_options *options, struct capture **out, char *why,
		 size_t why_bytes);

#endif
