/* SPDX-License-Identifier: GPL-2.0-only */
/* One VM inside the model: its vCPU threads, its guest CPUs, and which vCPU runs which guest CPU.
 */
#ifndef MODEL_VM_H
#define MODEL_VM_H

#include "host-collector/model/guest_cpu.h"
#include "host-collector/model/names.h"
#include "host-collector/model/presence.h"
#include "host-collector/model/stacks.h"
#include "host-collector/model/vcpu.h"

struct vm;

struct vm_vcpu {
	struct vcpu v; /* must be first: a struct vcpu * is cast to struct vm_vcpu * */
	struct vm *vm;
	bool apic_id_known;
	uint32_t apic_id;
	int guest_cpu;     /* -1: none */
	bool join_certain; /* joined by APIC id, or the only vCPU and guest CPU */
	struct presence presence;
};

struct vm {
	uint32_t id;
	char name[VS_TEXT_MAX];
	int32_t tgid;
	bool kvm;                 /* runs under KVM, according to VmInfo */
	uint32_t tick_hz;         /* tick rate of the guest's kernel; 0: unknown */
	uint32_t watchdog_s;      /* its soft lockup threshold; 0: unknown */
	uint32_t boot, next_boot; /* boot of the guest's kernel, now and from its next event on */
	struct model_data data;
	struct presence_count presence;
	struct vcpu_signal signal;
	bool paused;                           /* its VMM has paused it */
	struct host_ns pause_begin, pause_end; /* the latest pause */
	bool migrates, pause_migrates; /* it migrates now; it did when the latest pause began */
	int32_t monitor_waker; /* the last task that woke the thread that reads the monitor */
	struct host_ns monitor_woken;
	int32_t pause_asker; /* who requested the latest pause; 0: unknown */
	struct quota_waits quota_waits;
	struct host_ns quota_until; /* end of the reading that quota_waits is about; 0: none */
	uint32_t quota_cgroup;
	struct names names;
	struct stacks *stacks; /* the guest's stacks, by guest_stack_key(); NULL: none */
	size_t n_vcpus;
	struct vm_vcpu **vcpus; /* sorted by index */
	size_t n_hello;
	struct message_cpu *hello; /* sorted by CPU */
	struct guest_cpu *cpus[VS_CPUS_MAX];
	int vcpu_of_cpu[VS_CPUS_MAX];        /* positions in vcpus; -1: none */
	uint32_t number_of_cpu[VS_CPUS_MAX]; /* the numbers of these vCPUs */
};

/* Returns the key of a guest's stack. pid 0: a stack of the guest's kernel. */
static inline uint64_t guest_stack_key(int32_t pid, uint32_t id)
{
	return (uint64_t)(uint32_t)pid << 32 | id;
}

struct vm *vm_new(const struct message_vm_info *info); /* without vCPUs; NULL on ENOMEM */
void vm_free(struct vm *vm);
/* Sets the guest's CPUs. Returns 0 or -ENOMEM. */
int vm_guest_cpus(struct vm *vm, const struct message_cpu *cpus, size_t n);
/* Adds a guest CPU that was hot-plugged or taken online after the agent sent its list of CPUs.
 * Without such a list it does nothing. Returns 0 or -ENOMEM. */
int vm_guest_cpu_add(struct vm *vm, uint32_t cpu);
/* Determines which vCPU runs which guest CPU. */
void vm_join(struct vm *vm);
struct vm_vcpu *vm_vcpu_find(const struct vm *vm, uint32_t vcpu);
/* Adds a vCPU, sorted by index, and takes ownership of it. Returns 0 or -ENOMEM. */
int vm_vcpu_add(struct vm *vm, struct vm_vcpu *added);
void vm_vcpu_remove(struct vm *vm, size_t position);

#endif
