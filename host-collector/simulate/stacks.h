/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Provides the stacks of vCPU threads after a long sleep and of their wakers, and writes them to
 * the recording as the collector does. A run uses the stacks of one kernel: recorded on real hosts
 * where such a recording exists (recorded_stacks.def), else with names from the sources of Linux
 * 6.1 to 6.12 and QEMU 8.
 */
#ifndef SIMULATE_STACKS_H
#define SIMULATE_STACKS_H

#include "host-collector/simulate/capture.h"

enum { SIM_STACK_FRAMES = 24, SIM_STACKS_KNOWN = 4096, SIM_STACKS_PENDING = 1024 };

/* Leaf first, kernel frames before user frames. */
struct sim_stack {
	const char *kernel[SIM_STACK_FRAMES], *user[SIM_STACK_FRAMES];
};

extern const struct sim_stack sim_stack_halt, sim_stack_signal_stop, sim_stack_ptrace_stop,
	sim_stack_freezer, sim_stack_qemu_idle, sim_stack_big_lock, sim_stack_pflash_write,
	sim_stack_block_sync, sim_stack_swap_in, sim_stack_userfault, sim_stack_mmap_lock,
	sim_stack_split_lock, sim_stack_reclaim, sim_stack_memcg, sim_stack_unlock,
	sim_stack_interrupt, sim_stack_uffd_copy, sim_stack_cont;

enum sim_kernel { SIM_KERNEL_SOURCES, SIM_KERNEL_6_1, SIM_KERNEL_6_12, SIM_KERNEL_COUNT };

struct sim_stack_record {
	int64_t t, wait_ns;
	int32_t pid, explains;
	enum vs_stack_role role;
	const struct sim_stack *stack;
};

struct sim_stacks {
	struct sim_capture *capture; /* the host's capture */
	enum sim_kernel kernel;
	size_t n_known, n_pending;
	struct {
		const struct sim_stack *stack;
		int32_t pid;
	} known[SIM_STACKS_KNOWN];
	struct sim_stack_record pending[SIM_STACKS_PENDING];
	uint32_t seq;
	uint64_t named;
	struct message_stack message;
};

/* `tid` runs again after a sleep of wait_ns. stack NULL: no stack was taken. The record may be
 * lost. */
void sim_stacks_waiter(struct sim_stacks *s, int32_t tid, const struct sim_stack *stack,
		       int64_t wait_ns);
/* `waker` wakes `woken`, which has slept for wait_ns. */
void sim_stacks_waker(struct sim_stacks *s, int32_t waker, int32_t woken,
		      const struct sim_stack *stack, int64_t wait_ns);
/* Writes the stacks since the last call. Call it after a drain of the capture. */
void sim_stacks_flush(struct sim_stacks *s);

#endif
