/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/symbols/kallsyms.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_plumbing(const char *name)
{
	static const char *const prefixes[] = {
		"bpf_trace_run",
		"__bpf_trace_sched_switch",
		"__bpf_trace_sched_wakeup_template",
		"__traceiter_sched_switch",
		"__traceiter_sched_waking",
		"perf_trace_sched_switch",
		"perf_trace_sched_wakeup_template",
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	}
	return false;
}

size_t kallsyms_plumbing(struct kallsyms_range out[KALLSYMS_PLUMBING_MAX])
{
	FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long address;
	char line[512], name[128], type;
	bool open = false;
	size_t n = 0;

	if (!f)
		return 0;
	/* In address order, so a function ends where the next one begins. */
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx %c %127s", &address, &type, name) != 3 || !address)
			continue;
		if (open && address > out[n].begin) {
			out[n++].end = address;
			open = false;
			if (n == KALLSYMS_PLUMBING_MAX)
				break;
		}
		if (!open && (type == 't' || type == 'T') && is_plumbing(name)) {
			out[n].begin = address;
			open = true;
		}
	}
	fclose(f);
	return n;
}

static bool lies_in(const struct kallsyms_range *ranges, size_t n, uint64_t address)
{
	for (size_t i = 0; i < n; i++) {
		if (address >= ranges[i].begin && address < ranges[i].end)
			return true;
	}
	return false;
}

size_t kallsyms_plumbing_frames(const struct kallsyms_range *ranges, size_t n_ranges,
				const uint64_t *frames, size_t n_frames)
{
	enum { LOOK_AT = 8 };
	size_t skip = 0;

	for (size_t i = 0; i < n_frames && i < LOOK_AT; i++) {
		if (lies_in(ranges, n_ranges, frames[i]))
			skip = i + 1;
	}
	return skip;
}
