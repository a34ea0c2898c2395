/* SPDX-License-Identifier: GPL-2.0-only */
/* The micro-guest's memory map, and the commands and answers between it and its VMM. */
#ifndef MICROGUEST_GUEST_H
#define MICROGUEST_GUEST_H

#include <stdint.h>

enum {
	GUEST_MEMORY_BYTES = 1 << 20,
	GUEST_CODE = 0x1000,     /* flat 32-bit code, entered at its start with the vCPU in ebx */
	GUEST_STACK = 0x8000,    /* vCPU n's grows down from here + n * GUEST_PER_VCPU */
	GUEST_PVCLOCK = 0x10040, /* + n * GUEST_PER_VCPU; not where a page begins */
	GUEST_MAILBOX = 0x20000, /* + n * GUEST_PER_VCPU */
	GUEST_PER_VCPU = 0x1000,
	GUEST_PORT = 0x10, /* a write ends a command: the guest waits for the next */
};

enum guest_command {
	GUEST_READ_CLOCK = 1,
	GUEST_ADD_TO_TSC = 2, /* writes IA32_TSC: the value of rdtsc plus the argument */
};

struct guest_mailbox {
	uint32_t command;
	uint32_t version; /* of the pvclock page when the clock was read */
	uint64_t argument;
	uint64_t tsc;
	uint64_t kvmclock_ns;
};

#endif
