/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A vCPU's spans as slices on the track of its thread: `guest`, and `exit: REASON` from VM-exit to
 * entry with what the vCPU did meanwhile (kvm, vmm, halted, runnable, ...) inside. Where the exit
 * is not known, the states stand by themselves.
 */
#ifndef EXPORT_VCPU_SLICES_H
#define EXPORT_VCPU_SLICES_H

#include "host-collector/export/boottime.h"
#include "host-collector/export/tasks.h"
#include "host-collector/model/model.h"

enum { EXIT_NAMES_CACHED = 512, VCPU_SPANS_KEPT = 256 };

/* What all vCPUs share. */
struct vcpu_slices {
	struct trace_file *file;
	struct tasks *tasks;
	struct boottime *boottime;
	uint32_t states[VCPU_STATE_COUNT];
	uint32_t exits[3][EXIT_NAMES_CACHED];
};

struct vcpu_track {
	uint64_t track;
	uint64_t exit;   /* serial of the one whose slice is open, 0 none */
	uint64_t end;    /* of the last piece written */
	uint64_t proved; /* the last proof that was taken: it may end one span and begin the next */
	/* When the guest did something although the host's events speak of an exit, or tell
	 * nothing: ring, ascending. */
	size_t first, n, capacity;
	uint64_t *proofs;
	/* Not written yet: proofs that fall into them may follow. */
	size_t n_kept;
	struct vcpu_span *kept; /* VCPU_SPANS_KEPT, or NULL: never any */
};

/* Frees what was kept back; nothing is written. */
void vcpu_track_fini(struct vcpu_track *v);
/* The vCPU was in the guest at `t`: an exit that would cover it is shown before and after. 0 or
 * -ENOMEM. */
int vcpu_track_proof(struct vcpu_track *v, uint64_t t);
/* In order of time. proofs_due: some of a time before its end may follow; it is kept back until a
 * span for which none are due, but at most VCPU_SPANS_KEPT are. 0 or -ENOMEM. */
int vcpu_slices_span(struct vcpu_slices *x, struct vcpu_track *v, const struct vcpu_span *span,
		     bool proofs_due);
/* No proofs follow. */
void vcpu_slices_finish(struct vcpu_slices *x, struct vcpu_track *v);

#endif
