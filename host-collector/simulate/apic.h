/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The local APIC of a vCPU and what KVM does for it: who raises an interrupt and on which thread it
 * is accepted, when the vCPU is kicked out of the guest for it and when it is injected, and the
 * tracepoints that tell. The guest (guest.h) keeps what is pending; this decides what it may take.
 *
 * A timer expires in the host and is accepted by the vCPU's own thread before it enters again, as
 * is a line that is still up; a device's is raised by a worker of the VM's, a call by the other
 * vCPU's thread. With posted interrupts nothing is injected, and who is in the guest need not leave
 * it.
 */
#ifndef SIMULATE_APIC_H
#define SIMULATE_APIC_H

#include "host-collector/simulate/guest.h"
#include "host-collector/simulate/host.h"

struct sim_vcpu;

enum { APIC_VECTORS_MAX = 8 };

struct sim_apic {
	struct sim_vcpu *vcpu;
	/* Raises the devices'; NULL: an interrupt of the host's does, and no event shows it. */
	struct host_thread *worker;
	bool posted, shown; /* shown: by KVM's tracepoints, as the exits are */
	unsigned requested; /* of enum guest_vector: the worker is to raise them */
	unsigned due;       /* pending, and the vCPU's own thread is to accept them */
	unsigned injected;  /* the one that the guest gets as it enters */
	unsigned handled;   /* whose end KVM learns of at the next exit */
	/* By the bit of enum guest_vector: the first and the last recorded accept of what is
	 * pending, -1 none. */
	int64_t accepts[APIC_VECTORS_MAX][2];
	unsigned held;                /* lost: accepted, and nothing comes of it for now */
	int64_t lost_since;           /* -1: none is */
	bool timer_held, timer_waits; /* the host's timer is late; and would have expired */
};

/* Of the vCPU `v`, borrowed. Nothing is pending. */
void apic_init(struct sim_apic *a, struct sim_vcpu *v);
/* The guest's devices and timers want its attention. */
void apic_interrupt(struct sim_apic *a, enum guest_vector vector);
/* The worker has run: what was requested of it is raised. */
void apic_worker(struct sim_apic *a);
/* The vCPU `by` calls this one; it has just left its guest to do so. */
void apic_call(struct sim_apic *a, enum guest_vector vector, struct sim_vcpu *by);
/* The vCPU's thread is about to enter the guest; it has just left it. */
void apic_enter(struct sim_apic *a);
void apic_left(struct sim_apic *a);
/* What of `pending` is there for the guest; and what it can take without leaving. */
unsigned apic_visible(const struct sim_apic *a, unsigned pending);
unsigned apic_deliverable(const struct sim_apic *a, unsigned pending);
/* The guest's handler begins, and the recording has that; has ended. */
void apic_taken(struct sim_apic *a, enum guest_vector vector, bool recorded);
void apic_done(struct sim_apic *a, enum guest_vector vector);

/* Until the opposite: the device's interrupts get lost; the host's timer does not expire. */
void apic_lose(struct sim_apic *a, bool lose);
void apic_timer_hold(struct sim_apic *a, bool hold);

#endif
