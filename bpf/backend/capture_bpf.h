/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of a capture by BPF programs. */
#ifndef BACKEND_CAPTURE_BPF_H
#define BACKEND_CAPTURE_BPF_H

#include "bpf/backend/capture_host.h"
#include "bpf/capture/capture_internal.h"
#include "bpf/backend/guest_stacks.h"
#include "bpf/backend/loader.h"
#include "bpf/backend/ring_reader.h"
#include "bpf/backend/sample_timers.h"

struct vs_guest_request;

struct capture_cpu {
	int map_fd; /* descriptor of the ring's map; -1: no ring, the CPU is not online yet */
	struct vs_ring *ring;
	struct ring_reader reader;
};

struct capture_bpf {
	struct capture base;
	struct capture_options options;
	struct loader_object programs;
	size_t ring_slots, ring_map_bytes;
	int ring_template_fd;
	int rings_fd;
	size_t n_cpus;
	struct capture_cpu *cpus; /* n_cpus elements */
	/* The programs' .bss, mapped. */
	void *globals;
	size_t globals_bytes;
	uint32_t *ringless; /* events lost because the CPU had no ring; VS_CPUS_MAX elements in
			       globals */
	uint32_t *emitting; /* 1: the programs emit events; in globals */
	uint64_t ringless_seen;
	/* Iterator that names the existing tasks; -1: all are named. */
	int tasks_fd;
	struct bpf_link *tasks_link;
	struct capture_host *host; /* NULL for a guest capture */
	struct user_probes *probes;
	struct looks *looks;
	struct sample_timers timers;
	struct guest_stacks *guest_stacks; /* NULL: stacks cannot be taken */
	/* The guest's filter, in globals; NULL for a host capture. */
	struct vs_guest_request *request;
	uint64_t exits_off_ns; /* CLOCK_MONOTONIC ns at which exits_off is set to classes_off */
};

extern const struct capture_backend capture_backend_bpf;

#endif
