/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/vm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct vm *vm_new(const struct message_vm_info *info)
{
	struct vm *vm = calloc(1, sizeof(*vm));

	if (!vm)
		return NULL;
	vm->id = info->vm;
	if (names_init(&vm->names)) {
		free(vm);
		return NULL;
	}
	return vm;
}

void vm_free(struct vm *vm)
{
	if (!vm)
		return;
	for (size_t i = 0; i < vm->n_vcpus; i++) {
		vcpu_fini(&vm->vcpus[i]->v);
		free(vm->vcpus[i]);
	}
	for (size_t i = 0; i < VS_CPUS_MAX; i++)
		free(vm->cpus[i]);
	names_fini(&vm->names);
	if (vm->stacks)
		stacks_fini(vm->stacks);
	free(vm->stacks);
	free(vm->vcpus);
	free(vm->hello);
	free(vm);
}

static int cpu_order(const void *a, const void *b)
{
	const struct message_cpu *x = a, *y = b;

	return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

int vm_guest_cpus(struct vm *vm, const struct message_cpu *cpus, size_t n)
{
	struct message_cpu *hello = calloc(n ? n : 1, sizeof(*hello));

	if (!hello)
		return -ENOMEM;
	free(vm->hello);
	vm->hello = hello;
	vm->n_hello = 0;
	for (size_t i = 0; i < n; i++) {
		if (cpus[i].cpu < VS_CPUS_MAX)
			hello[vm->n_hello++] = cpus[i];
	}
	qsort(hello, vm->n_hello, sizeof(*hello), cpu_order);
	vm_join(vm);
	return 0;
}

/* A CPU that appeared after the guest had sent its list. */
enum { APIC_ID_UNKNOWN = UINT32_MAX };

int vm_guest_cpu_add(struct vm *vm, uint32_t cpu)
{
	struct message_cpu *bigger;

	if (!vm->n_hello) /* it never listed them: all are joined by rank */
		return 0;
	for (size_t i = 0; i < vm->n_hello; i++) {
		if (vm->hello[i].cpu == cpu)
			return 0;
	}
	bigger = reallocarray(vm->hello, vm->n_hello + 1, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	vm->hello = bigger;
	bigger[vm->n_hello++] = (struct message_cpu){.cpu = cpu, .apic_id = APIC_ID_UNKNOWN};
	qsort(bigger, vm->n_hello, sizeof(*bigger), cpu_order);
	vm_join(vm);
	return 0;
}

static int vcpu_by_apic_id(const struct vm *vm, uint32_t apic_id)
{
	for (size_t i = 0; apic_id != APIC_ID_UNKNOWN && i < vm->n_vcpus; i++) {
		if (vm->vcpus[i]->apic_id_known && vm->vcpus[i]->apic_id == apic_id)
			return (int)i;
	}
	return -1;
}

static void join(struct vm *vm, uint32_t cpu, int position)
{
	if (position < 0 || (size_t)position >= vm->n_vcpus ||
	    vm->vcpus[position]->guest_cpu >= 0 || vm->vcpu_of_cpu[cpu] >= 0)
		return;
	vm->vcpu_of_cpu[cpu] = position;
	vm->number_of_cpu[cpu] = vm->vcpus[position]->v.vcpu;
	vm->vcpus[position]->guest_cpu = (int)cpu;
}

void vm_join(struct vm *vm)
{
	for (size_t i = 0; i < VS_CPUS_MAX; i++)
		vm->vcpu_of_cpu[i] = -1;
	for (size_t i = 0; i < vm->n_vcpus; i++)
		vm->vcpus[i]->guest_cpu = -1;
	for (size_t i = 0; i < vm->n_hello; i++)
		join(vm, vm->hello[i].cpu, vcpu_by_apic_id(vm, vm->hello[i].apic_id));
	for (size_t i = 0; i < vm->n_vcpus; i++)
		vm->vcpus[i]->join_certain =
			vm->vcpus[i]->guest_cpu >= 0 || (vm->n_vcpus == 1 && vm->n_hello == 1);
	for (size_t i = 0; i < vm->n_hello; i++)
		join(vm, vm->hello[i].cpu, (int)i);
	for (size_t i = 0; vm->n_hello == 0 && i < vm->n_vcpus && i < VS_CPUS_MAX; i++)
		join(vm, (uint32_t)i, (int)i);
}

struct vm_vcpu *vm_vcpu_find(const struct vm *vm, uint32_t vcpu)
{
	/* They are in the order of their numbers: without gaps each has its number's position. */
	if (vcpu < vm->n_vcpus && vm->vcpus[vcpu]->v.vcpu == vcpu)
		return vm->vcpus[vcpu];
	for (size_t i = 0; i < vm->n_vcpus; i++) {
		if (vm->vcpus[i]->v.vcpu == vcpu)
			return vm->vcpus[i];
	}
	return NULL;
}

int vm_vcpu_add(struct vm *vm, struct vm_vcpu *added)
{
	struct vm_vcpu **bigger = realloc(vm->vcpus, (vm->n_vcpus + 1) * sizeof(struct vm_vcpu *));
	size_t at = vm->n_vcpus;

	if (!bigger)
		return -ENOMEM;
	vm->vcpus = bigger;
	for (; at > 0 && bigger[at - 1]->v.vcpu > added->v.vcpu; at--)
		bigger[at] = bigger[at - 1];
	bigger[at] = added;
	vm->n_vcpus++;
	return 0;
}

void vm_vcpu_remove(struct vm *vm, size_t position)
{
	struct vm_vcpu *gone = vm->vcpus[position];

	vm->n_vcpus--;
	memmove(&vm->vcpus[position], &vm->vcpus[position + 1],
		(vm->n_vcpus - position) * sizeof(struct vm_vcpu *));
	vcpu_fini(&gone->v);
	free(gone);
}
