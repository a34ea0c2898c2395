/* SPDX-License-Identifier: GPL-2.0-only */
/* Replaces perf_ring.c and perf_probe.c in a build without libperf: opening fails with -ENOTSUP. */
#include <errno.h>

#include "bpf/capture/explain.h"
#include "bpf/perf/perf_probe.h"
#include "bpf/perf/perf_ring.h"

static int refuse(char *why, size_t why_bytes)
{
	return explain(why, why_bytes, -ENOTSUP,
		       "this build has no libperf and cannot capture through perf: build with "
		       "-DVCPUSCOPE_LIBPERF=ON");
}

int perf_ring_open(const struct perf_ring_options *options, struct perf_ring **out, char *why,
		   size_t why_bytes)
{
	(void)options;
	*out = NULL;
	return refuse(why, why_bytes);
}

void perf_ring_close(struct perf_ring *r)
{
	(void)r;
}

void perf_ring_switches_report(struct perf_ring *r, bool wanted)
{
	(void)r;
	(void)wanted;
}

size_t perf_ring_read(struct perf_ring *r, size_t max,
		      void (*record)(void *context, const struct perf_record *record),
		      void *context)
{
	(void)r;
	(void)max;
	(void)record;
	(void)context;
	return 0;
}

int perf_probe_tracepoint(const char *system, const char *name, unsigned int window_ms,
			  struct perf_probe_result *out, char *why, size_t why_bytes)
{
	(void)system;
	(void)name;
	(void)window_ms;
	(void)out;
	return refuse(why, why_bytes);
}
