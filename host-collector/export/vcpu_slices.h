/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes a vCPU's spans as slices on the track of its thread: `guest`, and `exit: REASON` from
 * VM-exit to entry, which contains the states of the vCPU in that time (kvm, vmm, halted, runnable,
 * ...). If the exit is unknown, the states have no slice around them.
 */
#ifndef EXPORT_VCPU_SLICES_H
#define EXPORT_VCPU_SLICES_H

#include "host-collector/export/boottime.h"
#include "host-collector/export/tasks.h"
#include "host-collector/model/model.h"

enum { EXIT_NAMES_CACHED = 512 };

/* Names and files that all vCPUs share. */
struct vcpu_slices {
	struct trace_file *file;
	struct tasks *tasks;
	struct boottime *boottime;
	uint32_t states[VCPU_STATE_COUNT];
	uint32_t exits[3][EXIT_NAMES_CACHED];
};

struct vcpu_track {
	uint64_t track;
	uint64_t exit;        /* serial of the exit whose slice is open, 0: none */
	uint64_t end;         /* end of the last slice */
	struct host_ns ended; /* the same, on the timeline */
};

/* Writes a span; spans come in order of time. */
void vcpu_slices_span(struct vcpu_slices *x, struct vcpu_track *v, const struct vcpu_span *span);
/* Ends the slice that is open. No span follows. */
void vcpu_slices_finish(struct vcpu_slices *x, struct vcpu_track *v);

#endif
