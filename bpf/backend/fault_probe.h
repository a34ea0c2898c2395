/* SPDX-License-Identifier: GPL-2.0-only */
/* A BPF program at every CPU's count of major page faults (perf's software event). */
#ifndef BACKEND_FAULT_PROBE_H
#define BACKEND_FAULT_PROBE_H

#include <stddef.h>
#include <bpf/libbpf.h>

struct fault_probe {
	struct bpf_link **links; /* by CPU; NULL: that CPU is offline, or perf is not permitted */
	size_t n_cpus;
};

/* Attaches to the CPUs that it is not attached to yet and that are online. Returns how many CPUs it
 * is attached to, or -ENOMEM. */
int fault_probe_attach(struct fault_probe *f, struct bpf_program *program, size_t n_cpus);
void fault_probe_detach(struct fault_probe *f);

#endif
