/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the clock parameters of VMs on the host. It does not need the guest's help and does not
 * disturb the guest. The sources are:
 *
 *  - KVM's tracepoints, which report changes (kvm_pvclock_update, kvm_write_tsc_offset,
 *    kvm_update_master_clock, kvm_track_tsc): by BPF, filtered in the kernel by process, or
 *    by perf;
 *  - a snapshot, for a VM that already runs: struct kvm_vcpu through a BPF iterator, debugfs,
 *    and the pvclock page that the guest reads, through process_vm_readv(). Without BPF the
 *    snapshot uses debugfs only, because only the iterator finds the page.
 *
 * Each value names its source (message_vm_clock.source) and holds one part (tsc, pvclock or
 * master). The reader compares the sources. A value is delivered only if it differs from the
 * previous value of the same source, vCPU and part; KVM writes unchanged values every 300 s. A
 * process may have only one VM, because the tracepoints identify a vCPU by its number only. Not
 * thread-safe.
 *
 * A protected guest (proto/vm_protection.h) hides its memory from the host: its page is not read.
 * Without the BPF iterator it is unknown whether a guest is protected, and no page is read.
 *
 * Trust: the guest can write to its page. kvm_write_tsc_offset reports the offset that KVM
 * requests. If the vCPU cannot have an offset, the request has no effect, and only struct kvm_vcpu
 * and debugfs hold the true offset. So take a snapshot after such a change. If the snapshot
 * confirms the written offset, its value gets the time of the write.
 */
#ifndef KVMCLOCK_KVM_CLOCK_H
#define KVMCLOCK_KVM_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/capture/capture.h"
#include "proto/message.h"

struct kvm_clock;

struct kvm_clock_sink {
	/* Receives one value, borrowed for the call. from_min and from_max are host TSC: the value
	 * came into force between them. */
	void (*value)(void *context, const struct message_vm_clock *value);
	void *context;
};

/* Opens the sources; follows no process yet. backend: with CAPTURE_BY_ANY, perf is used if BPF
 * fails. Returns 0 or -errno with one line in `why`: -EPERM (not root), -EOPNOTSUPP (no KVM
 * tracepoints: is the kvm module loaded?). */
int kvm_clock_open(enum backend_choice backend, struct kvm_clock **out, char *why,
		   size_t why_bytes);
/* Detaches and frees. NULL is allowed. */
void kvm_clock_close(struct kvm_clock *k);
/* Returns the names of the sources that this kernel does not have, "" if none. Valid until
 * kvm_clock_close(). */
const char *kvm_clock_left_out(const struct kvm_clock *k);

/* Reports the changes of this process from now on, with `vm` as the VM's number. Call it before
 * kvm_clock_snapshot(), so that a change in between is reported twice and not missed. Returns 0,
 * -E2BIG (too many processes) or other -errno. */
int kvm_clock_follow(struct kvm_clock *k, pid_t pid, uint32_t vm);

/*
 * Reads the current values of a followed process from the sources that do not trace. from_min is
 * the TSC at which the previous reading of the same source began (0 the first time), from_max the
 * TSC after this reading. A new TSC offset that kvm_write_tsc_offset reported since then has the
 * times of that write instead. Returns the number of vCPUs, or -errno with one line in `why`:
 * -ENOENT (not followed, or no KVM vCPUs), -ENOTUNIQ (several VMs in the process).
 */
long kvm_clock_snapshot(struct kvm_clock *k, pid_t pid, const struct kvm_clock_sink *sink,
			char *why, size_t why_bytes);
/* Returns how the VM of a followed process is protected from this host, as the last snapshot read
 * it from KVM. VM_PROTECTION_NONE also if that is unknown. */
enum vm_protection kvm_clock_protection(const struct kvm_clock *k, pid_t pid);
/*
 * Delivers the changes that the tracepoints reported since the last call. Call it every few tens of
 * ms, because the error bound of a stamp grows with the time between two calls. from_min and
 * from_max bracket the tracepoint, which the vCPU thread hits before it enters the guest again.
 * Returns the number of delivered changes or -errno. Take a snapshot when kvm_clock_dropped() has
 * grown.
 */
long kvm_clock_drain(struct kvm_clock *k, const struct kvm_clock_sink *sink);
/* Returns the number of changes that were lost. */
uint64_t kvm_clock_dropped(const struct kvm_clock *k);

#endif
