/* SPDX-License-Identifier: GPL-2.0-only */
/* Definitions that the files of the VM clock share: vm_clock.c has the TSC and the conversions,
 * vm_clock_lines.c the kvmclock lines. */
#ifndef TIMELINE_VM_CLOCK_INTERNAL_H
#define TIMELINE_VM_CLOCK_INTERNAL_H

#include "host-collector/timeline/vm_clock.h"

enum {
	EPOCHS_MAX = 64, /* new ones replace the oldest, because a guest can cause new ones */
	LINES_MAX = 1024,
	PAGES_MAX = 64,
	SOURCES = VM_CLOCK_SOURCE_LAST + 1,
};

/* The last value that one source gave for a vCPU's TSC. */
struct vm_clock_said {
	bool known, scaling_known;
	struct tsc_scaling tsc;
	uint64_t from_min, from_max;
};

struct vm_clock_known_vcpu {
	uint32_t id;
	struct vm_clock_said said[SOURCES];
	bool line_known;
	struct pvclock line; /* the newest */
};

struct vm_clock_state {
	bool known;
	struct tsc_scaling tsc;
	uint64_t apart;
	uint64_t from_min, from_max;
};

struct vm_clock {
	struct vm_clock_known_vcpu *vcpus;
	size_t n_vcpus, n_epochs, n_lines, n_pages;
	uint32_t protection;
	struct vm_clock_epoch epochs[EPOCHS_MAX];
	struct vm_clock_line lines[LINES_MAX];
	struct pvclock pages[PAGES_MAX];
};

/* Returns the vCPU, or NULL if it is unknown. */
struct vm_clock_known_vcpu *vm_clock_vcpu_find(const struct vm_clock *c, uint32_t id);
/* Returns the vCPU's TSC if all sources that gave a value agree, and one of them read the
 * parameters in force. */
struct vm_clock_state vm_clock_vcpu_state(const struct vm_clock_known_vcpu *v);
/* Adds a kvmclock line. */
void vm_clock_line_learn(struct vm_clock *c, const struct message_vm_clock *m);
/* Compares the newest lines once the TSCs that they need are known: after a change of a TSC, the
 * new line arrives before the values that show which TSC is in force. */
void vm_clock_lines_settle(struct vm_clock *c);
/* Sets *ticks to the largest difference between the vCPUs' kvmclocks from one host time to another,
 * in guest ticks. The lines run at one rate, so this changes only when a line does. Before the
 * first lines no change is assumed. Returns false and leaves *ticks alone if it is unknown. */
bool vm_clock_lines_apart(const struct vm_clock *c, struct host_tsc from, struct host_tsc to,
			  uint64_t *ticks);

#endif
