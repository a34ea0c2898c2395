/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A VMM that raises interrupts in every way KVM's in-kernel interrupt controllers know, in a
 * process of its own: two vCPUs, each with its thread; a third thread raises. What it raised, when
 * and why, stands beside the guest's own log in memory that the test shares: that is the truth.
 */
#ifndef MICROGUEST_IRQ_VMM_H
#define MICROGUEST_IRQ_VMM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "irq_guest.h"

enum { IRQ_VMM_VCPUS = 2, IRQ_RAISED_MAX = 2 * IRQ_GUEST_LOG_MAX };

/* X(NAME, "name", the guest's vector) */
#define IRQ_KINDS(X)                                                                               \
	X(MSI, "KVM_SIGNAL_MSI", IRQ_VECTOR_MSI)                                                   \
	X(EDGE, "GSI, edge", IRQ_VECTOR_EDGE)                                                      \
	X(LEVEL, "GSI, level", IRQ_VECTOR_LEVEL)                                                   \
	X(IRQFD_MSI, "irqfd to an MSI", IRQ_VECTOR_IRQFD)                                          \
	X(IRQFD_PIN, "irqfd to a pin", IRQ_VECTOR_IRQFD)                                           \
	X(IPI, "IPI", IRQ_VECTOR_IPI)                                                              \
	X(TIMER, "TSC-deadline timer", IRQ_VECTOR_TIMER)

enum irq_kind {
#define X(NAME, ...) IRQ_KIND_##NAME,
	IRQ_KINDS(X)
#undef X
		IRQ_KIND_COUNT
};

const char *irq_kind_name(enum irq_kind kind);

/* One interrupt that was raised, or came again. */
struct irq_raised {
	enum irq_kind kind;
	uint32_t vcpu, vector; /* whose, which */
	enum irq_guest_mode mode;
	/* The VMM's TSC around the call that raised it, and when its handler was seen to have run.
	 * IPI and timer: 0, the guest did it. */
	uint64_t before, after, seen;
	uint32_t sender; /* IPI, timer: index of the command that made the guest do it */
	uint64_t log;    /* index of its handler's run in the log of `vcpu` */
	bool merged;     /* raised while this vector was pending already: one run for both */
	/* Nobody raised it: its line was still up when KVM took the last one's end. Where KVM ends
	 * an interrupt as it injects it, a level-triggered one always comes again. */
	bool again;
};

/* What the VMM's process and the test share. */
struct irq_truth {
	uint64_t n_raised;
	uint64_t tsc_offset[IRQ_VMM_VCPUS]; /* by KVM's word */
	char error[256];                    /* what went wrong; "" nothing */
	struct irq_raised raised[IRQ_RAISED_MAX];
};

struct irq_vmm {
	pid_t pid;
	int socket;
	struct irq_truth *truth;
	uint8_t *memory; /* the guest's */
};

/* Forks the VMM with a guest that halts and waits for interrupts. 0 or -errno, then truth->error
 * says more where truth is not NULL; irq_vmm_stop in any case. */
int irq_vmm_start(struct irq_vmm *v);
/* Begins to raise at least `count` interrupts, chosen by `seed`; once. When it is done,
 * truth->raised holds one entry for every run in the guest's logs, and more only if merged. */
int irq_vmm_play(struct irq_vmm *v, uint32_t count, uint32_t seed);
/* -ETIME: it still does, after timeout_ms. Else the result: 0 or -errno. */
int irq_vmm_wait(struct irq_vmm *v, int timeout_ms);
void irq_vmm_stop(struct irq_vmm *v);
const struct irq_guest_cpu *irq_vmm_cpu(const struct irq_vmm *v, uint32_t vcpu);

#endif
