/* SPDX-License-Identifier: GPL-2.0-only */
/* The registers that perf samples. PERF_REGISTERS_MASK selects them. perf_registers_dwarf[i] is the
 * number in DWARF's order of the i-th register that perf writes, perf_registers_pt_regs[i] its
 * index in struct pt_regs. A mask of 0 selects no register: the architecture has neither an
 * unwinder nor probes yet. */
#ifndef BPF_ARCH_PERF_REGISTERS_H
#define BPF_ARCH_PERF_REGISTERS_H

#include <stdint.h>

#if defined(__x86_64__)
/* Bits of the kernel's PERF_REG_X86_*: AX to IP (0 to 8), then R8 to R15 (16 to 23). */
#define PERF_REGISTERS_MASK 0xff01ffull
/* ax bx cx dx si di bp sp ip r8 to r15 */
static const uint8_t perf_registers_dwarf[] = {0, 3, 2,  1,  4,  5,  6,  7, 16,
					       8, 9, 10, 11, 12, 13, 14, 15};
/* struct pt_regs begins: r15 r14 r13 r12 bp bx r11 r10 r9 r8 ax cx dx si di orig_ax ip cs flags sp
 */
static const uint8_t perf_registers_pt_regs[] = {10, 5, 11, 12, 13, 14, 4, 19, 16,
						 9,  8, 7,  6,  3,  2,  1, 0};
#else
#define PERF_REGISTERS_MASK 0ull
static const uint8_t perf_registers_dwarf[17];
static const uint8_t perf_registers_pt_regs[17];
#endif

#endif
