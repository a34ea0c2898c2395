/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guests' CPUs: their schedules, each VM a machine of its own, and their interrupts and
 * softirqs as slices of machine 0, below a group for each VM.
 */
#ifndef EXPORT_GUEST_ROWS_H
#define EXPORT_GUEST_ROWS_H

#include "host-collector/export/flows.h"
#include "host-collector/export/loss_rows.h"
#include "host-collector/export/placement.h"
#include "host-collector/export/sched_row.h"

struct guest_row {
	uint32_t vm;
	uint16_t cpu;
	struct sched_row *row;
	bool any;
	int32_t current;     /* as shown */
	struct host_ns last; /* the newest event, as it came; kept by who hands them over */
	uint64_t track;      /* of its interrupts, 0: none yet */
	struct loss_row loss;
	size_t first, n, capacity;
	struct guest_interrupt *interrupts; /* ring: those that may still get an arrow */
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
	struct lru moved; /* stamps of interrupts that were put elsewhere (placement.h) */
	uint64_t *moved_to;
	uint32_t irqs[256], softirqs[16], vectors[16];
	size_t n_vms, newest; /* newest: asked for last */
	struct guest_rows_vm {
		uint32_t vm;
		uint64_t group; /* track above its CPUs' */
		struct guest_row *cpus[VS_CPUS_MAX];
	} * vms[MODEL_VMS_MAX];
};

int guest_rows_init(struct guest_rows *x); /* after its borrowed members. 0 or -ENOMEM */
void guest_rows_fini(struct guest_rows *x);
/* Says what the host is. */
void guest_rows_host(struct guest_rows *x);
/* NULL on ENOMEM. Borrowed; it stays. */
struct guest_row *guest_rows_get(struct guest_rows *x, uint32_t vm, uint16_t cpu);
/* An event that happened in the guest, at its place. */
void guest_row_event(struct guest_rows *x, struct guest_row *r, const struct placement_event *e,
		     uint64_t t);
void guest_row_lost(struct guest_row *r, uint64_t from, uint64_t n);
void guest_row_interrupt(struct guest_rows *x, const struct guest_interrupt *interrupt);
void guest_rows_finish(struct guest_rows *x);

#endif
