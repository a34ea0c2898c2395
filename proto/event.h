/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event record: one struct of fixed size for each event of either kernel. The BPF programs
 * write it, batches carry it and the model reads it. The catalogue events.def has one row per type.
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
typedef __s64 vs_s64;
#else
#include <stdint.h>
typedef uint64_t vs_u64;
typedef uint32_t vs_u32;
typedef uint16_t vs_u16;
typedef int32_t vs_s32;
typedef int64_t vs_s64;
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
 * The types; events.def defines what their fields mean. "pid" is a kernel thread id (tid). The
 * current task of an event is the task on the CPU at its time. In a wake-up of the host's stream,
 * `waker` is the task that requested the wake-up, even if another CPU performed it.
 */
enum vs_event_type {
	VS_EVENT_NONE = 0,
#define EVENT(number, NAME, ...) VS_EVENT_##NAME = number,
#include "proto/events.def"
	VS_EVENT_TYPE_LIMIT, /* above all types here; a newer peer may send greater ones */
};

/* Replaces the id of each task that the task filter excludes (Config.tasks). Above all real ids. */
enum { VS_TASK_OTHER = 0x7fffffff };

/* Which of a type's hits the host captures, and whose they are. */
enum vs_scope {
	VS_SCOPE_FOLLOWED = 0, /* hits in followed threads */
	VS_SCOPE_ANYONE = 1,   /* all hits: other tasks, too, act for a VM */
	VS_SCOPE_BEGIN = 2,    /* hits in followed threads; each begins a request */
	VS_SCOPE_END = 3,      /* hits that end a request that a followed thread began */
	VS_SCOPE_TASKS = 4,    /* what happens to followed threads and to tasks on their CPUs */
	VS_SCOPE_CHOSEN = 5,   /* events that the user chose: as the description of each says */
};

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
 * TASK_STACK (guest): the CPU emits it when it takes the stack. The role is VS_STACK_SAMPLE,
 * VS_STACK_LOOK, or VS_STACK_WAITER right before the SCHED_SWITCH that begins a wait. The frames of
 * a stack id follow in FRAME_GUEST_STACK: with pid 0 for a kernel stack, with the pid of the
 * process for a user stack.
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
	/* Like VS_STACK_SAMPLE, but only of ticks of the timer at which a condition held (`record
	 * --look`). The duration is the time since the previous tick; the counts of the condition
	 * are of this time. In STACK events pid2 is 0, so that older readers do not explain a wait
	 * with it. */
	VS_STACK_LOOK = 5,
	/* Where `pid` was when it hit an event that the user chose with `stack`. Explains no wait.
	 * In STACK events pid2 is 0, as above, and the duration is a number: the hit has the same
	 * number as the value of its last field (USER_STACKS). The event comes right before the
	 * hit. */
	VS_STACK_HIT = 6,
};

/* The CPU number of events that the collector itself adds to the host's stream. */
enum { VS_CPU_COLLECTOR = 1023 };

#endif
