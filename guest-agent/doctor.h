/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope-agent --doctor`: shows what the agent can capture in this guest. */
#ifndef AGENT_DOCTOR_H
#define AGENT_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "bpf/capture/capture.h"

/* Opens and closes a capture. Writes one line into `said`: the probes that were attached, or why
 * none could be attached. Writes one line into `lost`: the events that cannot be captured, because
 * this kernel lacks their tracepoints; "" if it has all. Returns 0 or -errno. */
typedef int (*doctor_capture_try)(enum backend_choice backend, char *said, size_t said_bytes,
				  char *lost, size_t lost_bytes);

/* Prints one row for each thing that a capture needs, and one for each backend, which `try` opens.
 * A row with the answer "no" also shows what is lost, what still works and what to do. `root` is
 * put before the paths of the kernel's files; "" on a real machine. Returns whether a backend can
 * capture. */
bool doctor_print(FILE *out, const char *root, doctor_capture_try try);

#endif
