// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/doctor.h"

#include "bpf/capture/kernel_support.h"

static void row_print(FILE *out, const char *name, bool works, const char *found)
{
	fprintf(out, "%-13s %-4s %s\n", name, works ? "yes" : "no", found);
}

bool doctor_print(FILE *out, const char *root, doctor_capture_try try)
{
	static const struct {
		enum backend_choice backend;
		const char *name;
	} backends[] = {{CAPTURE_BY_BPF, "by BPF"}, {CAPTURE_BY_PERF, "by perf"}};
	bool any = false;

	for (int kind = 0; kind < KERNEL_SUPPORT_KINDS; kind++) {
		struct kernel_support support;

		kernel_support_read(root, CAPTURE_GUEST, (enum kernel_support_kind)kind, &support);
		row_print(out, kernel_support_name((enum kernel_support_kind)kind), support.works,
			  support.found);
		if (support.works)
			continue;
		fprintf(out, "%18s without: %s\n", "", support.without);
		fprintf(out, "%18s to do: %s\n", "", support.remedy);
	}
	for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
		char said[512] = "", lost[1024] = "";
		const bool works =
			!try(backends[i].backend, said, sizeof(said), lost, sizeof(lost));

		row_print(out, backends[i].name, works, said);
		if (*lost)
			fprintf(out, "%18s without: %s\n", "", lost);
		any |= works;
	}
	fprintf(out, "\n%s\n",
		any ? "the agent can capture here" : "the agent cannot capture here");
	return any;
}
