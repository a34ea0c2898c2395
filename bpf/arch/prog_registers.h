/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The user-space registers of a task, for BPF programs. Include bpf/prog/kernel.h before this
 * header.
 *
 * - struct pt_regs has only the members that are used; CO-RE finds their offsets.
 * - user_registers_copy(to, r) writes the registers to an array of 17 in DWARF's order, which the
 *   unwinder reads, and returns the stack pointer. It returns 0 if the architecture has no unwinder
 *   yet.
 * - in_kvm_run(r) is true if the task is in the system call ioctl(KVM_RUN). False where
 *   user_registers_copy() returns 0.
 * - struct fault_context is the kernel's struct bpf_perf_event_data.
 * - FAULT_INSTRUCTION(context) is the address of the instruction in a struct fault_context.
 */
#ifndef BPF_ARCH_PROG_REGISTERS_H
#define BPF_ARCH_PROG_REGISTERS_H

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, sp;
} __attribute__((preserve_access_index));

static __always_inline __u64 user_registers_copy(__u64 *to, const struct pt_regs *regs)
{
	to[0] = regs->ax;
	to[1] = regs->dx;
	to[2] = regs->cx;
	to[3] = regs->bx;
	to[4] = regs->si;
	to[5] = regs->di;
	to[6] = regs->bp;
	to[7] = regs->sp;
	to[8] = regs->r8;
	to[9] = regs->r9;
	to[10] = regs->r10;
	to[11] = regs->r11;
	to[12] = regs->r12;
	to[13] = regs->r13;
	to[14] = regs->r14;
	to[15] = regs->r15;
	to[16] = regs->ip;
	return regs->sp;
}

static __always_inline bool in_kvm_run(const struct pt_regs *regs)
{
	return regs->orig_ax == 16 /* ioctl */ && regs->si == 0xae80 /* KVM_RUN */;
}

struct fault_context {
	__u64 regs[21]; /* in the kernel's order */
	__u64 sample_period;
	__u64 address;
};
#define FAULT_INSTRUCTION(context) ((context)->regs[16])
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	__u64 pc;
} __attribute__((preserve_access_index));

static __always_inline __u64 user_registers_copy(__u64 *to, const struct pt_regs *regs)
{
	(void)to, (void)regs;
	return 0;
}

static __always_inline bool in_kvm_run(const struct pt_regs *regs)
{
	(void)regs;
	return false;
}

struct fault_context {
	__u64 regs[31], sp, pc, pstate;
	__u64 sample_period;
	__u64 address;
};
#define FAULT_INSTRUCTION(context) ((context)->pc)
#else
#error "bpf.cmake names no architecture that these programs know"
#endif

#endif
