/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event record: one struct of fixed size for each event of either kernel. The BPF programs
 * write it, batches carry it and the model reads it. VS_EVENT_TYPES defines the meaning of its
 * fields.
 *
 * BPF programs include this header: use fixed-width types only. The wire format contains the
 * numbers: append new ones, never change one.
 */
#ifndef PROTO_EVENT_H
#define PROTO_EVENT_H

#ifdef __bpf__
#include <linux/types.h>
typedef __u64 vs_u64;
typedef __u32 vs_u32;
typedef __u16 vs_u16;
typedef __s32 vs_s32;
#else
#include <stdint.h>
typedef uint64_t vs_u64;
typedef uint32_t vs_u32;
typedef uint16_t vs_u16;
typedef int32_t vs_s32;
#endif

/*
 * `time`: in the kernel, nanoseconds of CLOCK_MONOTONIC; after the capture has converted it, ticks
 * of the stream clock (enum stream_clock in message.h). `seq` counts the events that the kernel's
 * programs on this CPU tried to emit. It counts dropped events too, so a gap in the sequence is a
 * loss.
 */
struct vs_event {
	vs_u64 time;
	vs_u32 seq;
	vs_u16 cpu;
	vs_u16 type; /* enum vs_event_type */
	vs_s32 pid;
	vs_s32 pid2;
	vs_u64 arg0;
	vs_u64 arg1;
};

/*
 * X(number, NAME, "name", pid, pid2, arg0, arg1). "pid" is a kernel thread id (tid). "current" is
 * the task on the CPU at the time of the event. In a wake-up of the host's stream, "current" is
 * the task that requested the wake-up, even if another CPU performed it. An empty string means
 * that the field is zero.
 */
#define VS_EVENT_TYPES(X)                                                                          \
	X(1, LOST, "lost", "", "", "number of events lost, 0 unknown",                             \
	  "time of the next good event, 0 unknown")                                                \
	X(2, SCHED_SWITCH, "sched_switch", "task switched out", "task switched in",                \
	  "state of the task switched out (enum vs_task_state), 0 if it could still run",          \
	  "prio out | prio in << 32")                                                              \
	X(3, SCHED_WAKEUP, "sched_wakeup", "task woken", "current", "CPU it will run on", "prio")  \
	X(4, SCHED_WAKEUP_NEW, "sched_wakeup_new", "task woken", "current", "CPU it will run on",  \
	  "prio")                                                                                  \
	X(5, SCHED_MIGRATE, "sched_migrate_task", "task", "current", "CPU it leaves",              \
	  "CPU it joins")                                                                          \
	X(6, TASK_NAME, "task_name", "task", "its process (tgid)", "comm, bytes 0..7",             \
	  "comm, bytes 8..15")                                                                     \
	X(7, TASK_EXIT, "task_exit", "task", "its process (tgid)", "", "")                         \
	X(8, IRQ_ENTRY, "irq_handler_entry", "current", "", "irq number", "")                      \
	X(9, IRQ_EXIT, "irq_handler_exit", "current", "", "irq number", "handler's return value")  \
	X(10, SOFTIRQ_ENTRY, "softirq_entry", "current", "", "softirq number", "")                 \
	X(11, SOFTIRQ_EXIT, "softirq_exit", "current", "", "softirq number", "")                   \
	X(12, VECTOR_ENTRY, "irq_vector_entry", "current", "", "enum vs_vector", "vector number")  \
	X(13, VECTOR_EXIT, "irq_vector_exit", "current", "", "enum vs_vector", "vector number")    \
	X(14, SIGNAL, "signal_generate", "task signalled", "current (the sender)",                 \
	  "signal number", "process signalled (tgid)")                                             \
	X(15, STACK, "stack", "task whose stack it is", "task it explains", "stack id",            \
	  "enum vs_stack_role | duration of the wait in ns << 8")                                  \
	X(32, KVM_ENTRY, "kvm_entry", "vCPU thread", "", "", "guest rip")                          \
	X(33, KVM_EXIT, "kvm_exit", "vCPU thread", "microseconds since, 0 now",                    \
	  "reason | isa << 32", "guest rip")                                                       \
	X(34, KVM_USERSPACE_EXIT, "kvm_userspace_exit", "vCPU thread",                             \
	  "microseconds since, 0 now", "KVM_EXIT_* reason",                                        \
	  "errno, negative as the kernel has it, 0 none")                                          \
	X(35, KVM_PAGE_FAULT, "kvm_page_fault", "vCPU thread", "", "guest physical address",       \
	  "error code")                                                                            \
	X(36, KVM_MMIO, "kvm_mmio", "vCPU thread", "", "guest physical address",                   \
	  "0 read not answered yet, 1 read, 2 write | bytes << 32")                                \
	X(37, KVM_PIO, "kvm_pio", "vCPU thread", "", "port | bytes << 32",                         \
	  "0 read, 1 write | repetitions << 32")                                                   \
	X(38, KVM_MSR, "kvm_msr", "vCPU thread", "", "MSR | 1 << 32 if written", "its value")      \
	X(39, KVM_HYPERCALL, "kvm_hypercall", "vCPU thread", "", "number", "first argument")       \
	X(40, KVM_HALT_POLL, "kvm_halt_poll_ns", "vCPU thread", "", "new limit, ns",               \
	  "old limit, ns")                                                                         \
	X(41, KVM_WAKEUP, "kvm_vcpu_wakeup", "vCPU thread", "", "ns since it halted",              \
	  "1 if it slept, 0 if polling sufficed | 1 << 32 if an event ended it")                   \
	X(42, KVM_PLE_WINDOW, "kvm_ple_window", "vCPU thread", "", "new window", "old window")     \
	/* 43 to 51: an interrupt between its source and the guest. Any task of any VM may emit    \
	 * these events, also a task that an interrupt interrupted. They do not name the VM. */    \
	X(43, KVM_MSI, "kvm_msi_set_irq", "current", "", "MSI address", "MSI data (0..7 vector)")  \
	X(44, KVM_SET_IRQ, "kvm_set_irq", "current", "", "gsi | level << 32", "source id")         \
	X(45, KVM_IPI, "kvm_apic_ipi", "current (the sender's vCPU thread)", "",                   \
	  "ICR low (0..7 vector)", "destination")                                                  \
	X(46, KVM_ACCEPT_IRQ, "kvm_apic_accept_irq", "current", "", "vector | APIC id << 32",      \
	  "delivery mode << 8 | trigger mode << 32")                                               \
	X(47, KVM_APICV_ACCEPT_IRQ, "kvm_apicv_accept_irq", "current", "",                         \
	  "vector | APIC id << 32", "delivery mode << 8 | trigger mode << 32")                     \
	X(48, KVM_INJECT, "kvm_inj_virq", "vCPU thread", "", "vector",                             \
	  "1 if by an instruction | 1 << 32 if injected anew")                                     \
	X(49, KVM_EOI, "kvm_eoi", "current", "", "APIC id", "vector, -1 unknown")                  \
	X(50, KVM_PV_EOI, "kvm_pv_eoi", "current", "", "APIC id", "vector")                        \
	X(51, KVM_ACK_IRQ, "kvm_ack_irq", "current", "", "irqchip (0, 1 PIC, 2 IOAPIC)", "pin")    \
	X(52, KVM_UNMAP, "kvm_unmap_hva_range", "current", "",                                     \
	  "first address in the VMM's memory", "address behind the last")                          \
	X(53, BLOCK_ISSUE, "block_rq_issue", "current", "", "sector", "device | bytes << 32")      \
	X(54, BLOCK_COMPLETE, "block_rq_complete", "current", "task that issued it", "sector",     \
	  "device | sectors << 32")                                                                \
	X(55, MAJOR_FAULT, "major_fault", "current", "", "address that was not in memory",         \
	  "address of the instruction")                                                            \
	X(56, TASK_STACK, "task_stack", "current (a guest's task)", "its process (tgid)",          \
	  "kernel stack id | user stack id << 32, 0 none",                                         \
	  "enum vs_stack_role | period of the samples in ns << 8")

