/* SPDX-License-Identifier: GPL-2.0-only */
/* One VM inside the model: its vCPU threads, its guest CPUs, and which runs which. */
#ifndef MODEL_VM_H
#define MODEL_VM_H

#include "host-collector/model/guest_cpu.h"
#include "host-collector/model/names.h"
#include "host-collector/model/presence.h"
#include "host-collector/model/stacks.h"
#include "host-collector/model/vcpu.h"

struct vm;

struct vm_vcpu {
	struct vcpu v; /* first: a struct vcpu * of ours is a struct vm_vcpu * */
	struct vm *vm;
	bool apic_id_known;
	uint32_t apic_id;
	int guest_cpu;     /* -1: none */
	bool join_certain; /* by APIC id, or there is only one */
	struct presence presence;
};

struct vm {
	uint32_t id;
	char name[VS_TEXT_MAX];
	int32_t tgid;
	bool kvm;                 /* runs under KVM, by VmInfo */
	uint32_t tick_hz;         /* of the guest's kernel, 0 unknown */
	uint32_t watchdog_s;      /* the same */
	uint32_t boot, next_boot; /* of the guest's kernel; of its next event */
	struct model_data data;
	struct presence_count presence;
	struct vcpu_signal signal;
	bool paused;                           /* by its VMM, since... */
	struct host_ns pause_begin, pause_end; /* the latest pause */
	bool migrates, pause_migrates;         /* now; when that pause began */
	int32_t monitor_waker; /* who woke the thread that reads its monitor's socket last */
	struct host_ns monitor_woken;
	int32_t pause_asker; /* of the latest pause, 0 unknown */
	struct quota_waits quota_waits;
	struct host_ns quota_until; /* the reading that these are about, 0 none */
	uint32_t quota_cgroup;
	struct names names;
	struct stacks *stacks; /* the guest's own, by guest_stack_key(); NULL: it sent none */
	size_t n_vcpus;
	struct vm_vcpu **vcpus; /* by ascending index */
	size_t n_hello;
	struct message_cpu *hello; /* by ascending CPU */
	struct guest_cpu *cpus[VS_CPUS_MAX];
	int vcpu_of_cpu[VS_CPUS_MAX]; /* positions in vcpus, -1: none */
};

/* pid 0: of the guest's kernel. */
static inline uint64_t guest_stack_key(int32_t pid, uint32_t id)
{
	return (uint64_t)(uint32_t)pid << 32 | id;
}

struct vm *vm_new(const struct message_vm_info *info); /* without vCPUs; NULL on ENOMEM */
void vm_free(struct vm *vm);
/* 0 or -ENOMEM. */
int vm_guest_cpus(struct vm *vm, const struct message_cpu *cpus, size_t n);
/* The guest has a CPU that its list, if it sent one, does not hold: it was plugged or taken online
 * since. 0 or -ENOMEM. */
int vm_guest_cpu_add(struct vm *vm, uint32_t cpu);
/* Works out which vCPU runs which guest CPU. */
void vm_join(struct vm *vm);
struct vm_vcpu *vm_vcpu_find(const struct vm *vm, uint32_t vcpu);
/* Takes over `added`; keeps the order by index. 0 or -ENOMEM. */
int vm_vcpu_add(struct vm *vm, struct vm_vcpu *added);
void vm_vcpu_remove(struct vm *vm, size_t position);

#endif
