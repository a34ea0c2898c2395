/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/kallsyms.h"

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
