/* SPDX-License-Identifier: GPL-2.0-only */
/* The VM of irq_vmm.h, for use inside the VMM's process: creates the VM, runs its vCPUs and raises
 * interrupts. */
#ifndef MICROGUEST_IRQ_MACHINE_H
#define MICROGUEST_IRQ_MACHINE_H

#include <linux/kvm.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "irq_vmm.h"

struct irq_machine;

struct irq_machine_vcpu {
	struct irq_machine *machine;
	uint32_t number;
	int fd;
	struct kvm_run *run;
	pthread_t thread;
	bool ready;
};

struct irq_machine {
	int kvm, vm;
	struct irq_machine_vcpu vcpus[IRQ_VMM_VCPUS];
	/* by vCPU, and in the order of the IRQ_GSI_IRQFD_* below */
	int irqfds[IRQ_VMM_VCPUS][3];
	struct irq_truth *truth;
	uint8_t *memory;
	/* The name of a vCPU thread: thread_name, its number, thread_name_end. If thread_name is
	 * "", threads get no name. */
	const char *thread_name, *thread_name_end;
	/* Called in a vCPU's thread after a signal has ended KVM_RUN; NULL: none. */
	void (*interrupted)(struct irq_machine_vcpu *v);
};

/* The GSI of vCPU n is one of these, plus n. */
enum {
	IRQ_GSI_EDGE = 16, /* 16..23 are pins of the IOAPIC */
	IRQ_GSI_EDGE_SHARED = 18,
	IRQ_GSI_LEVEL = 20,
	IRQ_GSI_IRQFD_PIN = 22,
	IRQ_GSI_IRQFD_MSI = 24,
	IRQ_GSI_IRQFD_MSI_SHARED = 26,
};

/* Creates the VM and its vCPUs. The members of `m` other than the names of the threads must be
 * zero; without names the threads are named as QEMU's. memory, truth: shared with the test,
 * borrowed. Returns 0, or -errno with the failed step in truth->error. */
int irq_machine_create(struct irq_machine *m, uint8_t *memory, struct irq_truth *truth);
volatile struct irq_guest_cpu *irq_machine_cpu(struct irq_machine *m, uint32_t vcpu);
/* Raises an interrupt from outside the guest. `vector` is that of the kind, or IRQ_VECTOR_SHARED.
 * The guest's handler has the LEVEL line lowered. Returns 0; -EINVAL: the VMM cannot raise this
 * kind; or another -errno. */
int irq_machine_raise(struct irq_machine *m, enum irq_kind kind, uint32_t vcpu, uint32_t vector);

#endif
