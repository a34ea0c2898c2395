/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Collects the data of the sources of bpf/kvmclock/kvm_clock.h about the VMM's guest. Gives them to
 * vm_clock, the engine that converts recordings. Compares the kvmclock of that engine with the
 * guest's own readings. Every function fails the running test if a check fails.
 *
 * A reading is a pair (guest TSC, kvmclock) from the guest, and the host's TSC before and after
 * the VMM entered the guest for it. That is a round trip, which confirms the TSC parameters. Where
 * they are confirmed, the engine converts the guest TSC to host TSC, which must lie within the
 * VMM's two readings. For this host TSC the engine computes kvmclock. The difference to the
 * guest's own value is the residual.
 *
 * The engine refuses an answer where a change may just have come into force. A refusal anywhere
 * else fails the test.
 */
#ifndef MICROGUEST_CLOCK_WATCH_H
#define MICROGUEST_CLOCK_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/kvmclock/kvm_clock.h"
#include "host-collector/timeline/vm_clock.h"
#include "vmm.h"

enum {
	VM_NUMBER = 7,
	SOURCES = VM_CLOCK_SOURCE_LAST + 1,
};

enum part { TSC, LINE, MASTER, PARTS };

/* A collector: sources, the newest value of each, and the engine that learns the values. */
struct watch {
	struct kvm_clock *sources;
	pid_t pid;
	/* The one source whose kvmclock lines the engine learns; 0: all sources. */
	enum vm_clock_source line_source;
	struct vm_clock *clock;
	struct message_vm_clock last[VMM_VCPUS][SOURCES][PARTS];
	size_t n_values[VMM_VCPUS][SOURCES][PARTS];
};

/* Follows the VM of process `pid`. The engine learns kvmclock lines from the guest's page if
 * `passive`, otherwise from KVM's tracepoints. */
void watch_start(struct watch *w, bool passive, pid_t pid);
void watch_stop(struct watch *w);
/* Callback of kvm_clock_sink: takes one value. context is a `struct watch`. */
void watch_value(void *context, const struct message_vm_clock *m);
/* Reads the passive sources. */
void watch_snapshot(struct watch *w);
/* Reads the tracepoints' ring, which must have lost nothing. */
void watch_drain(struct watch *w);
/* Gives a reading to the engine as a round trip. */
void watch_observe(struct watch *w, const struct vmm_pair *pair);
/* Sets *residual_ns to the guest's kvmclock minus the engine's. Returns false if the engine gives
 * no answer. Observe the readings of the same parameters first. */
bool watch_residual(const struct watch *w, uint32_t vcpu, const struct vmm_pair *pair,
		    int64_t *residual_ns);

#endif
