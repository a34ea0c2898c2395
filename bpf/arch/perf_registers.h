/* SPDX-License-Identifier: GPL-2.0-only */
/* The user-space registers that perf samples. PERF_REGISTERS_MASK selects them.
 * perf_registers_dwarf[i] is the number in DWARF's order of the i-th register that perf writes. A
 * mask of 0 selects no register: the architecture has no unwinder yet. */
#ifndef BPF_ARCH_PERF_REGISTERS_H
#define BPF_ARCH_PERF_REGISTERS_H

#include <stdint.h>

#if defined(__x86_64__)
/* Bits of the kernel's PERF_REG_X86_*: AX to IP (0 to 8), then R8 to R15 (16 to 23). */
#define PERF_REGISTERS_MASK 0xff01ffull
/* ax bx cx dx si di bp sp ip r8 to r15 */
static const uint8_t perf_registers_dwarf[] = {0, 3, 2,  1,  4,  5,  6,  7, 16,
					       8, 9, 10, 11, 12, 13, 14, 15};
#else
#define PERF_REGISTERS_MASK 0ull
static const uint8_t perf_registers_dwarf[17];
#endif

#endif
