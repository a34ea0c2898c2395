/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CLOCK_ARCH_COUNTER_X86_H
#define CLOCK_ARCH_COUNTER_X86_H

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>
#include <x86intrin.h>

#define CPUID_TSC_CRYSTAL       0x15u
#define CPUID_HYPERVISOR        0x40000000u
#define CPUID_HYPERVISOR_TIMING 0x40000010u
#define CPUID_1_ECX_HYPERVISOR  (1u << 31)
#define KVM_FEATURE_STEAL_TIME  5

static inline uint64_t counter_read(void)
{
	/* As the kernel's rdtsc_ordered(): RDTSC may otherwise run ahead of earlier loads. */
	_mm_lfence();
	return __rdtsc();
}

static inline uint64_t counter_stated_hz(void)
{
	unsigned int a, b, c, d;

	__cpuid(1, a, b, c, d);
	if (c & CPUID_1_ECX_HYPERVISOR) {
		__cpuid(CPUID_HYPERVISOR, a, b, c, d);
		if (a >= CPUID_HYPERVISOR_TIMING && a < CPUID_HYPERVISOR + 0x100) {
			__cpuid(CPUID_HYPERVISOR_TIMING, a, b, c, d);
			if (a)
				return (uint64_t)a * 1000; /* kHz */
		}
	}
	if ((unsigned int)__get_cpuid_max(0, NULL) < CPUID_TSC_CRYSTAL)
		return 0;
	__cpuid_count(CPUID_TSC_CRYSTAL, 0, a, b, c, d);
	return a && b && c ? (uint64_t)c * b / a : 0;
}

static inline bool counter_steal_clock_present(void)
{
	unsigned int a, b, c, d;

	__cpuid(1, a, b, c, d);
	if (!(c & CPUID_1_ECX_HYPERVISOR))
		return false;
	__cpuid(CPUID_HYPERVISOR, a, b, c, d);
	if (b != 0x4b4d564b || c != 0x564b4d56 || d != 0x4d) /* "KVMKVMKVM" */
		return false;
	__cpuid(CPUID_HYPERVISOR + 1, a, b, c, d);
	return a >> KVM_FEATURE_STEAL_TIME & 1;
}

/* Compilers emit a call of __udivti3 instead of one DIV. */
static inline uint64_t divide_128_64(uint64_t high, uint64_t low, uint64_t divisor, uint64_t *rest)
{
	uint64_t quotient;

	__asm__("divq %4" : "=a"(quotient), "=d"(*rest) : "a"(low), "d"(high), "r"(divisor) : "cc");
	return quotient;
}

#endif
