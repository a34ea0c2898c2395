/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Metrics in Prometheus' text format, version 0.0.4. Labels are names of fixed sets and the VM's
 * own name, which its VMM was given by the host; nothing that a guest chose. docs/metrics.md has
 * them all.
 */
#ifndef METRICS_METRICS_TEXT_H
#define METRICS_METRICS_TEXT_H

#include <stdio.h>

#include "host-collector/metrics/metrics.h"

/* What came of one side of a VM. */
struct metrics_source {
	bool host;
	const char *vm; /* "": the host's side of several VMs */
	bool up;        /* the agent is heard */
	uint64_t delivered, lost;
	bool clock_known;
	double clock_error_s;
};

struct metrics_page {
	const struct metrics_vm *vms;
	size_t n_vms;
	const struct metrics_source *sources;
	size_t n_sources;
	/* The collector itself; 0: not known, left out. */
	double cpu_s;
	uint64_t resident_bytes;
};

/* 0 or -EIO. */
int metrics_write(const struct metrics_page *page, FILE *to);

#endif
