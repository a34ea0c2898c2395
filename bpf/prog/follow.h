/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Data that the host's BPF programs and user space share about the followed threads. Included by
 * BPF programs and by user space.
 *
 * A followed thread has a slot in a memory-mapped array. A hash finds the slot by tid. Both sides
 * change slots only by atomic operations on single fields. The side that deletes the hash entry
 * owns the slot and returns it to the stack of free slots: the kernel at the thread's last switch,
 * user space when it removes the thread (after all programs that may still use the slot have
 * ended).
 */
#ifndef PROG_FOLLOW_H
#define PROG_FOLLOW_H

#include "proto/event_fields.h"
#include "proto/exit_bucket.h"

enum {
	VS_FOLLOWED_MAX = 16384, /* number of slots; slot 0 is never used */
	VS_VMS_MAX = 4096,       /* VMs with a level each; a power of two */
	VS_BUCKETS = 4096,
	VS_RECENT_NAMES = 1024,           /* a power of two */
	VS_EXIT_CELLS_MAX_KERNEL = 16384, /* pairs of a vCPU thread and an exit reason */
	VS_STACK_FRAMES_MAX = 64,
	VS_STACK_REGS = 17,
	VS_STACK_USER_BYTES = 16384,
	/* Each time a thread's short waits add up to this time, the stack of the last one is
	 * sent. */
	VS_SHORT_EVERY_NS = 10000000,
	VS_SHORT_LEAST_NS = 100000, /* shorter waits are not added up */
	/* In each window of 2^25 ns (34 ms) at most VS_SHORT_PER_WINDOW of these stacks are sent on
	 * the whole host. */
	VS_SHORT_WINDOW_LOG2_NS = 25,
	VS_SHORT_PER_WINDOW = 32,
	/* None of these stacks is sent while the ring of stacks has more unread bytes than this. */
	VS_SHORT_RING_BYTES = 1 << 20,
	/* The same for stacks of hits, in the same windows: of all chosen events, and
	 * of each. */
	VS_HIT_ALL_PER_WINDOW = 32,
	VS_HIT_PER_WINDOW = 16,
	VS_HIT_RING_BYTES = 1 << 19,
};

/* Adds a short wait to *short_ns. Returns 1 if the stack of this wait is to be sent. Then it also
 * subtracts VS_SHORT_EVERY_NS from the sum; if the next stack would be due at once, it sets the sum
 * to 0 instead. */
static inline __attribute__((always_inline)) vs_u32 short_wait_due(vs_u64 *short_ns, vs_u64 wait_ns)
{
	if (wait_ns < VS_SHORT_LEAST_NS)
		return 0;
	*short_ns += wait_ns;
	if (*short_ns < VS_SHORT_EVERY_NS)
		return 0;
	*short_ns = *short_ns < 2 * VS_SHORT_EVERY_NS ? *short_ns - VS_SHORT_EVERY_NS : 0;
	return 1;
}

/* Returns 1 if a KVM_EXIT event is a HLT, in which the guest itself made the vCPU wait. */
static inline __attribute__((always_inline)) vs_u32 exit_is_hlt(const struct vs_event *e)
{
	const vs_u32 isa = ev_kvm_exit_isa(e), reason = ev_kvm_exit_reason(e);

	return (isa == 1 && reason == 12) || (isa == 2 && reason == 0x78); /* VMX; SVM */
}

enum vs_followed_flags {
	VS_FOLLOWED_VCPU = 1,
	/* A followed process created the thread. It is followed as long as its process. */
	VS_FOLLOWED_BY_KERNEL = 2,
};

enum vs_halt {
	VS_HALT_NONE,
	VS_HALT_EXIT,  /* the guest halted; the thread's next sleep is due to that */
	VS_HALT_SLEEP, /* the thread sleeps because the guest halted */
};

