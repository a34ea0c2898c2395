// SPDX-License-Identifier: GPL-2.0-only
#include "bpf/backend/sample_timers.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/backend/loader.h"
#include "bpf/capture/online_cpus.h"

int sample_timers_prepare(struct bpf_object *object, const char *name, uint32_t hz)
{
	uint64_t *period = loader_variable(object, ".rodata", "sample_period_ns", sizeof(*period));
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);

	if (!program)
		return -EINVAL;
	if (period)
		*period = hz ? 1000000000 / hz : 0;
	bpf_program__set_autoload(program, hz > 0);
	return 0;
}

static int timer_attach(struct sample_timers *t, struct bpf_program *program, int cpu,
			uint64_t period_ns)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
	};
	const long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	int error;

	if (fd < 0)
		return -errno;
	t->links[cpu] = bpf_program__attach_perf_event(program, (int)fd);
	if (t->links[cpu])
		return 0;
	error = -errno;
	close((int)fd);
	return error;
}

int sample_timers_attach(struct sample_timers *t, struct bpf_object *object, const char *name,
			 uint64_t period_ns, char *why, size_t why_bytes)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);
	bool online[VS_CPUS_MAX];
	int error = program ? online_cpus_read(online, VS_CPUS_MAX) : -EINVAL;

	for (int cpu = 0; cpu < VS_CPUS_MAX && error >= 0; cpu++)
		error = online[cpu] ? timer_attach(t, program, cpu, period_ns) : 0;
	if (error >= 0)
		return 0;
	snprintf(why, why_bytes, "cannot sample stacks (perf_event_open, cpu-clock): %s",
		 strerror(-error));
	sample_timers_detach(t);
	return error;
}

void sample_timers_detach(struct sample_timers *t)
{
	for (size_t i = 0; i < VS_CPUS_MAX; i++)
		bpf_link__destroy(t->links[i]);
	*t = (struct sample_timers){0};
}
