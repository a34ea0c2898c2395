/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes a vCPU's spans as slices on the track of its thread: `guest`, and `exit: REASON` from
 * VM-exit to entry, which contains the states of the vCPU in that time (kvm, vmm, halted, runnable,
 * ...). If the exit is unknown, the states have no slice around them.
 *
 * A proof is the time of a guest event: the vCPU was in the guest at that time, even if the host's
 * events show an exit or nothing.
 */
#ifndef EXPORT_VCPU_SLICES_H
#define EXPORT_VCPU_SLICES_H

#include "host-collector/export/boottime.h"
#include "host-collector/export/tasks.h"
#include "host-collector/model/model.h"

enum { EXIT_NAMES_CACHED = 512, VCPU_SPANS_KEPT = 256 };

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
	uint64_t exit;   /* serial of the exit whose slice is open, 0: none */
	uint64_t end;    /* end of the last slice */
	uint64_t proved; /* last proof that was used: it may end one span and begin the next */
	/* Proofs, ascending (ring). */
	size_t first, n, capacity;
	uint64_t *proofs;
	/* Spans that are not written yet, because proofs inside them may follow. */
	size_t n_kept;
	struct vcpu_span *kept; /* of VCPU_SPANS_KEPT, or NULL if none was held back yet */
};

/* Frees what was held back. Does not write. */
void vcpu_track_fini(struct vcpu_track *v);
/* Adds a proof. An exit that would cover `t` is split into slices before and after it. Returns 0
 * or -ENOMEM. */
int vcpu_track_proof(struct vcpu_track *v, uint64_t t);
/* Adds a span; spans come in order of time. proofs_due: proofs before its end may follow. Such
 * spans are held back until one without proofs_due comes, but at most VCPU_SPANS_KEPT. Returns 0
 * or -ENOMEM. */
int vcpu_slices_span(struct vcpu_slices *x, struct vcpu_track *v, const struct vcpu_span *span,
		     bool proofs_due);
/* Writes what is held back. No proofs follow. */
void vcpu_slices_finish(struct vcpu_slices *x, struct vcpu_track *v);

#endif
