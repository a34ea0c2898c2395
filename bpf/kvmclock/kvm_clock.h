/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a VM's clock parameters come from, on its host, without its help and without disturbing it:
 *
 *  - KVM's tracepoints, the moment they change (kvm_pvclock_update, kvm_write_tsc_offset,
 *    kvm_update_master_clock, kvm_track_tsc), by BPF, filtered in the kernel by process, or by
 *    perf;
 *  - a snapshot for who attaches to a VM that runs already: struct kvm_vcpu through a BPF iterator,
 *    debugfs, and the page that the guest itself reads, through process_vm_readv(). Without BPF
 *    debugfs alone, for nobody else knows where that page is.
 *
 * Each source speaks for itself (message_vm_clock.source), of one part (tsc, pvclock, master) at a
 * time: comparing them is the reader's business. A value is handed out when it differs from what
 * the same source said of the same vCPU before; KVM repeats itself every 300 s. Not thread-safe.
 * One VM per process, as vCPUs are told apart by their number only.
 *
 * How far to trust them: the guest can write to its own page. kvm_write_tsc_offset shows what KVM
 * asks for, not what takes effect: where the vCPU cannot be given an offset, struct kvm_vcpu and
 * debugfs keep the true one. So take a snapshot after such a change; if it confirms the written
 * value, it is dated by the write.
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
	/* Borrowed for the call. from_min and from_max are host TSC. */
	void (*value)(void *context, const struct message_vm_clock *value);
	void *context;
};

/* Loads and attaches; follows nothing yet. way: CAPTURE_BY_ANY takes perf where BPF fails. 0 or
 * -errno with one line in `why`: -EPERM (not root), -EOPNOTSUPP (neither tracepoints nor iterator
 * nor debugfs: no KVM here). */
int kvm_clock_open(enum capture_way way, struct kvm_clock **out, char *why, size_t why_bytes);
void kvm_clock_close(struct kvm_clock *k);
/* Sources that this kernel does not have, "" if none; as long as `k`. */
const char *kvm_clock_left_out(const struct kvm_clock *k);

/* Reports changes in this process from now on, as `vm`. Follow first, then take the snapshot: a
 * change in between is seen twice rather than not at all. 0, -E2BIG or -errno. */
int kvm_clock_follow(struct kvm_clock *k, pid_t pid, uint32_t vm);
void kvm_clock_unfollow(struct kvm_clock *k, pid_t pid);

/*
 * What the passive sources show of a followed process now. from_min of a value is when this source
 * was last seen to say something else (0 the first time), from_max the end of reading. Returns the
 * number of vCPUs seen, or with one line in `why`: -ENOENT (not followed, or no vCPUs: not KVM),
 * -ENOTUNIQ (more than one VM in the process), -ESRCH, -errno.
 */
long kvm_clock_snapshot(struct kvm_clock *k, pid_t pid, const struct kvm_clock_sink *sink,
			char *why, size_t why_bytes);
/*
 * What the tracepoints saw since the last call; call it every few ten ms, because the bound on a
 * stamp grows with the time between two calls. from_min and from_max bracket the moment of the
 * tracepoint, in the thread that runs the vCPU: before it enters the guest again. Returns the
 * number of changes or -errno. After losses (kvm_clock_dropped grows) take a snapshot.
 */
long kvm_clock_drain(struct kvm_clock *k, const struct kvm_clock_sink *sink);
uint64_t kvm_clock_dropped(const struct kvm_clock *k);

#endif
