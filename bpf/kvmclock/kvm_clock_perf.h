/* SPDX-License-Identifier: GPL-2.0-only */
/* KVM's tracepoints on its clocks through perf, as kvm_clock.bpf.c has them through BPF, of all
 * processes and of the CPUs that were online at the beginning. They are rare, so the kernel does
 * not filter them. */
#ifndef KVMCLOCK_KVM_CLOCK_PERF_H
#define KVMCLOCK_KVM_CLOCK_PERF_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/prog/kvm_clock_shared.h"

struct kvm_clock_perf;

/* left_out: told the tracepoints that this kernel lacks. 0 or -errno with one line in `why`;
 * -EOPNOTSUPP: it has none. */
int kvm_clock_perf_open(struct kvm_clock_perf **out,
			void (*left_out)(void *context, const char *name), void *context, char *why,
			size_t why_bytes);
void kvm_clock_perf_close(struct kvm_clock_perf *p);
/* Hands over what happened since the last call, each CPU's in the order of time. */
void kvm_clock_perf_read(struct kvm_clock_perf *p,
			 void (*change)(void *context, const struct vs_kvm_clock_event *change),
			 void *context);
uint64_t kvm_clock_perf_dropped(const struct kvm_clock_perf *p);

#endif
