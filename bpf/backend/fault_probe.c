/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/backend/fault_probe.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct bpf_link *cpu_attach(struct bpf_program *program, int cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_ADDR,
	};
	const long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	struct bpf_link *link;

	if (fd < 0)
		return NULL;
	link = bpf_program__attach_perf_event(program, (int)fd);
	if (!link)
		close((int)fd);
	return link;
}

int fault_probe_attach(struct fault_probe *f, struct bpf_program *program, size_t n_cpus)
{
	int attached = 0;

	if (!f->links) {
		f->links = calloc(n_cpus, sizeof(*f->links));
		if (!f->links)
			return -ENOMEM;
		f->n_cpus = n_cpus;
	}
	for (size_t cpu = 0; cpu < f->n_cpus; cpu++) {
		if (!f->links[cpu])
			f->links[cpu] = cpu_attach(program, (int)cpu);
		attached += f->links[cpu] != NULL;
	}
	return attached;
}

void fault_probe_detach(struct fault_probe *f)
{
	for (size_t cpu = 0; cpu < f->n_cpus; cpu++)
		bpf_link__destroy(f->links[cpu]);
	free(f->links);
	*f = (struct fault_probe){0};
}
