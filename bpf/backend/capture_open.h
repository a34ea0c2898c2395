/* SPDX-License-Identifier: GPL-2.0-only */
/* Selects the backend of a capture: BPF, or perf if BPF does not work. */
#ifndef BACKEND_CAPTURE_OPEN_H
#define BACKEND_CAPTURE_OPEN_H

#include "bpf/capture/capture.h"

/* Opens a capture: loads and attaches its programs, or opens perf's rings. The caller closes *out
 * with capture_close(). On failure, `why` (may be NULL) receives one line with the reason and the
 * remedy. Returns 0 or -errno. */
int capture_open(const struct capture_options *options, struct capture **out, char *why,
		 size_t why_bytes);

#endif
