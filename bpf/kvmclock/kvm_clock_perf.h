/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads KVM's clock tracepoints through perf. It reads the same tracepoints as kvm_clock.bpf.c, of
 * all processes, on the CPUs that were online when it was opened. The events are rare, so the
 * kernel does not filter them. Not thread-safe. */
#ifndef KVMCLOCK_KVM_CLOCK_PERF_H
#define KVMCLOCK_KVM_CLOCK_PERF_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/prog/kvm_clock_shared.h"

struct kvm_clock_perf;

/* Opens the tracepoints. left_out: receives the name of each one that this kernel lacks. Returns 0
 * or -errno with one line in `why`; -EOPNOTSUPP: the kernel has none of them. */
int kvm_clock_perf_open(struct kvm_clock_perf **out,
			void (*left_out)(void *context, const char *name), void *context, char *why,
			size_t why_bytes);
void kvm_clock_perf_close(struct kvm_clock_perf *p);
/* Delivers the changes since the last call, in the order of time for each CPU. */
void kvm_clock_perf_read(struct kvm_clock_perf *p,
			 void (*change)(void *context, const struct vs_kvm_clock_event *change),
			 void *context);
/* Returns the number of events that the kernel lost. */
uint64_t kvm_clock_perf_dropped(const struct kvm_clock_perf *p);

#endif
