/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/thread_vm.h"

#include <stdio.h>

bool model_thread_vm(const struct model *m, int32_t tid, struct host_ns t, struct thread_vm *out)
{
	const struct task_origin *origin = model_task_origin(m, tid, t);
	uint32_t vm;

	*out = (struct thread_vm){0};
	/* The collector knows the threads of the recording's VMs. */
	if (!model_vcpu_of_thread(m, tid, &vm, &out->vcpu)) {
		out->vcpu_known = true;
		snprintf(out->name, sizeof(out->name), "%s", model_vm_name(m, vm));
	} else if (!model_vm_of_thread(m, tid, &vm)) {
		snprintf(out->name, sizeof(out->name), "%s", model_vm_name(m, vm));
	} else if (origin && origin->vm) {
		snprintf(out->name, sizeof(out->name), "%s", origin->vm);
		out->vcpu_known = origin->vcpu_known;
		out->vcpu = origin->vcpu;
		out->claimed = origin->claimed;
		out->uid = origin->uid;
	}
	return *out->name;
}

void thread_vm_text(const struct thread_vm *vm, char *out, size_t n)
{
	char vcpu[24] = "", by[64] = "";

	if (vm->vcpu_known)
		snprintf(vcpu, sizeof(vcpu), ", vCPU %u", vm->vcpu);
	if (vm->claimed)
		snprintf(by, sizeof(by), " (unverified name, a process of user %u)", vm->uid);
	snprintf(out, n, "VM %s%s%s", vm->name, vcpu, by);
}
