// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads the clock parameters of followed VMs: their changes from tracepoints, their current values
 * from an iterator. The programs use raw tracepoints, because their few arguments have not changed
 * since Linux 3.10, and because raw tracepoints load whether or not KVM is a module and whether or
 * not the verifier accepts typed pointers.
 *
 * All tracepoints fire in a thread of the process that owns the VM: in a vCPU thread before a
 * VM-entry, or in the thread that called the ioctl.
 */
#include "bpf/prog/kernel.h"
#include "bpf/prog/kvm_clock_shared.h"
#include "bpf/prog/kvm_file.h"

char LICENSE[] SEC("license") = "GPL";

/* Process -> the caller's number of its VM. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __s32);
	__type(value, __u32);
	__uint(max_entries, 1024);
} followed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} changes SEC(".maps");

__u64 dropped;

/* True if the processor has AMD's SVM, so that a struct kvm is part of a struct kvm_svm: a kernel
 * may know that struct on other processors, too. Set before the programs are loaded. */
const volatile bool has_svm;

static __always_inline struct vs_kvm_clock_event *change_begin(__u64 type, __u32 vcpu)
{
	__s32 tgid = (__s32)(bpf_get_current_pid_tgid() >> 32);
	struct vs_kvm_clock_event *e;

	if (!bpf_map_lookup_elem(&followed, &tgid))
		return NULL;
	e = bpf_ringbuf_reserve(&changes, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&dropped, 1);
		return NULL;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->time = bpf_ktime_get_ns();
	e->tgid = tgid;
	e->vcpu = vcpu;
	e->type = type;
	return e;
}

