/* SPDX-License-Identifier: GPL-2.0-only */
/* Attaches a BPF program to the major page faults of every CPU (a software event of perf). */
#ifndef BACKEND_FAULT_PROBE_H
#define BACKEND_FAULT_PROBE_H

#include <stddef.h>
#include <bpf/libbpf.h>

struct fault_probe {
	struct bpf_link **links; /* by CPU; NULL: the CPU is offline, or perf is not permitted */
	size_t n_cpus;
};

/* Attaches to every online CPU to which the program is not attached yet. Returns the number of CPUs
 * to which it is attached, or -ENOMEM. */
int fault_probe_attach(struct fault_probe *f, struct bpf_program *program, size_t n_cpus);
void fault_probe_detach(struct fault_probe *f);

#endif
