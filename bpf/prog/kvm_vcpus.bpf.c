// SPDX-License-Identifier: GPL-2.0-only
/* Lists the vCPUs that processes hold, and the threads that run them, from KVM's own data. */
#include "bpf/prog/kernel.h"
#include "bpf/prog/kvm_file.h"
#include "bpf/prog/kvm_vcpus_shared.h"

char LICENSE[] SEC("license") = "GPL";

/* The process that is asked about; 0: all. Set before each reading. */
__s32 only;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct upid {
	int nr;
};

/* numbers[0] is the id in the initial namespace. */
struct pid {
	struct upid numbers[1];
};

struct kvm {
	struct mm_struct *mm;
};

struct kvm_vcpu {
	struct kvm *kvm;
	int vcpu_id;
	struct pid *pid;
};

#pragma clang attribute pop

SEC("iter/task_file")
int vcpu_files(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct vs_vcpu_file out = {};
	struct kvm_vcpu *vcpu;

	if (!bpf_core_type_exists(struct kvm_vcpu) || !task || !file)
		return 0;
	out.tgid = BPF_CORE_READ(task, tgid);
	if ((only && out.tgid != only) || !is_vcpu_file(file))
		return 0;
	vcpu = BPF_CORE_READ(file, private_data);
	out.kvm = (__u64)BPF_CORE_READ(vcpu, kvm);
	out.vcpu = BPF_CORE_READ(vcpu, vcpu_id);
	if (BPF_CORE_READ(vcpu, pid))
		out.tid = BPF_CORE_READ(vcpu, pid, numbers[0].nr);
	out.owned = BPF_CORE_READ(vcpu, kvm, mm) == BPF_CORE_READ(task, mm);
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}
