/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A micro-guest that takes interrupts: its memory map, and the structs through which it and its VMM
 * communicate. It runs in 64-bit mode with x2APIC, and has one IDT for all vCPUs.
 */
#ifndef MICROGUEST_IRQ_GUEST_H
#define MICROGUEST_IRQ_GUEST_H

#include <stdint.h>

enum {
	IRQ_GUEST_BYTES = 2 << 20, /* mapped one to one by one large page */
	IRQ_GUEST_PML4 = 0x1000,
	IRQ_GUEST_PDPT = 0x2000,
	IRQ_GUEST_PD = 0x3000,
	IRQ_GUEST_GDT = 0x4000,
	IRQ_GUEST_IDT = 0x5000,
	IRQ_GUEST_CODE = 0x10000,  /* entered at its start with the vCPU in rdi */
	IRQ_GUEST_STACK = 0x30000, /* vCPU n's grows down from here + n * IRQ_GUEST_PER_STACK */
	IRQ_GUEST_PER_STACK = 0x4000,
	IRQ_GUEST_SHARED = 0x100000, /* struct irq_guest_cpu, one per vCPU */
	IRQ_GUEST_CODE_SELECTOR = 8,
	IRQ_GUEST_DATA_SELECTOR = 16,
	IRQ_GUEST_LOG_MAX = 8192,
};

/* I/O ports; a write causes a VM-exit. */
enum {
	IRQ_PORT_READY = 0x10,     /* the guest is set up; interrupts are on from here */
	IRQ_PORT_DEASSERT = 0x11,  /* the device must lower its level-triggered line */
	IRQ_PORT_EXCEPTION = 0x12, /* the guest got a vector below 32; this ends the test */
};

enum {
	IRQ_VECTOR_COMMAND = 0x30, /* its handler does `command` */
	IRQ_VECTOR_MSI = 0x41,
	IRQ_VECTOR_EDGE = 0x52,
	IRQ_VECTOR_LEVEL = 0x63,
	IRQ_VECTOR_IRQFD = 0x74,
	IRQ_VECTOR_IPI = 0x85,
	IRQ_VECTOR_TIMER = 0x96,
	IRQ_VECTOR_SHARED = 0xa7, /* any of the edge-triggered sources above may raise it */
};

/* What a vCPU does between two interrupts. */
enum irq_guest_mode {
	IRQ_GUEST_HALT = 1,
	IRQ_GUEST_SPIN = 2,
	IRQ_GUEST_CLOSED = 3, /* spins with interrupts off */
};

enum irq_guest_command {
	IRQ_GUEST_NOTHING = 0,
	IRQ_GUEST_SEND_IPI = 1,  /* ICR = argument */
	IRQ_GUEST_ARM_TIMER = 2, /* TSC-deadline timer of vector `vector`, in `argument` ticks */
};

/* One run of a handler, in guest TSC as its own CPU read it. */
struct irq_guest_entry {
	uint64_t entry, exit;
	uint64_t deadline; /* of a command handler that armed a timer: the value that it wrote */
	uint64_t vector;
};

struct irq_guest_cpu {
	uint32_t mode;
	uint32_t mode_seen; /* the mode that the guest is in */
	uint32_t command, vector;
	uint64_t argument;
	uint64_t n_log;     /* number of complete entries of `log` */
	uint64_t runs[256]; /* number of complete entries, by vector */
	struct irq_guest_entry log[IRQ_GUEST_LOG_MAX];
};

#endif
