/* SPDX-License-Identifier: GPL-2.0-only */
/* The VM of irq_vmm.h, as its own process sees it: set up, run, interrupted. */
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
	int irqfds[IRQ_VMM_VCPUS][3]; /* by the place of their GSI below */
	struct irq_truth *truth;
	uint8_t *memory;
	/* What vCPU threads are called: these around their number. "": nothing. */
	const char *thread_name, *thread_name_end;
	/* Called in a vCPU's thread when a signal has ended KVM_RUN. NULL: nothing. */
	void (*interrupted)(struct irq_machine_vcpu *v);
};

/* GSIs of vCPU n are these + n. */
enum {
	IRQ_GSI_EDGE = 16, /* 16..23 are pins of the IOAPIC */
	IRQ_GSI_EDGE_SHARED = 18,
	IRQ_GSI_LEVEL = 20,
	IRQ_GSI_IRQFD_PIN = 22,
	IRQ_GSI_IRQFD_MSI = 24,
	IRQ_GSI_IRQFD_MSI_SHARED = 26,
};

/* m: zeros, or with names for the threads (default: as QEMU's). memory, truth: shared with the
 * test. 0 or -errno, then truth->error says at what. */
int irq_machine_create(struct irq_machine *m, uint8_t *memory, struct irq_truth *truth);
volatile struct irq_guest_cpu *irq_machine_cpu(struct irq_machine *m, uint32_t vcpu);
/* Raises from outside; `vector` is the kind's own or IRQ_VECTOR_SHARED. The LEVEL line is lowered
 * by the guest's handler. 0, -errno, -EINVAL: of this kind and vector there is none from here. */
int irq_machine_raise(struct irq_machine *m, enum irq_kind kind, uint32_t vcpu, uint32_t vector);

#endif
