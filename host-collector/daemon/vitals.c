/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/vitals.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>

#include "proto/proc_file.h"
#include "proto/self_cost.h"

enum {
	LAG_WINDOW_MS = 10000,
	LARGE_BYTES = 32 << 10,
	TIDY_MS = 30000,
	TIDY_BYTES = 8 << 20,
	TIDY_KEEP_BYTES = 1 << 20,
};

void lag_meter_tick(struct lag_meter *m, uint64_t now_ms, uint64_t period_ms, uint64_t run_delay_ns)
{
	const uint64_t late = m->due_ms && now_ms > m->due_ms ? now_ms - m->due_ms : 0;
	const uint64_t waited_ms = (run_delay_ns - m->run_delay_ns) / 1000000;
	const uint64_t own = late > waited_ms ? late - waited_ms : 0;

	m->run_delay_ns = run_delay_ns;
	if (own > m->own_ever_ms)
		m->own_ever_ms = own;

	m->due_ms = now_ms + period_ms;
	if (now_ms - m->since_ms >= LAG_WINDOW_MS) {
		m->since_ms = now_ms;
		m->before_ms = m->max_ms;
		m->max_ms = 0;
		m->own_before_ms = m->own_max_ms;
		m->own_max_ms = 0;
	}
	if (own > m->own_max_ms)
		m->own_max_ms = own;
	if (late > m->max_ms)
		m->max_ms = late;
	if (late > m->ever_ms)
		m->ever_ms = late;
}

uint64_t run_delay_read(void)
{
	unsigned long long ns = 0;
	char line[96];

	/* Fields: time on a CPU, time of waiting for one, number of time slices. */
	if (proc_file_read("/proc/thread-self/schedstat", line, sizeof(line)) < 0 ||
	    sscanf(line, "%*u %llu", &ns) != 1)
		return 0;
	return ns;
}

void memory_lean(void)
{
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}

void memory_tidy(uint64_t *tidied_ms, uint64_t now_ms)
{
	if (now_ms - *tidied_ms < TIDY_MS)
		return;
	*tidied_ms = now_ms;
	if (mallinfo2().fordblks > TIDY_BYTES)
		malloc_trim(TIDY_KEEP_BYTES);
}

static uint64_t descriptors_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t n = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n > 3 ? n - 3 : 0; /* ".", ".." and the folder itself */
}

void vitals_read(const struct lag_meter *m, struct vitals *out)
{
	struct self_cost cost;

	self_cost_read(&cost);
	*out = (struct vitals){
		.cpu_ns = cost.cpu_time_ns,
		.rss_bytes = cost.rss_bytes,
		.descriptors = descriptors_count(),
		.lag_max_ms = m->max_ms > m->before_ms ? m->max_ms : m->before_ms,
		.lag_ever_ms = m->ever_ms,
		.lag_own_max_ms =
			m->own_max_ms > m->own_before_ms ? m->own_max_ms : m->own_before_ms,
		.lag_own_ever_ms = m->own_ever_ms,
	};
}
