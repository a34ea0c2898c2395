/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests whether this machine can capture tracepoints through perf: opens one tracepoint on all CPUs
 * for a short time and checks the records that arrive against the tracepoint's format. */
#ifndef PERF_PERF_PROBE_H
#define PERF_PERF_PROBE_H

#include <stddef.h>
#include <stdint.h>

struct perf_probe_result {
	uint64_t events;  /* well-formed records of the tracepoint */
	uint64_t strange; /* number of malformed records; must be 0 */
	/* records that the kernel reports as lost */
	uint64_t lost;
};

/* Captures the tracepoint system:name for window_ms; the call takes that long. Returns 0, or -errno
 * with one line in `why` (may be NULL) that says what failed and what to do. Returns 0 also if no
 * event occurred. */
int perf_probe_tracepoint(const char *system, const char *name, unsigned int window_ms,
			  struct perf_probe_result *out, char *why, size_t why_bytes);

#endif
