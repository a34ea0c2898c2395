/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/capture/event_pmu.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <unistd.h>

#include "bpf/capture/tracepoint_format.h"

enum { REF_CTR_SHIFT = 32 /* of config: format/ref_ctr_offset of the PMU uprobe */ };

static int tracepoint_id(const struct capture_event *e, uint64_t *id)
{
	struct tep_handle *tep = tep_alloc();
	struct tep_event *event;
	int error;

	if (!tep)
		return -ENOMEM;
	error = tracepoint_format_parse(tep, e->system, e->name, &event);
	if (!error)
		*id = (uint64_t)event->id;
	tep_free(tep);
	return error;
}

/* Reads the number of a PMU for perf_event_open(). Returns -ENOENT if the kernel lacks it: before
 * Linux 4.17, or without probes. */
static int pmu_type(const char *name, uint32_t *type)
{
	char path[96];
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", name);
	f = fopen(path, "re");
	if (!f)
		return -ENOENT;
	n = fscanf(f, "%u", type);
	fclose(f);
	return n == 1 ? 0 : -ENOENT;
}

int event_pmu_find(const struct capture_event *event, struct event_pmu *out)
{
	const bool is_return = event->kind == USER_KRETPROBE || event->kind == USER_URETPROBE;
	const bool is_kernel = event->kind == USER_KPROBE || event->kind == USER_KRETPROBE;

	*out = (struct event_pmu){.type = PERF_TYPE_TRACEPOINT};
	if (event->kind == USER_TRACEPOINT)
		return tracepoint_id(event, &out->config);
	if (event->counter > UINT32_MAX)
		return -ENOTSUP;
	if (pmu_type(is_kernel ? "kprobe" : "uprobe", &out->type))
		return is_kernel ? -ENOSYS : -ENOTSUP;
	if (event->counter &&
	    access("/sys/bus/event_source/devices/uprobe/format/ref_ctr_offset", F_OK))
		return -ENOTSUP;
	out->config = (uint64_t)is_return | event->counter << REF_CTR_SHIFT;
	out->config1 = (uintptr_t)(is_kernel ? event->name : event->path);
	out->config2 = is_kernel ? 0 : event->offset;
	return 0;
}
