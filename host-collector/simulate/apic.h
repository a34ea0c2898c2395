/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Simulates the local APIC of a vCPU and KVM's handling of it: who raises an interrupt, on which
 * thread it is accepted, when the vCPU leaves the guest for it, when it is injected, and the
 * tracepoints that KVM emits. The guest (guest.h) keeps the pending interrupts; the APIC decides
 * which of them the guest may take.
 *
 * The vCPU's own thread accepts the interrupt of a timer, and a level-triggered interrupt that is
 * still asserted, before it enters the guest again. A worker thread of the VM raises and accepts a
 * device's interrupt; the thread of the vCPU that sends an IPI raises and accepts the IPI. With
 * posted interrupts KVM injects nothing, and a vCPU in the guest need not exit.
 */
#ifndef SIMULATE_APIC_H
#define SIMULATE_APIC_H

#include "host-collector/simulate/guest.h"
#include "host-collector/simulate/host.h"

struct sim_vcpu;

enum { APIC_VECTORS_MAX = 8 };

struct sim_apic {
	struct sim_vcpu *vcpu;
	/* Raises the devices' interrupts. NULL: an interrupt of the host raises them, without an
	 * event. */
	struct host_thread *worker;
	bool posted;        /* the processor delivers interrupts itself, without an injection */
	bool shown;         /* KVM emits the tracepoints of interrupts */
	unsigned requested; /* bits of enum guest_vector that the worker is to raise */
	unsigned due;       /* pending bits that the vCPU's own thread is to accept */
	unsigned injected;  /* the bit that is injected at the next VM-entry */
	unsigned handled;   /* bits whose EOI KVM sees at the next exit */
	/* By bit of enum guest_vector: time of the first and of the last recorded accept of the
	 * pending interrupt, -1 none. */
	int64_t accepts[APIC_VECTORS_MAX][2];
	unsigned held;                /* bits that are accepted but not delivered (lost) */
	int64_t lost_since;           /* time since which one is lost; -1: none */
	bool timer_held, timer_waits; /* timer_held: the host's timer must not expire; timer_waits:
					 it would have expired while it was held */
};

/* Initializes the APIC of the vCPU `v`, which is borrowed. Nothing is pending. */
void apic_init(struct sim_apic *a, struct sim_vcpu *v);
/* Requests an interrupt for a device or a timer. */
void apic_interrupt(struct sim_apic *a, enum guest_vector vector);
/* Raises the interrupts that were requested of the worker, whose thread runs now. */
void apic_worker(struct sim_apic *a);
/* Sends an IPI to this vCPU from the vCPU `by`, which has just left its guest. */
void apic_call(struct sim_apic *a, enum guest_vector vector, struct sim_vcpu *by);
/* apic_enter(): call it just before the vCPU thread enters the guest; accepts the due interrupts
 * and injects one. apic_left(): call it just after the thread left the guest; emits the EOIs. */
void apic_enter(struct sim_apic *a);
void apic_left(struct sim_apic *a);
/* Return the bits of `pending` that the APIC holds for the guest, and those that the guest can
 * take without an exit. */
unsigned apic_visible(const struct sim_apic *a, unsigned pending);
unsigned apic_deliverable(const struct sim_apic *a, unsigned pending);
/* apic_taken(): call it when the guest's handler begins; recorded: the recording has an event of
 * that. apic_done(): call it when the handler has ended. */
void apic_taken(struct sim_apic *a, enum guest_vector vector, bool recorded);
void apic_done(struct sim_apic *a, enum guest_vector vector);

/* While `lose` is true, interrupts of the device get lost. While `hold` is true, the host's timer
 * does not expire. */
void apic_lose(struct sim_apic *a, bool lose);
void apic_timer_hold(struct sim_apic *a, bool hold);

#endif
