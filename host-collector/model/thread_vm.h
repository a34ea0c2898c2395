/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the VM that a host thread works for: as a vCPU, or as another thread of a VMM. */
#ifndef MODEL_THREAD_VM_H
#define MODEL_THREAD_VM_H

#include "host-collector/model/model.h"

struct thread_vm {
	char name[VS_TEXT_MAX];
	bool vcpu_known;
	uint32_t vcpu;
	/* The name is only a claim of a process of user `uid`. */
	bool claimed;
	uint32_t uid;
};

/* Finds the VM of the thread that had this id at `t`: a VM of the recording, or another one that
 * the recording names. Returns false if there is none. */
bool model_thread_vm(const struct model *m, int32_t tid, struct host_ns t, struct thread_vm *out);
/* Writes "VM web2, vCPU 0", and for a claim whose it is. */
void thread_vm_text(const struct thread_vm *vm, char *out, size_t n);

#endif
