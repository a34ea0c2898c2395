/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the guest CPUs: their schedules, where each VM is a machine of its own, and their
 * interrupts and softirqs, which are slices of machine 0 below a group for each VM.
 */
#ifndef EXPORT_GUEST_ROWS_H
#define EXPORT_GUEST_ROWS_H

#include "host-collector/export/flows.h"
#include "host-collector/export/loss_rows.h"
#include "host-collector/export/sched_row.h"

struct guest_row {
	uint32_t vm;
	uint16_t cpu;
	struct sched_row *row;
	bool any;
	int32_t current;     /* pid of the current task, as shown */
	struct host_ns last; /* time of the newest event as received; set by the caller */
	uint64_t track;      /* track of its interrupts, 0: none yet */
	struct loss_row loss;
	size_t first, n, capacity;
	struct guest_interrupt *interrupts; /* ring of interrupts that may still get an arrow */
};

struct guest_rows {
	struct trace_file *file;
	struct tasks *tasks;
	struct boottime *boottime;
	struct flows *flows;
	struct loss_rows *losses;
	const struct model *model;
	const struct pipeline *const *pipeline;
	int error;
	uint32_t irqs[256], softirqs[16], vectors[16];
	size_t n_vms, newest; /* newest: index of the VM that was used last */
	struct guest_rows_vm {
		uint32_t vm;
		uint64_t group; /* parent track of its CPUs' tracks */
		struct guest_row *cpus[VS_CPUS_MAX];
	} * vms[MODEL_VMS_MAX];
};

/* Frees the rows. Does not write. To begin, set the borrowed members and clear all others. */
void guest_rows_fini(struct guest_rows *x);
/* Writes the host's system information. */
void guest_rows_host(struct guest_rows *x);
/* The part of guest_rows_get() that also finds rows of other VMs than the last. Call that instead.
 */
struct guest_row *guest_rows_find(struct guest_rows *x, uint32_t vm, uint16_t cpu);
/* Returns the row of a guest CPU, NULL on ENOMEM. Borrowed; valid until guest_rows_fini(). */
static inline struct guest_row *guest_rows_get(struct guest_rows *x, uint32_t vm, uint16_t cpu)
{
	const struct guest_rows_vm *last = x->n_vms ? x->vms[x->newest] : NULL;

	return last && last->vm == vm && last->cpus[cpu] ? last->cpus[cpu]
							 : guest_rows_find(x, vm, cpu);
}
/* Writes a guest event. */
void guest_row_event(struct guest_rows *x, struct guest_row *r, const struct vs_event *e,
		     struct host_ns at);
void guest_row_lost(struct guest_rows *x, struct guest_row *r, uint64_t from, uint64_t n);
void guest_row_interrupt(struct guest_rows *x, const struct guest_interrupt *interrupt);
void guest_rows_finish(struct guest_rows *x);

#endif
