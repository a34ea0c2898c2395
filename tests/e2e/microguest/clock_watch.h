/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the sources of bpf/kvmclock/kvm_clock.h say of the VMM's guest, and what a map made of that predicts
 * of its kvmclock. Every function fails the test that runs if something is not as it must be.
 *
 * How the prediction is made: the guest hands out (guest TSC, kvmclock). The TSC offset turns the
 * first into the host TSC of the reading, which must lie within what the VMM saw around its entry
 * into the guest; from that host TSC alone the vCPU's map computes kvmclock. The difference to what
 * the guest read is the residual.
 */
#ifndef MICROGUEST_CLOCK_WATCH_H
#define MICROGUEST_CLOCK_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/kvmclock/kvm_clock.h"
#include "clock/map.h"
#include "vmm.h"

enum {
	PENDING_MAX = 1000,
	VM_NUMBER = 7,
	SOURCES = VM_CLOCK_SOURCE_LAST + 1,
};

enum part { TSC, LINE, MASTER, PARTS };

/* A collector: sources, what each of them said, and a map per vCPU. */
struct watch {
	struct kvm_clock *sources;
	pid_t pid;
	enum vm_clock_source line_source; /* which source's pvclock parameters make the maps */
	struct clock_map *maps[VMM_VCPUS];
	struct clock_params params[VMM_VCPUS];
	bool offset_known[VMM_VCPUS];
	size_t n_pending;
	struct message_vm_clock pending[PENDING_MAX];
	struct message_vm_clock last[VMM_VCPUS][SOURCES][PARTS];
	size_t n_values[VMM_VCPUS][SOURCES][PARTS];
};

/* Follows the VM of process `pid`. passive: the maps are made of what the guest's page says, else
 * of what KVM's tracepoints tell. */
void watch_start(struct watch *w, bool passive, pid_t pid);
void watch_stop(struct watch *w);
/* A kvm_clock_sink's: keeps what a source said of a `struct watch`. */
void watch_value(void *context, const struct message_vm_clock *m);
/* What was said since the last time goes into the maps, oldest first. */
void watch_maps_update(struct watch *w);
/* Asks the passive sources; reads the tracepoints' ring, nothing of which may be lost. Both update
 * the maps. */
void watch_snapshot(struct watch *w);
void watch_drain(struct watch *w);
/* The guest's kvmclock less what `w` predicts, ns. */
int64_t watch_residual(const struct watch *w, uint32_t vcpu, const struct vmm_pair *pair);

#endif
