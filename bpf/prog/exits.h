/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VM-exits of vCPUs at level summary. An exit is held back until the vCPU enters the guest again.
 * Then it is counted in the cell of its vCPU and reason, if it took less than exit_threshold_ns. It
 * becomes events if it took longer, or if the thread left its pCPU during the exit. For BPF
 * programs.
 */
#ifndef PROG_EXITS_H
#define PROG_EXITS_H

#include "bpf/prog/emit.h"
#include "bpf/prog/follow.h"

/* Slot -> the exit that the vCPU is in. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VS_FOLLOWED_MAX);
	__type(key, __u32);
	__type(value, struct vs_exit);
} exits SEC(".maps");

/* Counts of the exits that did not become events. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, VS_EXIT_CELLS_MAX_KERNEL);
	__type(key, struct vs_exit_key);
	__type(value, struct vs_exit_cell);
} exit_cells SEC(".maps");

/* The initial value of a cell, which is too large for a program's stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vs_exit_cell);
} empty_cell SEC(".maps");

const volatile __u64 exit_threshold_ns;
/* Number of exits that neither became events nor were counted, because no cell was free. */
__u64 exits_uncounted;

static __always_inline __s32 microseconds_since(__u64 then, __u64 now)
{
	return (__s32)((now - then) / 1000);
}

/* Emits the exit that `tid` is in, unless that was done before. */
static __always_inline void exit_emit(struct vs_exit *x, __s32 tid, __u64 now)
{
	if (!x->begin || x->emitted)
		return;
	x->emitted = 1;
	emit(VS_EVENT_KVM_EXIT, tid, microseconds_since(x->begin, now), x->reason, x->rip);
	if (x->vmm_begin)
		emit(VS_EVENT_KVM_USERSPACE_EXIT, tid, microseconds_since(x->vmm_begin, now),
		     x->vmm_reason, x->vmm_errno);
}

static __always_inline void exit_count(struct vs_exit *x, __s32 tid, __u32 vm, __u64 now)
{
	const struct vs_exit_key key = {.reason = x->reason, .tid = tid};
	struct vs_exit_cell *cell = bpf_map_lookup_elem(&exit_cells, &key);
	const __u64 handling = now - x->begin;
	const __u64 vmm = x->vmm_begin ? now - x->vmm_begin : 0;

	if (!cell) {
		const __u32 zero = 0;
		struct vs_exit_cell *empty = bpf_map_lookup_elem(&empty_cell, &zero);

		if (empty)
			bpf_map_update_elem(&exit_cells, &key, empty, BPF_NOEXIST);
		cell = bpf_map_lookup_elem(&exit_cells, &key);
		if (!cell) {
			__sync_fetch_and_add(&exits_uncounted, 1);
			return;
		}
	}
	cell->vm = vm;
	cell->kernel_ns += handling - vmm;
	cell->vmm_ns += vmm;
	if (handling > cell->max_ns)
		cell->max_ns = handling;
	cell->buckets[exit_bucket_of(handling) & (VS_EXIT_BUCKETS - 1)]++;
	cell->count++;
}

/* Ends the exit of the vCPU in `slot` at its VM-entry. Returns false if the entry becomes an event:
 * because its exit became one, or because no exit was seen. The caller then calls exit_summarise().
 */
static __always_inline bool exit_end(__u32 vm, __u32 slot, __s32 tid)
{
	struct vs_exit *x = bpf_map_lookup_elem(&exits, &slot);
	__u64 now;

	if (!x || !x->begin || x->emitted)
		return false;
	now = bpf_ktime_get_ns();
	if (now - x->begin >= exit_threshold_ns) {
		exit_emit(x, tid, now);
		return false;
	}
	exit_count(x, tid, vm, now);
	x->begin = 0;
	return true;
}

/* Handles a VM-exit, a return to the VMM, or a VM-entry for which exit_end() returned false. */
static __always_inline void exit_summarise(__u32 type, __u32 slot, __s32 tid,
					   const struct vs_event *e)
{
	struct vs_exit *x = bpf_map_lookup_elem(&exits, &slot);

	if (!x)
		return;
	if (type == VS_EVENT_KVM_EXIT) {
		*x = (struct vs_exit){
			.begin = bpf_ktime_get_ns(), .reason = e->arg0, .rip = ev_kvm_exit_rip(e)};
		return;
	}
	if (type == VS_EVENT_KVM_USERSPACE_EXIT) {
		x->vmm_begin = bpf_ktime_get_ns();
		x->vmm_reason = ev_kvm_userspace_exit_reason(e);
		x->vmm_errno = (__u64)ev_kvm_userspace_exit_error(e);
		if (x->begin && !x->emitted)
			return;
	} else {
		x->begin = 0;
	}
	emit((__u16)type, tid, 0, e->arg0, e->arg1);
}

#endif
