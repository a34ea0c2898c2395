/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A VMM, as a process of its own, that raises interrupts of every kind that KVM's in-kernel
 * interrupt controllers support. Each of its two vCPUs has a thread. A third thread raises
 * interrupts and writes each of them, with its times, to memory that it shares with the test. The
 * test compares this log and that of the guest with a recording.
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

/* One interrupt that was raised, or that a level-triggered line raised again. */
struct irq_raised {
	enum irq_kind kind;
	uint32_t vcpu, vector; /* destination */
	enum irq_guest_mode mode;
	/* The VMM's TSC before and after the call that raised it, and when the VMM saw that its
	 * handler had run. 0 for IPIs and timers, which the guest itself raises. */
	uint64_t before, after, seen;
	uint32_t sender; /* IPI, timer: index of the command that made the guest do it */
	uint64_t log;    /* index of its handler's run in the log of `vcpu` */
	bool merged;     /* raised while this vector was pending already: both have one run of the
			    handler */
	/* KVM raised it again, because its line was still up at the end of the previous interrupt.
	 * Where KVM ends an interrupt when it injects it, each level-triggered interrupt comes
	 * again. */
	bool again;
};

/* The memory that the VMM's process and the test share. */
struct irq_truth {
	uint64_t n_raised;
	uint64_t tsc_offset[IRQ_VMM_VCPUS]; /* as KVM reports it */
	char error[256];                    /* the failed step; "": none */
	struct irq_raised raised[IRQ_RAISED_MAX];
};

struct irq_vmm {
	pid_t pid;
	int socket;
	struct irq_truth *truth;
	uint8_t *memory; /* the guest's */
};

/* Forks the VMM with a guest that halts and waits for interrupts. Returns 0 or -errno. If v->truth
 * is not NULL, its member `error` then has the failed step. Call irq_vmm_stop() in both cases. */
int irq_vmm_start(struct irq_vmm *v);
/* Starts to raise at least `count` interrupts, which `seed` chooses. Call it once. In the end
 * truth->raised has one entry for every run in the guest's logs; further entries are `merged`.
 * Returns 0 or -errno. */
int irq_vmm_play(struct irq_vmm *v, uint32_t count, uint32_t seed);
/* Waits until all interrupts were raised. Returns 0; -ETIME: not done after timeout_ms; or another
 * -errno. */
int irq_vmm_wait(struct irq_vmm *v, int timeout_ms);
void irq_vmm_stop(struct irq_vmm *v);
const struct irq_guest_cpu *irq_vmm_cpu(const struct irq_vmm *v, uint32_t vcpu);

#endif
