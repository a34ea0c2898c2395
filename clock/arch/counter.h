/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the CPU's time counter, and what the processor reports about the counter and about the
 * hypervisor. On x86 the counter is the TSC. Each architecture has one file with these functions:
 *
 * - uint64_t counter_read(void): reads the counter after all earlier loads.
 * - uint64_t counter_stated_hz(void): returns the stated frequency, or 0 if none is stated. The
 *   caller checks it against a measurement.
 * - bool counter_steal_clock_present(void): returns whether KVM offers this guest a steal clock.
 * - uint64_t divide_128_64(...): see clock/divide.h.
 */
#ifndef CLOCK_ARCH_COUNTER_H
#define CLOCK_ARCH_COUNTER_H

#if defined(__x86_64__)
#include "clock/arch/counter_x86.h"
#elif defined(__aarch64__)
#include "clock/arch/counter_arm64.h"
#else
#error "vcpuscope runs on x86-64; arm64 is being prepared (docs/porting.md)"
#endif

#endif