enum vs_event_type {
	VS_EVENT_NONE = 0,
#define X(number, NAME, ...) VS_EVENT_##NAME = number,
	VS_EVENT_TYPES(X)
#undef X
		VS_EVENT_TYPE_LIMIT =
			64 /* above all types here; a newer peer may send greater ones */
};

/* Replaces the id of each task that the task filter excludes (Config.tasks). Above all real ids. */
enum { VS_TASK_OTHER = 0x7fffffff };

/* State of a task that left its CPU: bits of the kernel (include/linux/sched.h, stable since
 * 4.14). */
enum vs_task_state {
	VS_TASK_RUNNING = 0,
	VS_TASK_INTERRUPTIBLE = 0x1,
	VS_TASK_UNINTERRUPTIBLE = 0x2,
	VS_TASK_STOPPED = 0x4,
	VS_TASK_TRACED = 0x8,
	VS_TASK_EXIT = 0x30, /* dead | zombie */
	VS_TASK_PARKED = 0x40,
	VS_TASK_DEAD = 0x80,
	VS_TASK_IDLE = 0x400, /* with UNINTERRUPTIBLE: an idle kernel thread, not counted as load */
	VS_TASK_FROZEN = 0x8000,
};

/* Interrupt vectors with a pair of tracepoints that the scheduling of a guest depends on. */
enum vs_vector {
	VS_VECTOR_LOCAL_TIMER = 1,
	VS_VECTOR_RESCHEDULE = 2,
	VS_VECTOR_CALL_FUNCTION = 3,
	VS_VECTOR_CALL_FUNCTION_SINGLE = 4,
};

/*
 * TASK_STACK (guest): the CPU emits it when it takes the stack. This is either a sample, or
 * VS_STACK_WAITER right before the SCHED_SWITCH that begins a wait. The frames of a stack id
 * follow in FRAME_GUEST_STACK: with pid 0 for a kernel stack, with the pid of the process for a
 * user stack.
 *
 * STACK (host): explains one wait of task `pid2`. The collector knows it only after the wait, so
 * its time is inside the wait, right before the end. The wait began `duration` earlier (+-1 ms).
 * The event comes from no CPU: batches of VS_CPU_COLLECTOR carry it and have their own sequence
 * numbers.
 */
enum vs_stack_role {
	VS_STACK_WAITER = 1, /* where `pid` (= pid2) left the CPU at the begin of the wait */
	VS_STACK_WAKER = 2,  /* where `pid` was when it woke `pid2` */
	/* Where `pid` (= pid2) was on its CPU when the sampling timer fired. Explains no wait; the
	 * duration is the timer's period. */
	VS_STACK_SAMPLE = 3,
	/* Like VS_STACK_WAITER, but for a wait that is too short to always have a stack. It
	 * represents the shorter waits of the thread since its last such event. */
	VS_STACK_SHORT = 4,
};

/* The CPU number of events that the collector itself adds to the host's stream. */
enum { VS_CPU_COLLECTOR = 1023 };

#endif
