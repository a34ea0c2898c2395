/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes metrics in Prometheus' text format, version 0.0.4. Labels are names from fixed sets and
 * the VM's name, which the host gave to the VMM; a guest chooses none of them. A verdict has series
 * only if it occurred on the host. docs/metrics.md lists all metrics.
 */
#ifndef METRICS_METRICS_TEXT_H
#define METRICS_METRICS_TEXT_H

#include <stdio.h>

#include "host-collector/metrics/metrics.h"

/* The events of one side of a VM. */
struct metrics_source {
	bool host;
	const char *vm; /* name of the VM; "": the host side of several VMs */
	bool up;        /* the agent is connected */
	uint64_t delivered, lost;
	bool clock_known;
	double clock_error_s;
};

struct metrics_vm_pair {
	const char *vm;
	const struct metrics_pair *pair;
};

/* Counters of a host: sums over its VMs, also over those that are gone, so that they never fall.
 * [0]: guest, [1]: host. */
struct metrics_sum {
	struct metrics_vm vm;            /* vcpus: of the present VMs only */
	uint64_t vms, agents, agents_up; /* of the present VMs */
	uint64_t events[2], lost[2];
};

/* Properties of a host. The texts are not escaped; "": unknown. */
struct metrics_host {
	const char *kernel, *cpu_model, *microcode;
	size_t n_labels; /* of the operator; keys consist of letters, digits and '_' */
	struct {
		const char *key, *value;
	} labels[16];
};

struct metrics_page {
	const struct metrics_vm *vms;
	size_t n_vms;
	const struct metrics_source *sources;
	size_t n_sources;
	const struct metrics_vm_pair *pairs;
	size_t n_pairs;
	const struct metrics_sum *sum;   /* NULL: no sums of the host */
	const struct metrics_host *host; /* NULL: unknown */
	/* Cost of the collector itself; 0: unknown, left out. */
	double cpu_s;
	uint64_t resident_bytes;
};

/* Writes the page. Returns 0 or -EIO. */
int metrics_write(const struct metrics_page *page, FILE *to);

#endif
