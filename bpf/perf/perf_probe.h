/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether this machine can capture tracepoints through perf, the way for kernels without BPF: tries
 * it for a moment with the real thing, on all CPUs, and checks what arrives against the
 * tracepoint's format.
 */
#ifndef PERF_PERF_PROBE_H
#define PERF_PERF_PROBE_H

#include <stddef.h>
#include <stdint.h>

struct perf_probe_result {
	uint64_t events;  /* well-formed records of the tracepoint that arrived */
	uint64_t strange; /* records that do not match its format: should be 0 */
	uint64_t lost;
};

/*
 * Captures system:name for window_ms (the call takes that long). 0 or -errno; then `why` (may be
 * NULL) receives one line that says what failed and what to do. No event in the window is not an
 * error: that is for the caller to judge.
 */
int perf_probe_tracepoint(const char *system, const char *name, unsigned int window_ms,
			  struct perf_probe_result *out, char *why, size_t why_bytes);

#endif
