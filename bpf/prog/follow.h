/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the host's programs and userspace share about the threads that are followed. Included by
 * BPF programs and by userspace.
 *
 * A followed thread has a slot in a memory-mapped array; a hash finds the slot by tid. Both sides
 * change slots only by atomic operations on single fields. Whoever succeeds in deleting the hash
 * entry owns the slot from then on and puts it back onto the stack of free ones: the kernel at the
 * thread's last switch, userspace when the thread is removed (after programs that may still hold
 * the slot have finished).
 */
#ifndef PROG_FOLLOW_H
#define PROG_FOLLOW_H

#include "proto/event.h"
#include "proto/exit_bucket.h"

enum {
	VS_FOLLOWED_MAX = 16384, /* slots; 0 is never used */
	VS_VMS_MAX = 4096,       /* VMs that have a level of their own; a power of two */
	VS_BUCKETS = 4096,
	VS_EXIT_CELLS_MAX_KERNEL = 16384, /* vCPU threads times reasons */
	VS_STACK_FRAMES_MAX = 64,
	VS_STACK_REGS = 17,
	VS_STACK_USER_BYTES = 16384,
	/* Of a thread's short waits, one brings its stack each time they come to this much... */
	VS_SHORT_EVERY_NS = 10000000,
	VS_SHORT_LEAST_NS = 100000, /* (shorter ones do not count) */
	/* ... and on the whole host no more than so many in this time. */
	VS_SHORT_WINDOW_LOG2_NS = 25,
	VS_SHORT_PER_WINDOW = 32,
	VS_SHORT_RING_BYTES = 1 << 20, /* while no more wait to be taken */
};

/* Does the wait with which a thread's short waits come to *short_ns bring its stack? */
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

/* HLT, in which a vCPU waits because its guest wants to. exit: reason | isa << 32. */
static inline __attribute__((always_inline)) vs_u32 exit_is_hlt(vs_u64 exit)
{
	return exit == (1ull << 32 | 12) || exit == (2ull << 32 | 0x78);
}

enum vs_followed_flags {
	VS_FOLLOWED_VCPU = 1,
	/* A thread that a followed process created meanwhile; goes with the process. */
	VS_FOLLOWED_BY_KERNEL = 2,
};

enum vs_halt {
	VS_HALT_NONE,
	VS_HALT_EXIT,  /* the guest has halted: the next sleep is that */
	VS_HALT_SLEEP, /* it sleeps for that */
};

struct vs_followed {
	vs_s32 tid; /* 0: free */
	vs_s32 tgid;
	vs_u32 vm;
	vs_u32 flags;
	vs_s32 waiting_cpu; /* where it waits, runnable, for the CPU; -1: it does not */
	vs_u32 off_state;   /* why it left its CPU last, enum vs_task_state; 0: preempted */
	vs_u64 off_time;    /* CLOCK_MONOTONIC ns of that; 0: not seen yet */
	vs_s32 waker;       /* who is waking it, -1: nobody */
	vs_u32 halt;        /* enum vs_halt */
	vs_u64 short_ns;    /* of short waits, since one of them brought its stack */
	vs_u32 reserved[4];
};

/* A stack, as kept per vCPU thread at switch-out and as sent to userspace. */
struct vs_stack {
	vs_u64 time;
	vs_u64 wait_ns;
	vs_s32 tid, tgid;
	vs_s32 explains;
	vs_u16 cpu;
	vs_u16 role; /* enum vs_stack_role; 0: nothing kept */
	char comm[16];
	vs_u64 regs[VS_STACK_REGS]; /* DWARF order */
	vs_u64 kernel[VS_STACK_FRAMES_MAX];
	vs_u32 n_kernel;
	vs_u32 has_user;
	vs_u32 user_bytes;
	vs_u32 copies;   /* how often it was filled */
	vs_u64 user_end; /* where the mapping of this thread's stack was found to end; 0 unknown */
	vs_u32 sampled;  /* it stands for short waits */
	vs_u32 reserved;
	unsigned char user[VS_STACK_USER_BYTES];
};

/*
 * At summary level: the VM-exit that a vCPU thread is in. It becomes events once the thread leaves
 * its pCPU in it, or once it is over and took as long as the threshold; else it is counted.
 */
struct vs_exit {
	vs_u64 begin;  /* CLOCK_MONOTONIC ns; 0: in none that was seen to begin */
	vs_u64 reason; /* reason | isa << 32 */
	vs_u64 rip;
	vs_u64 vmm_begin; /* it went on to the VMM; 0: it did not */
	vs_u64 vmm_reason, vmm_errno;
	vs_u32 told; /* it has become events */
	vs_u32 reserved;
};

struct vs_exit_key {
	vs_u64 reason; /* reason | isa << 32 */
	vs_s32 tid;
	vs_u32 reserved;
};

/* Only its own vCPU thread writes to a cell. */
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
	vs_u32 reserved;
};

#endif