static __always_inline int change_commit(struct vs_kvm_clock_event *e)
{
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("raw_tp/kvm_pvclock_update")
int BPF_PROG(pvclock_update, unsigned int vcpu, const void *pvclock)
{
	struct vs_kvm_clock_event *e = change_begin(VS_KVM_CLOCK_PVCLOCK, vcpu);

	if (!e)
		return 0;
	bpf_probe_read_kernel(&e->pvclock, sizeof(e->pvclock), pvclock);
	return change_commit(e);
}

SEC("raw_tp/kvm_write_tsc_offset")
int BPF_PROG(write_tsc_offset, unsigned int vcpu, __u64 previous, __u64 next)
{
	struct vs_kvm_clock_event *e;

	if (previous == next)
		return 0;
	e = change_begin(VS_KVM_CLOCK_OFFSET, vcpu);
	if (!e)
		return 0;
	e->value = next;
	return change_commit(e);
}

SEC("raw_tp/kvm_update_master_clock")
int BPF_PROG(update_master_clock, bool used, unsigned int host_clock, bool matched)
{
	struct vs_kvm_clock_event *e = change_begin(VS_KVM_CLOCK_MASTER, 0);

	if (!e)
		return 0;
	e->value = (used ? 1 : 0) | (matched ? 2 : 0);
	return change_commit(e);
}

SEC("raw_tp/kvm_track_tsc")
int BPF_PROG(track_tsc, unsigned int vcpu, unsigned int n_matched, unsigned int online, bool used,
	     unsigned int host_clock)
{
	struct vs_kvm_clock_event *e = change_begin(VS_KVM_CLOCK_MASTER, 0);

	if (!e)
		return 0;
	/* The vCPU that all others are compared with is not counted. */
	e->value = (used ? 1 : 0) | (n_matched + 1 == online ? 2 : 0);
	return change_commit(e);
}

/* ---- what there is already, without disturbing it ---- */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Before 5.17 pv_time was another type of cache, without uhva. */
struct gfn_to_pfn_cache {
	__u64 gpa;
	unsigned long uhva;
};

struct pvclock_vcpu_time_info {
	__u32 version;
};

struct kvm_vcpu_arch {
	struct gfn_to_pfn_cache pv_time;
	__u64 l1_tsc_offset;
	__u64 l1_tsc_scaling_ratio;
	bool guest_state_protected; /* since 5.11 */
};

/* Until 6.14 the vCPU kept what it last published. */
struct kvm_vcpu_arch___with_hv_clock {
	struct pvclock_vcpu_time_info hv_clock;
};

/* Before Linux 5.14, nested scaling has no member of its own. */
struct kvm_vcpu_arch___before_5_14 {
	__u64 tsc_scaling_ratio;
};

struct kvm_arch {
	__u32 nr_vcpus_matched_tsc;
	bool use_master_clock;
	/* Since 6.8, where it was an unsigned long; since 6.10 a u8. Its low byte is the type in
	 * both. */
	__u8 vm_type;
};

struct kvm {
	struct atomic_int online_vcpus;
	struct kvm_arch arch;
};

struct kvm_vcpu {
	struct kvm *kvm;
	int vcpu_id;
	struct kvm_vcpu_arch arch;
};

/* Of the module kvm_amd. es_active: since 5.11. */
struct kvm_sev_info {
	bool active;
	bool es_active;
};

/* Begins with its struct kvm. */
struct kvm_svm {
	struct kvm_sev_info sev_info;
};

#pragma clang attribute pop

static __always_inline void vcpu_read(struct kvm_vcpu *vcpu, struct vs_kvm_vcpu *out)
{
	struct kvm_vcpu_arch *arch = __builtin_preserve_access_index(&vcpu->arch);
	struct kvm_vcpu_arch___with_hv_clock *with_hv_clock = (void *)arch;
	struct kvm_vcpu_arch___before_5_14 *before_5_14 = (void *)arch;

	out->kvm = (__u64)BPF_CORE_READ(vcpu, kvm);
	out->vcpu = BPF_CORE_READ(vcpu, vcpu_id);
	out->offset = BPF_CORE_READ(vcpu, arch.l1_tsc_offset);
	if (bpf_core_field_exists(arch->l1_tsc_scaling_ratio))
		out->ratio = BPF_CORE_READ(arch, l1_tsc_scaling_ratio);
	else if (bpf_core_field_exists(before_5_14->tsc_scaling_ratio))
		out->ratio = BPF_CORE_READ(before_5_14, tsc_scaling_ratio);
	if (bpf_core_field_exists(arch->pv_time.uhva)) {
		out->page_uhva = BPF_CORE_READ(arch, pv_time.uhva);
		out->page_gpa = BPF_CORE_READ(arch, pv_time.gpa);
	}
	if (bpf_core_field_exists(with_hv_clock->hv_clock))
		bpf_probe_read_kernel(&out->pvclock, sizeof(out->pvclock),
				      __builtin_preserve_access_index(&with_hv_clock->hv_clock));
	out->master_used = BPF_CORE_READ(vcpu, kvm, arch.use_master_clock);
	out->offsets_matched = BPF_CORE_READ(vcpu, kvm, arch.nr_vcpus_matched_tsc) + 1 ==
			       BPF_CORE_READ(vcpu, kvm, online_vcpus.counter);
}

/* A VMM that uses KVM_SEV_INIT instead of KVM_SEV_INIT2 gets a VM whose vm_type is 0 on every
 * kernel.
 */
static __always_inline void protection_read(struct kvm_vcpu *vcpu, struct vs_kvm_vcpu *out)
{
	struct kvm *kvm = BPF_CORE_READ(vcpu, kvm);
	struct kvm_svm *svm = (void *)kvm;

	if (bpf_core_field_exists(kvm->arch.vm_type))
		out->vm_type = BPF_CORE_READ(kvm, arch.vm_type);
	if (has_svm && bpf_core_field_exists(svm->sev_info.active) &&
	    BPF_CORE_READ(svm, sev_info.active))
		out->protected_by |= VS_KVM_SEV;
	if (has_svm && bpf_core_field_exists(svm->sev_info.es_active) &&
	    BPF_CORE_READ(svm, sev_info.es_active))
		out->protected_by |= VS_KVM_SEV_ES;
	if (bpf_core_field_exists(vcpu->arch.guest_state_protected) &&
	    BPF_CORE_READ(vcpu, arch.guest_state_protected))
		out->protected_by |= VS_KVM_STATE_HIDDEN;
}

SEC("iter/task_file")
int vcpu_files(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct vs_kvm_vcpu out = {};
	struct kvm_vcpu *vcpu;

	if (!bpf_core_type_exists(struct kvm_vcpu) || !task || !file)
		return 0;
	out.tgid = BPF_CORE_READ(task, tgid);
	if (!bpf_map_lookup_elem(&followed, &out.tgid) || !is_vcpu_file(file))
		return 0;
	vcpu = BPF_CORE_READ(file, private_data);
	vcpu_read(vcpu, &out);
	protection_read(vcpu, &out);
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}
