// SPDX-License-Identifier: GPL-2.0-only
/* A guest that reads kvmclock. It runs in 32-bit flat protected mode, without interrupts, paging
 * and libraries. It computes nanoseconds as Linux's pvclock does, and shares no code with the
 * tested programs. */
#include "guest.h"

enum { MSR_IA32_TSC = 0x10, MSR_KVM_SYSTEM_TIME_NEW = 0x4b564d01 };

struct pvclock_page {
	uint32_t version;
	uint32_t pad;
	uint64_t tsc_timestamp;
	uint64_t system_time;
	uint32_t mul;
	int8_t shift;
	uint8_t flags;
	uint8_t pad2[2];
};

static uint64_t rdtsc(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

static void wrmsr(uint32_t msr, uint64_t value)
{
	__asm__ volatile("wrmsr"
			 :
			 : "c"(msr), "a"((uint32_t)value), "d"((uint32_t)(value >> 32))
			 : "memory");
}

static void report(uint32_t vcpu)
{
	__asm__ volatile("outl %0, %1" : : "a"(vcpu), "N"((uint8_t)GUEST_PORT) : "memory");
}

/* (delta * mul) >> 32 in 96 bits, by hand: there is no 128-bit product here. */
static uint64_t scale(uint64_t delta, uint32_t mul, int8_t shift)
{
	if (shift < 0)
		delta >>= -shift;
	else
		delta <<= shift;
	return (delta >> 32) * mul + (((delta & 0xffffffff) * mul) >> 32);
}

static void read_clock(const volatile struct pvclock_page *page, struct guest_mailbox *mailbox)
{
	uint32_t version;
	uint64_t tsc, ns;

	do {
		version = page->version & ~1u;
		tsc = rdtsc();
		ns = page->system_time + scale(tsc - page->tsc_timestamp, page->mul, page->shift);
	} while (version != page->version);
	mailbox->version = version;
	mailbox->tsc = tsc;
	mailbox->kvmclock_ns = ns;
}

__attribute__((noreturn, used)) static void guest(uint32_t vcpu)
{
	uint32_t address = GUEST_PVCLOCK + vcpu * GUEST_PER_VCPU;
	const struct pvclock_page *page = (const struct pvclock_page *)address;
	struct guest_mailbox *mailbox =
		(struct guest_mailbox *)(GUEST_MAILBOX + vcpu * GUEST_PER_VCPU);

	wrmsr(MSR_KVM_SYSTEM_TIME_NEW, address | 1);
	for (;;) {
		report(vcpu);
		if (mailbox->command == GUEST_READ_CLOCK)
			read_clock(page, mailbox);
		else if (mailbox->command == GUEST_ADD_TO_TSC)
			wrmsr(MSR_IA32_TSC, rdtsc() + mailbox->argument);
	}
}

__asm__(".section .text.start, \"ax\"\n"
	"	.globl _start\n"
	"_start: push %ebx\n"
	"	call guest\n");
