/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel structs that the BPF programs read. Only the used fields are declared; CO-RE finds
 * their offsets at load time. So the build machine needs neither the kernel's BTF nor its headers.
 * A suffix ___x names another layout of the same struct; a program checks at load time which layout
 * the kernel has.
 */
#ifndef PROG_KERNEL_H
#define PROG_KERNEL_H

#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "proto/event_fields.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info {
	__u32 cpu;
};

struct mm_struct;

struct atomic_int {
	int counter;
};

struct signal_struct {
	struct atomic_int live; /* number of threads that have not begun to exit */
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	int on_cpu;
	int prio;
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct signal_struct *signal;
	char comm[16];
};

/* Before Linux 5.14 `state` is a long. Before 5.16, x86 has the CPU outside thread_info. */
struct task_struct___before_5_16 {
	volatile long state;
	unsigned int cpu;
};

struct bpf_iter_meta;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

#pragma clang attribute pop

#include "bpf/arch/prog_registers.h"

/* Every source is built twice. In the build with BTF-typed tracepoints the verifier knows the types
 * of the arguments, so the programs read fields by plain loads. The raw-tracepoint build reads the
 * same fields through bpf_probe_read_kernel, for kernels whose verifier refuses the first build. */
#ifdef VS_RAW_TRACEPOINTS
#define VS_TRACEPOINT(name)        SEC("raw_tp/" #name)
#define VS_READ(p, field)          BPF_CORE_READ(p, field)
#define VS_READ_VIA(p, via, field) BPF_CORE_READ(p, via, field)
#define vs_current_task()          ((struct task_struct *)bpf_get_current_task())
#else
#define VS_TRACEPOINT(name)        SEC("tp_btf/" #name)
#define VS_READ(p, field)          ((p)->field)
#define VS_READ_VIA(p, via, field) ((p)->via->field)
#define vs_current_task()          bpf_get_current_task_btf()
#endif

/* Reads the 16 bytes of the task's name, which on old kernels has leftovers behind its end. */
static __always_inline void task_name_read(__u64 name[2], const struct task_struct *p)
{
#ifdef VS_RAW_TRACEPOINTS
	bpf_probe_read_kernel(name, 2 * sizeof(*name), p->comm);
#else
	name[0] = ((const __u64 *)p->comm)[0];
	name[1] = ((const __u64 *)p->comm)[1];
#endif
}

/* True if sched_switch has the argument prev_state (Linux 5.18 or later). The loader sets it from
 * this kernel's BTF. */
const volatile bool switch_has_state;

static __always_inline __u32 task_cpu(struct task_struct *p)
{
	if (bpf_core_field_exists(p->thread_info.cpu))
		return VS_READ(p, thread_info.cpu);
	return VS_READ((struct task_struct___before_5_16 *)p, cpu);
}

static __always_inline __u32 task_state(struct task_struct *p)
{
	if (bpf_core_field_exists(p->__state))
		return VS_READ(p, __state);
	return (__u32)VS_READ((struct task_struct___before_5_16 *)p, state);
}

/* Returns the bits of `state` that enum vs_task_state names. The other bits (freezable, no load,
 * kill) only qualify these. A state without any named bit, such as the wait for a real-time lock,
 * is reported as uninterruptible. */
static __always_inline __u32 state_reported(__u32 state)
{
	const __u32 named = VS_TASK_INTERRUPTIBLE | VS_TASK_UNINTERRUPTIBLE | VS_TASK_STOPPED |
			    VS_TASK_TRACED | VS_TASK_EXIT | VS_TASK_PARKED | VS_TASK_DEAD |
			    VS_TASK_FROZEN;

	const __u32 idle = VS_TASK_UNINTERRUPTIBLE | VS_TASK_IDLE;

	if ((state & idle) == idle)
		return (state & named) | VS_TASK_IDLE;
	return state & named ? state & named : VS_TASK_UNINTERRUPTIBLE;
}

/*
 * Returns the state in which `prev` leaves the CPU, 0 if it stays runnable. `ctx` is the
 * tracepoint's argument array. If the kernel passes the state, the function uses that, because
 * another CPU may meanwhile set task->__state to TASK_WAKING. It returns 0 if task->__state is 0: a
 * task that finds a pending signal stays runnable.
 */
static __always_inline __u32 switch_state(const unsigned long long *ctx, bool preempted,
					  struct task_struct *prev)
{
	__u32 now = task_state(prev);

	if (preempted || !now)
		return 0;
	return state_reported(switch_has_state ? (__u32)ctx[3] : now);
}

static __always_inline __s32 current_tid(void)
{
	return (__s32)bpf_get_current_pid_tgid();
}

#endif