struct vs_followed {
	vs_s32 tid; /* thread id; 0: the slot is free */
	vs_s32 tgid;
	vs_u32 vm;
	vs_u32 flags;
	vs_s32 waiting_cpu; /* CPU for which the thread waits, runnable; -1: none */
	vs_u32 off_state;   /* enum vs_task_state at the last switch-out; 0: runnable, or it runs */
	vs_u64 off_time;    /* CLOCK_MONOTONIC ns of the last switch-out; 0: none seen yet */
	vs_s32 waker;       /* task that is waking the thread; -1: none */
	vs_u32 halt;        /* enum vs_halt */
	vs_u64 short_ns;    /* sum of short waits, ns; see short_wait_due() */
	vs_u32 reserved[4];
};

/* A stack: kept per vCPU thread at switch-out, and sent to user space. */
struct vs_stack {
	vs_u64 time;
	vs_u64 wait_ns;
	vs_s32 tid, tgid;
	vs_s32 explains; /* thread whose wait the stack explains: tid, or the thread it woke */
	vs_u16 cpu;
	vs_u16 role; /* enum vs_stack_role; 0: the buffer holds no stack */
	char comm[16];
	vs_u64 regs[VS_STACK_REGS]; /* registers in DWARF's order */
	vs_u64 kernel[VS_STACK_FRAMES_MAX];
	vs_u32 n_kernel;
	vs_u32 has_user;
	vs_u32 user_bytes;
	vs_u32 copies;   /* number of copies into this buffer */
	vs_u64 user_end; /* end of the thread's stack mapping, as last found; 0: unknown */
	vs_u32 sampled;  /* 1: represents the thread's shorter waits as well */
	vs_u32 event;    /* id of the chosen event of a hit; 0: not the stack of a hit */
	unsigned char user[VS_STACK_USER_BYTES];
};

/* Where the return addresses of a kept kernel stack lie (kept_stack.h). */
struct vs_kernel_walk {
	vs_u64 top;     /* address of the task's user registers, where its kernel stack begins */
	vs_u64 context; /* address of the program's context, which lies on that stack */
	vs_u32 first;   /* innermost frame whose return address lies above the context */
	vs_u32 n;       /* number of frames from there whose place is known; 0: none */
	vs_u32 found;   /* the same, while they are searched */
	vs_u32 reserved;
	vs_u16 above[VS_STACK_FRAMES_MAX]; /* bytes above the context, innermost first */
};

/* The last stack of a vCPU thread that went to sleep. */
struct vs_kept_stack {
	struct vs_kernel_walk walk;
	struct vs_stack stack;
};

/* The current VM-exit of a vCPU thread, at level summary. It becomes events if the thread leaves
 * its pCPU during the exit, or if the exit takes at least exit_threshold_ns. Otherwise it is
 * counted. */
struct vs_exit {
	vs_u64 begin;  /* CLOCK_MONOTONIC ns; 0: no exit whose begin was seen */
	vs_u64 reason; /* reason | isa << 32 */
	vs_u64 rip;
	vs_u64 vmm_begin; /* CLOCK_MONOTONIC ns of the return to the VMM; 0: none */
	vs_u64 vmm_reason, vmm_errno;
	vs_u32 emitted; /* 1: the exit has become events */
	vs_u32 reserved;
};

struct vs_exit_key {
	vs_u64 reason; /* reason | isa << 32 */
	vs_s32 tid;
	vs_u32 reserved;
};

/* Counts of the exits of one vCPU thread for one reason. Only that thread writes to it. */
struct vs_exit_cell {
	vs_u64 count;
	vs_u64 kernel_ns, vmm_ns;
	vs_u64 max_ns;
	vs_u32 vm;
	vs_u32 reserved;
	vs_u64 buckets[VS_EXIT_BUCKETS];
};

struct vs_announced {
	vs_u64 comm[2];
	vs_s32 tgid;
	vs_s32 tid;
};

/* The followed threads whose tid modulo VS_BUCKETS is the same. */
struct vs_bucket {
	vs_u32 n;
	vs_u32 slot; /* of the one that was looked up last, if its vs_followed.tid still says so */
};

#endif
