/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the state machines, with stories whose spans are known to the microsecond. */
#include "tests/unit/model_script.h"

#include <stdlib.h>

struct story {
	const char *name;
	const char *accelerator;
	size_t n_events;
	const struct timeline_event *events;
	size_t n_expected;
	const struct expected_span *expected;
	/* The span to look into, and what it must say; zeros are not checked. */
	size_t look;
	struct vcpu_span detail;
	bool no_signal;
};

#define EVENTS(...)                                                                                \
	.n_events = COUNT(((const struct timeline_event[]){__VA_ARGS__})),                         \
	.events = (const struct timeline_event[])                                                  \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define EXPECT(...)                                                                                \
	.n_expected = COUNT(((const struct expected_span[]){__VA_ARGS__})),                        \
	.expected = (const struct expected_span[])                                                 \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define START SWITCH(HOST, 0, 0, 0, TID0, 0)

/* The stacks every story may name. */
enum {
	STACK_HALT = 1,
	STACK_LOCK,
	STACK_IDLE_LOOP,
	STACK_FREEZER,
	STACK_FUTEX,
	STACK_WAKER,
	STACK_THAW
};

static void stacks(struct model *m)
{
	static const char *const halt[] = {"schedule", "kvm_vcpu_block", "kvm_arch_vcpu_ioctl_run"};
	static const char *const lock[] = {"futex_wait", "__lll_lock_wait",
					   "qemu_mutex_lock_iothread_impl"};
	static const char *const loop[] = {"futex_wait", "pthread_cond_wait", "qemu_cond_wait_impl",
					   "qemu_wait_io_event"};
	static const char *const freezer[] = {"schedule", "do_freezer_trap", "get_signal"};
	static const char *const futex[] = {"schedule", "futex_wait_queue", "futex_wait"};
	static const char *const thaw[] = {"try_to_wake_up", "__thaw_task", "freezer_apply_state"};

	script_stack(m, STACK_HALT, TID0, halt, 3);
	script_stack(m, STACK_LOCK, TID0, lock, 3);
	script_stack(m, STACK_IDLE_LOOP, TID0, loop, 4);
	script_stack(m, STACK_FREEZER, TID0, freezer, 3);
	script_stack(m, STACK_FUTEX, TID0, futex, 3);
	script_stack(m, STACK_THAW, 77, thaw, 3);
}

static const struct story stories[] = {
	{.name = "unknown until the first event of the thread",
	 EVENTS(SWITCH(HOST, 0, 1, 7, 8, 0), SWITCH(HOST, 50, 0, 0, TID0, 0),
		SWITCH(HOST, 80, 0, TID0, 0, 1)),
	 EXPECT({0, 50, VCPU_UNKNOWN}, {50, 80, VCPU_GUEST})},
	{.name = "preempted: runnable, the longest holder is named",
	 EVENTS(START, SWITCH(HOST, 10, 0, TID0, 500, 0), SWITCH(HOST, 30, 0, 500, 501, 1),
		SWITCH(HOST, 90, 0, 501, 502, 1), SWITCH(HOST, 100, 0, 502, TID0, 1)),
	 EXPECT({0, 10, VCPU_GUEST}, {10, 100, VCPU_RUNNABLE}),
	 .look = 1,
	 .detail = {.holder_pid = 501, .holder_ns = 60000}},
	{.name = "a pCPU that idles while the thread is runnable holds nobody",
	 EVENTS(START, SWITCH(HOST, 10, 0, TID0, 0, 0), SWITCH(HOST, 90, 0, 0, TID0, 0)),
	 EXPECT({0, 10, VCPU_GUEST}, {10, 90, VCPU_RUNNABLE}),
	 .look = 1,
	 .detail = {.pcpu_idle_ns = 80000}},
	{.name = "woken but not run: the wait for the CPU is no sleep",
	 EVENTS(START, SWITCH(HOST, 10, 0, TID0, 500, 1), WAKEUP(HOST, 20, 1, TID0, 77, 0),
		SWITCH(HOST, 320, 0, 500, TID0, 0)),
	 EXPECT({0, 10, VCPU_GUEST}, {10, 20, VCPU_HALTED}, {20, 320, VCPU_RUNNABLE}),
	 .look = 2,
	 .detail = {.holder_pid = 500, .holder_ns = 300000}},
	{.name = "the waker of a sleep is named",
	 EVENTS(START, SWITCH(HOST, 10, 0, TID0, 0, 1), WAKEUP(HOST, 20, 1, TID0, 77, 0),
		SWITCH(HOST, 20, 0, 0, TID0, 0)),
	 EXPECT({0, 10, VCPU_GUEST}, {10, 20, VCPU_HALTED}),
	 .look = 1,
	 .detail = {.waker_pid = 77}},
	{.name = "waiting on another pCPU after a migration",
	 EVENTS(START, SWITCH(HOST, 10, 0, TID0, 500, 0), MIGRATE(HOST, 40, 1, TID0, 0, 1),
		SWITCH(HOST, 60, 1, 600, TID0, 0)),
	 EXPECT({0, 10, VCPU_GUEST}, {10, 60, VCPU_RUNNABLE}),
	 .look = 1,
	 .detail = {.holder_pid = 500, .holder_ns = 30000, .pcpu = 1}},
	{.name = "stopped by a signal, the sender is named; SIGCONT makes it runnable",
	 EVENTS(START, SIGNAL(5, QEMU, 900, 19), SWITCH(HOST, 10, 0, TID0, 0, 0x104),
		SIGNAL(400, QEMU, 900, 18), WAKEUP(HOST, 410, 1, TID0, 900, 0),
		SWITCH(HOST, 420, 0, 0, TID0, 0)),
	 EXPECT({0, 10, VCPU_GUEST}, {10, 410, VCPU_STOPPED}, {410, 420, VCPU_RUNNABLE}),
	 .look = 1,
	 .detail = {.signal_pid = 900, .signal_number = 19}},
	{.name = "a signal of long ago did not make a debugger stop the thread",
	 EVENTS(START, SIGNAL(5, QEMU, 900, 19), SWITCH(HOST, 2000000, 0, TID0, 0, 8),
		WAKEUP(HOST, 2000400, 1, TID0, 901, 0), SWITCH(HOST, 2000400, 0, 0, TID0, 0)),
	 EXPECT({0, 2000000, VCPU_GUEST}, {2000000, 2000400, VCPU_STOPPED}),
	 .look = 1,
	 .no_signal = true},
	{.name = "a signal while preempted stops the thread only when it next runs",
	 EVENTS(START, SWITCH(HOST, 10, 0, TID0, 500, 0), SIGNAL(20, QEMU, 900, 19),
		SWITCH(HOST, 60, 0, 500, TID0, 0), SWITCH(HOST, 61, 0, TID0, 500, 0x104),
		WAKEUP(HOST, 400, 1, TID0, 900, 0), SWITCH(HOST, 400, 0, 500, TID0, 0)),
	 EXPECT({0, 10, VCPU_GUEST}, {10, 60, VCPU_RUNNABLE}, {60, 61, VCPU_GUEST},
		{61, 400, VCPU_STOPPED}),
	 .look = 3,
	 .detail = {.signal_pid = 900}},
	{.name = "a sleep whose switch-out is missing is known from its stack",
	 EVENTS(START, EVENT(HOST, 12000, 0, LOST, 0, 0, 1, 0),
		STACK(800000, WAITER, TID0, TID0, STACK_LOCK, 790000),
		WAKEUP(HOST, 801000, 1, TID0, 77, 0), SWITCH(HOST, 802000, 0, 0, TID0, 0)),
	 EXPECT({0, 10000, VCPU_GUEST}, {10000, 801000, VCPU_BLOCKED},
		{801000, 802000, VCPU_RUNNABLE}),
	 .look = 1,
	 .detail = {.waker_pid = 77}},
	{.name = "one that decides nothing may be a preempted thread's",
	 EVENTS(START, EVENT(HOST, 12000, 0, LOST, 0, 0, 1, 0),
		STACK(800000, WAITER, TID0, TID0, STACK_FUTEX, 790000),
		WAKEUP(HOST, 801000, 1, TID0, 77, 0), SWITCH(HOST, 802000, 0, 0, TID0, 0)),
	 EXPECT({0, 801000, VCPU_UNKNOWN}, {801000, 802000, VCPU_RUNNABLE})},
	{.name = "a wake-up that is missing is known from the waker's stack",
	 EVENTS(START, SWITCH(HOST, 10000, 0, TID0, 0, 2),
		STACK(300000, WAKER, 77, TID0, STACK_WAKER, 290000),
		EVENT(HOST, 300001, 0, LOST, 0, 0, 1, 1), SWITCH(HOST, 310000, 0, 0, 500, 0),
		SWITCH(HOST, 700000, 0, 500, TID0, 1)),
	 EXPECT({0, 10000, VCPU_GUEST}, {10000, 300000, VCPU_BLOCKED},
		{300000, 700000, VCPU_RUNNABLE}),
	 .look = 2,
	 .detail = {.holder_pid = 500, .holder_ns = 390000000}},
	{.name = "a wake-up that is missing and that nothing tells of was in the gap",
	 EVENTS(START, SWITCH(HOST, 10000, 0, TID0, 0, 2), SWITCH(HOST, 20000, 0, 0, 500, 0),
		EVENT(HOST, 30000, 0, LOST, 0, 0, 1, 1), SWITCH(HOST, 40000, 0, 500, 501, 0),
		SWITCH(HOST, 70000, 0, 501, TID0, 1)),
	 EXPECT({0, 10000, VCPU_GUEST}, {10000, 30000, VCPU_BLOCKED}, {30000, 40000, VCPU_UNKNOWN},
		{40000, 70000, VCPU_RUNNABLE}),
	 .look = 3,
	 .detail = {.holder_pid = 501, .holder_ns = 30000000}},
	{.name = "single missing events with others seen between them are no turn",
	 EVENTS(START, SWITCH(HOST, 10, 0, TID0, 500, 0), EVENT(HOST, 50, 0, LOST, 0, 0, 1, 1),
		SWITCH(HOST, 60, 0, 500, 501, 1), EVENT(HOST, 70, 0, LOST, 0, 0, 1, 1),
		SWITCH(HOST, 80, 0, 501, 502, 1), SWITCH(HOST, 100, 0, 502, TID0, 1)),
	 EXPECT({0, 10, VCPU_GUEST}, {10, 100, VCPU_RUNNABLE})},
	{.name = "two missing events may be a turn, and are a hole in the wait",
	 EVENTS(START, SWITCH(HOST, 10, 0, TID0, 500, 0), EVENT(HOST, 50, 0, LOST, 0, 0, 2, 1),
		SWITCH(HOST, 60, 0, 501, 502, 1), SWITCH(HOST, 100, 0, 502, TID0, 1)),
	 EXPECT({0, 10, VCPU_GUEST}, {10, 50, VCPU_RUNNABLE}, {50, 60, VCPU_UNKNOWN},
		{60, 100, VCPU_RUNNABLE})},
	{.name = "and it slept since, as its wake-up shows",
	 EVENTS(START, SWITCH(HOST, 10, 0, TID0, 500, 0), EVENT(HOST, 50, 0, LOST, 0, 0, 2, 1),
		SWITCH(HOST, 60, 0, 501, 502, 1), WAKEUP(HOST, 90, 1, TID0, 7, 0),
		SWITCH(HOST, 100, 0, 502, TID0, 1)),
	 EXPECT({0, 10, VCPU_GUEST}, {10, 50, VCPU_RUNNABLE}, {50, 60, VCPU_UNKNOWN},
		{60, 90, VCPU_UNKNOWN}, {90, 100, VCPU_RUNNABLE})},
	{.name = "a gap elsewhere that ended earlier does not close one here",
	 EVENTS(START, SWITCH(HOST, 10, 0, TID0, 500, 0), EVENT(HOST, 20, 0, LOST, 0, 0, 2, 0),
		EVENT(HOST, 50, 1, LOST, 0, 0, 2, 1), SWITCH(HOST, 60, 1, 7, 8, 1),
		SWITCH(HOST, 80, 0, 501, 502, 1), SWITCH(HOST, 100, 0, 502, TID0, 1)),
	 EXPECT({0, 10, VCPU_GUEST}, {10, 80, VCPU_UNKNOWN}, {80, 100, VCPU_RUNNABLE})},
	{.name = "traced and frozen are stopped",
	 EVENTS(START, SWITCH(HOST, 10, 0, TID0, 0, 8), WAKEUP(HOST, 20, 1, TID0, 1, 0),
		SWITCH(HOST, 20, 0, 0, TID0, 0), SWITCH(HOST, 30, 0, TID0, 0, 0x8000),
		WAKEUP(HOST, 40, 1, TID0, 1, 0), SWITCH(HOST, 40, 0, 0, TID0, 0)),
	 EXPECT({0, 10, VCPU_GUEST}, {10, 20, VCPU_STOPPED}, {20, 30, VCPU_GUEST},
		{30, 40, VCPU_STOPPED})},
	{.name = "the freezer's stack makes an ordinary sleep a stop",
	 EVENTS(START, SWITCH(HOST, 10000, 0, TID0, 0, 1), WAKEUP(HOST, 60000, 1, TID0, 1, 0),
		STACK(60001, WAITER, TID0, TID0, STACK_FREEZER, 50000),
		SWITCH(HOST, 60002, 0, 0, TID0, 0)),
	 EXPECT({0, 10000, VCPU_GUEST}, {10000, 60000, VCPU_STOPPED},
		{60000, 60002, VCPU_RUNNABLE})},
	{.name = "a stack in QEMU's lock is blocked, and both stacks arrive",
	 EVENTS(START, SWITCH(HOST, 10000, 0, TID0, 0, 1), WAKEUP(HOST, 60000, 1, TID0, 77, 0),
		STACK(60001, WAITER, TID0, TID0, STACK_LOCK, 50000),
		STACK(60001, WAKER, 77, TID0, STACK_WAKER, 50000),
		SWITCH(HOST, 60002, 0, 0, TID0, 0)),
	 EXPECT({0, 10000, VCPU_GUEST}, {10000, 60000, VCPU_BLOCKED},
		{60000, 60002, VCPU_RUNNABLE}),
	 .look = 1,
	 .detail = {.waiter_stack = STACK_LOCK,
		    .waker_stack = STACK_WAKER,
		    .wait_class = WAIT_VMM_LOCK}},
	{.name = "woken from QEMU's lock by the freezer is a stop",
	 EVENTS(START, SWITCH(HOST, 10000, 0, TID0, 0, 1), WAKEUP(HOST, 60000, 1, TID0, 77, 0),
		STACK(60001, WAITER, TID0, TID0, STACK_LOCK, 50000),
		STACK(60001, WAKER, 77, TID0, STACK_THAW, 50000),
		SWITCH(HOST, 60002, 0, 0, TID0, 0)),
	 EXPECT({0, 10000, VCPU_GUEST}, {10000, 60000, VCPU_STOPPED},
		{60000, 60002, VCPU_RUNNABLE})},
	{.name = "the freezer's stack comes after the thread ran again",
	 EVENTS(START, SWITCH(HOST, 10000, 0, TID0, 0, 1), WAKEUP(HOST, 60000, 1, TID0, 77, 0),
		SWITCH(HOST, 60000, 0, 0, TID0, 0),
		STACK(90000, WAITER, TID0, TID0, STACK_LOCK, 50000),
		STACK(90000, WAKER, 77, TID0, STACK_THAW, 50000)),
	 EXPECT({0, 10000, VCPU_GUEST}, {10000, 60000, VCPU_STOPPED}, {60000, 90000, VCPU_GUEST})},
	{.name = "a stack that comes after the thread ran again still explains",
	 EVENTS(START, SWITCH(HOST, 10000, 0, TID0, 0, 1), WAKEUP(HOST, 60000, 1, TID0, 77, 0),
		SWITCH(HOST, 60000, 0, 0, TID0, 0), SWITCH(HOST, 61000, 0, TID0, 0, 1),
		WAKEUP(HOST, 62000, 1, TID0, 77, 0), SWITCH(HOST, 62000, 0, 0, TID0, 0),
		STACK(90000, WAITER, TID0, TID0, STACK_LOCK, 50000)),
	 EXPECT({0, 10000, VCPU_GUEST}, {10000, 60000, VCPU_BLOCKED}, {60000, 61000, VCPU_GUEST},
		{61000, 62000, VCPU_HALTED}, {62000, 90000, VCPU_GUEST})},
	{.name = "QEMU's idle loop: a halt under TCG",
	 .accelerator = "tcg",
	 EVENTS(START, SWITCH(HOST, 10000, 0, TID0, 0, 1), WAKEUP(HOST, 60000, 1, TID0, 1, 0),
		STACK(60000, WAITER, TID0, TID0, STACK_IDLE_LOOP, 50000),
		SWITCH(HOST, 60000, 0, 0, TID0, 0)),
	 EXPECT({0, 10000, VCPU_GUEST}, {10000, 60000, VCPU_HALTED})},
	{.name = "QEMU's idle loop under TCG while the guest ran a task: a pause",
	 .accelerator = "tcg",
	 EVENTS(START, SWITCH(VM, 5, 0, 0, 42, 0), SWITCH(HOST, 10000, 0, TID0, 0, 1),
		WAKEUP(HOST, 60000, 1, TID0, 1, 0),
		STACK(60000, WAITER, TID0, TID0, STACK_IDLE_LOOP, 50000),
		SWITCH(HOST, 60000, 0, 0, TID0, 0)),
	 EXPECT({0, 10000, VCPU_GUEST}, {10000, 60000, VCPU_STOPPED})},
	{.name = "QEMU's idle loop: a pause under KVM",
	 .accelerator = "kvm",
	 EVENTS(START, SWITCH(HOST, 10000, 0, TID0, 0, 1), WAKEUP(HOST, 60000, 1, TID0, 1, 0),
		STACK(60000, WAITER, TID0, TID0, STACK_IDLE_LOOP, 50000),
		SWITCH(HOST, 60000, 0, 0, TID0, 0)),
	 EXPECT({0, 10000, VCPU_GUEST}, {10000, 60000, VCPU_STOPPED})},
	{.name = "no stack: the guest ran a task, so it was blocked",
	 EVENTS(START, SWITCH(VM, 5, 0, 0, 42, 0), SWITCH(HOST, 10, 0, TID0, 0, 1),
		WAKEUP(HOST, 60, 1, TID0, 1, 0), SWITCH(HOST, 60, 0, 0, TID0, 0)),
	 EXPECT({0, 10, VCPU_GUEST}, {10, 60, VCPU_BLOCKED})},
	{.name = "no stack: the guest was idle, so it was halted",
	 EVENTS(START, SWITCH(VM, 5, 0, 42, 0, 1), SWITCH(HOST, 10, 0, TID0, 0, 1),
		WAKEUP(HOST, 60, 1, TID0, 1, 0), SWITCH(VM, 59, 0, 0, 42, 0),
		SWITCH(HOST, 60, 0, 0, TID0, 0)),
	 EXPECT({0, 10, VCPU_GUEST}, {10, 60, VCPU_HALTED})},
	{.name = "a bare futex leaves the decision to the guest's account",
	 EVENTS(START, SWITCH(VM, 5, 0, 42, 0, 1), SWITCH(HOST, 10000, 0, TID0, 0, 1),
		WAKEUP(HOST, 60000, 1, TID0, 1, 0),
		STACK(60000, WAITER, TID0, TID0, STACK_FUTEX, 50000),
		SWITCH(HOST, 60000, 0, 0, TID0, 0)),
	 EXPECT({0, 10000, VCPU_GUEST}, {10000, 60000, VCPU_HALTED}),
	 .look = 1,
	 .detail = {.wait_class = WAIT_FUTEX}},
	{.name = "an uninterruptible sleep is no halt",
	 EVENTS(START, SWITCH(HOST, 10, 0, TID0, 0, 2), WAKEUP(HOST, 60, 1, TID0, 1, 0),
		SWITCH(HOST, 60, 0, 0, TID0, 0)),
	 EXPECT({0, 10, VCPU_GUEST}, {10, 60, VCPU_BLOCKED})},
	{.name = "an exit that is told when it is over: until then nothing was, so it was in the guest",
	 .accelerator = "kvm",
	 EVENTS(START, KVM(10, 0, ENTRY, TID0, 0),
		EVENT(HOST, 1900, 0, KVM_EXIT, TID0, 1500, 48 | 1ull << 32, 0),
		EVENT(HOST, 1900, 0, KVM_USERSPACE_EXIT, TID0, 1000, 6, 0),
		KVM(1900, 0, ENTRY, TID0, 0), SWITCH(HOST, 2000, 0, TID0, 0, 1)),
	 EXPECT({0, 10, VCPU_UNKNOWN}, {10, 400, VCPU_GUEST}, {400, 900, VCPU_KVM},
		{900, 1900, VCPU_VMM}, {1900, 2000, VCPU_GUEST})},
	{.name = "before the first event of KVM nobody knows whether it was in the guest",
	 .accelerator = "kvm",
	 EVENTS(START, SWITCH(HOST, 5, 0, TID0, 1, 0), SWITCH(HOST, 8, 0, 1, TID0, 0),
		KVM(10, 0, ENTRY, TID0, 0), KVM(20, 0, EXIT, TID0, 0x30 | 1ull << 32)),
	 EXPECT({0, 5, VCPU_UNKNOWN}, {5, 8, VCPU_RUNNABLE}, {8, 10, VCPU_UNKNOWN},
		{10, 20, VCPU_GUEST})},
	{.name = "without events of KVM, on a pCPU counts as in the guest",
	 EVENTS(START, SWITCH(HOST, 5, 0, TID0, 1, 0), SWITCH(HOST, 8, 0, 1, TID0, 0),
		SWITCH(HOST, 20, 0, TID0, 1, 0)),
	 EXPECT({0, 5, VCPU_GUEST}, {5, 8, VCPU_RUNNABLE}, {8, 20, VCPU_GUEST})},
	{.name = "KVM events split the time on the CPU; HLT sleeps are halts",
	 EVENTS(START, KVM(10, 0, ENTRY, TID0, 0), KVM(20, 0, EXIT, TID0, 0x4e | 1ull << 32),
		KVM(25, 0, USERSPACE_EXIT, TID0, 6), KVM(40, 0, ENTRY, TID0, 0),
		KVM(50, 0, EXIT, TID0, 12 | 1ull << 32), SWITCH(VM, 51, 0, 0, 42, 0),
		SWITCH(HOST, 52, 0, TID0, 0, 1), WAKEUP(HOST, 90, 1, TID0, 1, 0),
		SWITCH(HOST, 90, 0, 0, TID0, 0), KVM(91, 0, ENTRY, TID0, 0),
		KVM(95, 0, EXIT, TID0, 0x78 | 2ull << 32)),
	 EXPECT({0, 10, VCPU_UNKNOWN}, {10, 20, VCPU_GUEST}, {20, 25, VCPU_KVM}, {25, 40, VCPU_VMM},
		{40, 50, VCPU_GUEST}, {50, 52, VCPU_KVM}, {52, 90, VCPU_HALTED}, {90, 91, VCPU_KVM},
		{91, 95, VCPU_GUEST})},
	{.name = "a sleep inside another exit is blocked, whatever the guest did",
	 EVENTS(START, KVM(10, 0, ENTRY, TID0, 0), KVM(20, 0, EXIT, TID0, 0x30 | 1ull << 32),
		SWITCH(VM, 5, 0, 42, 0, 1), SWITCH(HOST, 30, 0, TID0, 0, 1),
		WAKEUP(HOST, 60, 1, TID0, 1, 0), SWITCH(HOST, 60, 0, 0, TID0, 0)),
	 EXPECT({0, 10, VCPU_UNKNOWN}, {10, 20, VCPU_GUEST}, {20, 30, VCPU_KVM},
		{30, 60, VCPU_BLOCKED})},
	{.name = "a sleep whose stack is due and does not come may have been any",
	 EVENTS(START, SWITCH(VM, 5, 0, 0, 42, 0), SWITCH(HOST, 10000, 0, TID0, 0, 1),
		WAKEUP(HOST, 40000, 1, TID0, 1, 0), SWITCH(HOST, 40000, 0, 0, TID0, 0),
		STACK(40000, WAITER, TID0, TID0, STACK_LOCK, 30000),
		SWITCH(HOST, 50000, 0, TID0, 0, 1), WAKEUP(HOST, 900000, 1, TID0, 1, 0),
		SWITCH(HOST, 900000, 0, 0, TID0, 0), SWITCH(HOST, 1000000, 0, TID0, 0, 1),
		WAKEUP(HOST, 1020000, 1, TID0, 1, 0), SWITCH(HOST, 1020000, 0, 0, TID0, 0),
		SWITCH(HOST, 1500000, 0, TID0, 0, 2), WAKEUP(HOST, 1600000, 1, TID0, 1, 0),
		SWITCH(HOST, 1600000, 0, 0, TID0, 0), SWITCH(HOST, 2000000, 0, TID0, 0, 1)),
	 EXPECT({0, 10000, VCPU_GUEST}, {10000, 40000, VCPU_BLOCKED}, {40000, 50000, VCPU_GUEST},
		{50000, 900000, VCPU_UNKNOWN}, {900000, 1000000, VCPU_GUEST},
		{1000000, 1020000, VCPU_BLOCKED}, {1020000, 1500000, VCPU_GUEST},
		{1500000, 1600000, VCPU_BLOCKED}, {1600000, 2000000, VCPU_GUEST})},
	{.name = "a sleep in HLT needs no stack; a second one in the same exit does",
	 EVENTS(START, KVM(10, 0, ENTRY, TID0, 0), KVM(1000, 0, EXIT, TID0, 12 | 1ull << 32),
		SWITCH(HOST, 10000, 0, TID0, 0, 1), WAKEUP(HOST, 40000, 1, TID0, 1, 0),
		SWITCH(HOST, 40000, 0, 0, TID0, 0),
		STACK(40000, WAITER, TID0, TID0, STACK_HALT, 30000), KVM(40010, 0, ENTRY, TID0, 0),
		KVM(50000, 0, EXIT, TID0, 12 | 1ull << 32), SWITCH(HOST, 50010, 0, TID0, 0, 1),
		WAKEUP(HOST, 200000, 1, TID0, 1, 0), SWITCH(HOST, 200000, 0, 0, TID0, 0),
		SWITCH(HOST, 200010, 0, TID0, 0, 1), WAKEUP(HOST, 300000, 1, TID0, 1, 0),
		SWITCH(HOST, 300000, 0, 0, TID0, 0), KVM(900000, 0, ENTRY, TID0, 0)),
	 EXPECT({0, 10, VCPU_UNKNOWN}, {10, 1000, VCPU_GUEST}, {1000, 10000, VCPU_KVM},
		{10000, 40000, VCPU_HALTED}, {40000, 40010, VCPU_KVM}, {40010, 50000, VCPU_GUEST},
		{50000, 50010, VCPU_KVM}, {50010, 200000, VCPU_HALTED}, {200000, 200010, VCPU_KVM},
		{200010, 300000, VCPU_UNKNOWN}, {300000, 900000, VCPU_KVM})},
	{.name = "loss on its pCPU: unknown from the last good event to the next, then proven",
	 EVENTS(START, SWITCH(HOST, 100, 0, 500, 501, 0), LOST(HOST, 150, 0),
		SWITCH(HOST, 200, 0, 600, 601, 0), SWITCH(HOST, 300, 0, 601, TID0, 0),
		SWITCH(HOST, 310, 0, TID0, 0, 1)),
	 EXPECT({0, 100, VCPU_GUEST}, {100, 200, VCPU_UNKNOWN}, {200, 300, VCPU_RUNNABLE},
		{300, 310, VCPU_GUEST})},
	{.name = "loss on its pCPU, and the next event finds it running",
	 EVENTS(START, LOST(HOST, 50, 0), SWITCH(HOST, 80, 0, TID0, 0, 1)),
	 EXPECT({0, 80, VCPU_UNKNOWN})},
	{.name = "loss on another pCPU cannot move a running thread",
	 EVENTS(START, SWITCH(HOST, 10, 1, 5, 6, 0), LOST(HOST, 50, 1),
		SWITCH(HOST, 60, 1, 6, 5, 0), SWITCH(HOST, 80, 0, TID0, 0, 1)),
	 EXPECT({0, 80, VCPU_GUEST})},
	{.name = "loss anywhere may hide the wake-up of a sleeper",
	 EVENTS(START, SWITCH(HOST, 20, 0, TID0, 0, 1), SWITCH(HOST, 40, 1, 5, 6, 0),
		LOST(HOST, 50, 1), SWITCH(HOST, 60, 1, 6, 5, 0), WAKEUP(HOST, 80, 1, TID0, 5, 0),
		SWITCH(HOST, 90, 0, 0, TID0, 0)),
	 EXPECT({0, 20, VCPU_GUEST}, {20, 40, VCPU_HALTED}, {40, 80, VCPU_UNKNOWN},
		{80, 90, VCPU_RUNNABLE})},
	{.name = "lost stacks make nobody unsure",
	 EVENTS(START, LOST(HOST, 50, VS_CPU_COLLECTOR), SWITCH(HOST, 80, 0, TID0, 0, 1)),
	 EXPECT({0, 80, VCPU_GUEST})},
	{.name = "a switch that nobody saw leaves its span unknown",
	 EVENTS(START, SWITCH(HOST, 20, 1, 0, TID0, 0), SWITCH(HOST, 30, 1, TID0, 0, 1)),
	 EXPECT({0, 20, VCPU_UNKNOWN}, {20, 30, VCPU_GUEST})},
	{.name = "a switch to a waiting thread that the kernel hid leaves its wait unknown",
	 EVENTS(START, SWITCH(HOST, 20, 0, TID0, 5, 1), WAKEUP(HOST, 40, 0, TID0, 5, 0),
		SWITCH(HOST, 50, 0, 5, 6, 0), SWITCH(HOST, 60, 0, TID0, 0, 1),
		SWITCH(HOST, 80, 0, 0, TID0, 0)),
	 EXPECT({0, 20, VCPU_GUEST}, {20, 40, VCPU_HALTED}, {40, 60, VCPU_UNKNOWN},
		{60, 80, VCPU_HALTED})},
	{.name = "a thread that ended is unknown",
	 EVENTS(START, EVENT(HOST, 20, 0, TASK_EXIT, TID0, QEMU, 0, 0),
		SWITCH(HOST, 30, 0, TID0, 0, 0x80), SWITCH(HOST, 50, 0, 5, 6, 0)),
	 EXPECT({0, 20, VCPU_GUEST}, {20, 30, VCPU_UNKNOWN}, {30, 50, VCPU_UNKNOWN})},
};

static void check_detail(const struct story *story, const struct spans *s)
{
	const struct vcpu_span *is = &s->vcpu[story->look], *want = &story->detail;

	if (want->holder_ns) {
		assert_int_equal(is->holder_pid, want->holder_pid);
		assert_int_equal(is->holder_ns, want->holder_ns);
	}
	if (want->pcpu_idle_ns) {
		assert_int_equal(is->pcpu_idle_ns, want->pcpu_idle_ns);
		assert_int_equal(is->holder_ns, 0);
	}
	if (want->pcpu)
		assert_int_equal(is->pcpu, want->pcpu);
	if (want->waker_pid)
		assert_int_equal(is->waker_pid, want->waker_pid);
	if (want->signal_pid)
		assert_int_equal(is->signal_pid, want->signal_pid);
	if (story->no_signal)
		assert_int_equal(is->signal_number, 0);
	if (want->signal_number)
		assert_int_equal(is->signal_number, want->signal_number);
	if (want->wait_class)
		assert_int_equal(is->wait_class, want->wait_class);
	if (want->waiter_stack)
		assert_int_equal(is->waiter_stack, want->waiter_stack);
	if (want->waker_stack)
		assert_int_equal(is->waker_stack, want->waker_stack);
}

static void vcpu_stories_give_their_spans(void **state)
{
	struct spans *s = malloc(sizeof(*s));

	(void)state;
	for (size_t i = 0; i < COUNT(stories); i++) {
		const struct story *story = &stories[i];
		struct model *m = model_new();

		print_message("  %s\n", story->name);
		script_vm(m, 1, story->accelerator ? story->accelerator : "");
		stacks(m);
		spans_observe(m, s);
		script_run(m, story->events, story->n_events);
		model_finish(m);
		spans_expect_vcpu(s, 0, story->expected, story->n_expected);
		check_detail(story, s);
		model_free(m);
	}
	free(s);
}

static void a_pause_by_the_vmm_is_a_stop(void **state)
{
	static const struct timeline_event before[] = {START, SWITCH(HOST, 1000, 0, TID0, 0, 1)};
	static const struct timeline_event after[] = {WAKEUP(HOST, 9000, 1, TID0, 1, 0),
						      SWITCH(HOST, 9000, 0, 0, TID0, 0)};
	static const struct expected_span expected[] = {{0, 1000, VCPU_GUEST},
							{1000, 9000, VCPU_STOPPED}};
	struct spans *s = malloc(sizeof(*s));
	struct model *m = model_new();

	(void)state;
	script_vm(m, 1, "tcg");
	spans_observe(m, s);
	script_run(m, before, COUNT(before));
	model_vm_paused(m, VM, (struct host_ns){1100000}, true);
	script_run(m, after, COUNT(after));
	model_vm_paused(m, VM, (struct host_ns){9010000}, false);
	model_finish(m);
	spans_expect_vcpu(s, 0, expected, COUNT(expected));
	model_free(m);
	free(s);
}

/* A guest's account is not believed closer to a change than the clocks are wrong, seen or still to
 * come, nor past a gap in which the guest may have switched. */
static void an_uncertain_account_does_not_decide(void **state)
{
	static const struct {
		struct timeline_event guest;
		uint32_t err_us;
		enum vcpu_state sleeps;
	} cases[] = {
		{SWITCH(VM, 9990, 0, 42, 43, 1), 0, VCPU_BLOCKED},
		{SWITCH(VM, 9990, 0, 42, 0, 1), 200, VCPU_HALTED},
		{SWITCH(VM, 9990, 0, 42, 43, 1), 200, VCPU_HALTED},
		{EVENT(VM, 9990, 0, LOST, 0, 0, 1, 9990), 0, VCPU_HALTED},
	};
	static const struct timeline_event before[] = {START, SWITCH(VM, 5, 0, 0, 42, 0)};
	static const struct timeline_event after[] = {
		SWITCH(HOST, 10000, 0, TID0, 0, 1), WAKEUP(HOST, 10100, 1, TID0, 1, 0),
		SWITCH(HOST, 10100, 0, 0, TID0, 0), SWITCH(HOST, 50000, 0, TID0, 0, 1)};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct timeline_event guest = cases[i].guest;
		struct spans *s = malloc(sizeof(*s));
		struct model *m = model_new();

		script_vm(m, 1, "");
		spans_observe(m, s);
		script_run(m, before, COUNT(before));
		guest.err_ns = cases[i].err_us * 1000;
		script_run(m, &guest, 1);
		script_run(m, after, COUNT(after));
		model_finish(m);
		assert_int_equal(s->vcpu[1].state, cases[i].sleeps);
		model_free(m);
		free(s);
	}
}

static void guest_story(const struct timeline_event *events, size_t n,
			const struct expected_span *expected, size_t n_expected, struct spans *s)
{
	struct model *m = model_new();

	script_vm(m, 1, "");
	spans_observe(m, s);
	script_run(m, events, n);
	model_finish(m);
	spans_expect_guest(s, 0, expected, n_expected);
	model_free(m);
}

static void the_innermost_context_wins(void **state)
{
	static const struct timeline_event events[] = {
		SWITCH(VM, 0, 0, 0, 42, 0),      IRQ(10, 0, SOFTIRQ_ENTRY, 42, 3),
		IRQ(20, 0, VECTOR_ENTRY, 42, 1), IRQ(25, 0, VECTOR_EXIT, 42, 1),
		IRQ(40, 0, SOFTIRQ_EXIT, 42, 3), SWITCH(VM, 50, 0, 42, 0, 1),
		SWITCH(VM, 60, 0, 0, 42, 0),
	};
	static const struct expected_span expected[] = {
		{0, 10, GUEST_CPU_TASK},     {10, 20, GUEST_CPU_SOFTIRQ},
		{20, 25, GUEST_CPU_HARDIRQ}, {25, 40, GUEST_CPU_SOFTIRQ},
		{40, 50, GUEST_CPU_TASK},    {50, 60, GUEST_CPU_IDLE},
	};
	struct spans *s = malloc(sizeof(*s));

	(void)state;
	guest_story(events, COUNT(events), expected, COUNT(expected), s);
	assert_int_equal(s->n_interrupts, 2);
	assert_int_equal(s->interrupts[1].begin.ns, 10000);
	assert_int_equal(s->interrupts[1].end.ns, 40000);
	assert_true(s->interrupts[1].whole);
	free(s);
}

static void missing_exits_heal(void **state)
{
	static const struct timeline_event events[] = {
		SWITCH(VM, 0, 0, 0, 42, 0),
		IRQ(10, 0, SOFTIRQ_ENTRY, 42, 3),
		IRQ(20, 0, IRQ_ENTRY, 42, 9),
		IRQ(30, 0, SOFTIRQ_EXIT, 42, 3), /* irq 9 must be over */
		IRQ(40, 0, IRQ_ENTRY, 42, 9),
		SWITCH(VM, 50, 0, 42, 43, 1), /* and again */
		IRQ(55, 0, IRQ_EXIT, 43, 9),  /* an exit without an entry */
		SWITCH(VM, 60, 0, 43, 0, 1),
	};
	static const struct expected_span expected[] = {
		{0, 10, GUEST_CPU_TASK},  {10, 20, GUEST_CPU_SOFTIRQ}, {20, 30, GUEST_CPU_SOFTIRQ},
		{30, 40, GUEST_CPU_TASK}, {40, 50, GUEST_CPU_TASK},    {50, 60, GUEST_CPU_TASK},
	};
	struct spans *s = malloc(sizeof(*s));

	(void)state;
	guest_story(events, COUNT(events), expected, COUNT(expected), s);
	assert_false(s->interrupts[0].whole);
	free(s);
}

/* Entries whose exits were never captured: of each only the begin is known, and no interrupt
 * contains another that cannot happen inside it. */
static void impossible_nestings_are_incomplete(void **state)
{
	static const struct timeline_event events[] = {
		SWITCH(VM, 0, 0, 42, 0, 1),       IRQ(10, 0, VECTOR_ENTRY, 0, 3),
		IRQ(20, 0, VECTOR_ENTRY, 0, 3), /* inside itself */
		IRQ(30, 0, VECTOR_ENTRY, 0, 1), /* inside another vector */
		IRQ(35, 0, VECTOR_EXIT, 0, 1),    IRQ(40, 0, VECTOR_ENTRY, 0, 3),
		IRQ(50, 0, SOFTIRQ_ENTRY, 0, 7), /* a softirq inside a vector, */
		IRQ(60, 0, SOFTIRQ_ENTRY, 0, 1), /* inside a softirq */
		IRQ(70, 0, SOFTIRQ_EXIT, 0, 1),   IRQ(80, 0, IRQ_ENTRY, 0, 9),
		IRQ(90, 0, IRQ_ENTRY, 0, 9), /* a line inside itself */
		IRQ(95, 0, IRQ_EXIT, 0, 9),       IRQ(100, 0, VECTOR_ENTRY, 0, 3),
		SWITCH(VM, 2000000, 0, 0, 42, 0),
	};
	struct spans *s = malloc(sizeof(*s));
	struct model *m = model_new();
	size_t whole = 0;

	(void)state;
	script_vm(m, 1, "");
	spans_observe(m, s);
	script_run(m, events, COUNT(events));
	model_finish(m);
	assert_int_equal(s->n_interrupts, 9);
	for (size_t i = 0; i < s->n_interrupts; i++) {
		const struct guest_interrupt *x = &s->interrupts[i];

		whole += x->whole;
		assert_false(x->goes_on);
		if (!x->whole && x->kind == GUEST_CPU_HARDIRQ)
			assert_int_equal(x->begin.ns, x->end.ns);
		for (size_t k = 0; k < s->n_interrupts; k++) {
			const struct guest_interrupt *y = &s->interrupts[k];

			if (i != k && x->kind == y->kind)
				assert_true(y->end.ns <= x->begin.ns || x->end.ns <= y->begin.ns);
		}
	}
	assert_int_equal(whole, 3);
	/* The CPU idled for 2 s: it was in no handler for so long. */
	for (size_t i = 0; i < s->n_guest; i++)
		assert_true(s->guest[i].state == GUEST_CPU_IDLE ||
			    s->guest[i].end.ns - s->guest[i].begin.ns < 100000);
	model_free(m);
	free(s);
}

/* Hard interrupts of different lines nest where a handler lets them, and vectors inside those. */
static void possible_nestings_are_whole(void **state)
{
	static const struct timeline_event events[] = {
		SWITCH(VM, 0, 0, 0, 42, 0),      IRQ(10, 0, SOFTIRQ_ENTRY, 42, 3),
		IRQ(20, 0, IRQ_ENTRY, 42, 9),    IRQ(30, 0, IRQ_ENTRY, 42, 10),
		IRQ(40, 0, VECTOR_ENTRY, 42, 1), IRQ(50, 0, VECTOR_EXIT, 42, 1),
		IRQ(60, 0, IRQ_EXIT, 42, 10),    IRQ(70, 0, IRQ_EXIT, 42, 9),
		IRQ(80, 0, SOFTIRQ_EXIT, 42, 3), SWITCH(VM, 90, 0, 42, 0, 1),
	};
	struct spans *s = malloc(sizeof(*s));
	struct model *m = model_new();

	(void)state;
	script_vm(m, 1, "");
	spans_observe(m, s);
	script_run(m, events, COUNT(events));
	assert_int_equal(s->n_interrupts, 4);
	for (size_t i = 0; i < s->n_interrupts; i++)
		assert_true(s->interrupts[i].whole);
	model_free(m);
	free(s);
}

static void guest_loss_is_unknown_until_the_next_good_event(void **state)
{
	static const struct timeline_event events[] = {
		SWITCH(VM, 0, 0, 0, 42, 0),      IRQ(10, 0, VECTOR_ENTRY, 42, 1),
		IRQ(20, 0, VECTOR_EXIT, 42, 1),  LOST(VM, 30, 0),
		IRQ(70, 0, VECTOR_ENTRY, 43, 1), IRQ(75, 0, VECTOR_EXIT, 43, 1),
		SWITCH(VM, 90, 0, 43, 0, 1),
	};
	static const struct expected_span expected[] = {
		{0, 10, GUEST_CPU_TASK},     {10, 20, GUEST_CPU_HARDIRQ},
		{20, 70, GUEST_CPU_UNKNOWN}, {70, 75, GUEST_CPU_HARDIRQ},
		{75, 90, GUEST_CPU_TASK},
	};
	struct spans *s = malloc(sizeof(*s));

	(void)state;
	guest_story(events, COUNT(events), expected, COUNT(expected), s);
	free(s);
}

/* A softirq's exit without an entry: `n_long` interrupts are told as long as 30 us. */
static void unseen_softirq(const struct timeline_event *events, size_t n, size_t n_long)
{
	struct model *m = model_new();
	struct spans *s = malloc(sizeof(*s));
	size_t found = 0;

	script_vm(m, 1, "");
	spans_observe(m, s);
	script_run(m, events, n);
	for (size_t i = 0; i < s->n_interrupts; i++) {
		const struct guest_interrupt *x = &s->interrupts[i];

		if (x->end.ns - x->begin.ns < 30000)
			continue;
		found++;
		assert_int_equal(x->kind, GUEST_CPU_SOFTIRQ);
		assert_int_equal(x->number, 3);
		assert_int_equal(x->begin.ns, 30000);
		assert_int_equal(x->end.ns, 90000);
		assert_true(x->whole);
	}
	assert_int_equal(found, n_long);
	model_free(m);
	free(s);
}

static void a_softirq_whose_entry_is_missing_is_known_from_its_exit(void **state)
{
	static const struct timeline_event missing[] = {
		SWITCH(VM, 0, 0, 0, 42, 0),      EVENT(VM, 20, 0, LOST, 0, 0, 1, 1),
		IRQ(30, 0, VECTOR_ENTRY, 42, 1), IRQ(31, 0, VECTOR_EXIT, 42, 1),
		IRQ(90, 0, SOFTIRQ_EXIT, 42, 3),
	};
	static const struct timeline_event before_the_recording[] = {
		IRQ(0, 0, VECTOR_ENTRY, 42, 1),     IRQ(1, 0, VECTOR_EXIT, 42, 1),
		EVENT(VM, 20, 0, LOST, 0, 0, 1, 1), IRQ(30, 0, VECTOR_ENTRY, 42, 1),
		IRQ(31, 0, VECTOR_EXIT, 42, 1),     IRQ(90, 0, SOFTIRQ_EXIT, 42, 3),
	};
	static const struct timeline_event refuted[] = {
		SWITCH(VM, 0, 0, 0, 42, 0),       EVENT(VM, 20, 0, LOST, 0, 0, 1, 1),
		IRQ(30, 0, VECTOR_ENTRY, 42, 1),  IRQ(31, 0, VECTOR_EXIT, 42, 1),
		IRQ(40, 0, SOFTIRQ_ENTRY, 42, 1), IRQ(50, 0, SOFTIRQ_EXIT, 42, 1),
		IRQ(90, 0, SOFTIRQ_EXIT, 42, 3),
	};

	(void)state;
	unseen_softirq(missing, COUNT(missing), 1);
	unseen_softirq(before_the_recording, COUNT(before_the_recording), 0);
	unseen_softirq(refuted, COUNT(refuted), 0);
}

static void hostile_numbers_are_refused(void **state)
{
	static const struct timeline_event bad[] = {
		SWITCH(VM, 0, VS_CPUS_MAX, 0, 42, 0), SWITCH(HOST, 0, 65535, 0, 42, 0),
		WAKEUP(VM, 0, 0, 42, 1, 1ull << 40),  MIGRATE(VM, 0, 0, 42, 0, VS_CPUS_MAX),
		SWITCH(VM + 1, 0, 0, 0, 42, 0),
	};
	struct timeline_event odd_type = SWITCH(VM, 0, 0, 0, 42, 0);
	struct model *m = model_new();

	(void)state;
	script_vm(m, 1, "");
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(model_push(m, &bad[i], 1), -22);
	odd_type.event.type = 60000;
	assert_int_equal(model_push(m, &odd_type, 1), 0);
	odd_type.source = HOST;
	assert_int_equal(model_push(m, &odd_type, 1), 0);
	model_finish(m);
	model_free(m);
}

static void a_million_names_take_no_memory(void **state)
{
	struct model *m = model_new();

	(void)state;
	script_vm(m, 1, "");
	for (int i = 1; i <= 1000000; i++) {
		struct timeline_event e = NAME(VM, i, i, i, script_comm("spam"));

		assert_int_equal(model_push(m, &e, 1), 0);
	}
	assert_string_equal(model_task_name(m, VM, 1000000), "spam");
	assert_string_equal(model_task_name(m, VM, 1), "");
	assert_string_equal(model_task_name(m, HOST, TID0), "CPU 0/KVM");
	model_free(m);
}

static void guest_cpus_join_vcpus_by_apic_id(void **state)
{
	static const struct message_cpu cpus[] = {{0, 4}, {1, 0}, {2, 2}};
	static struct message_vm_info info = {.vm = VM, .n_threads = 3, .qemu_pid = QEMU};
	struct model *m = model_new();
	uint32_t vcpu;
	uint16_t cpu;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		info.threads[i] = (struct message_vm_thread){.tid = TID0 + (int)i,
							     .is_vcpu = true,
							     .vcpu = i,
							     .apic_id_known = true,
							     .apic_id = 2 * i};
	assert_int_equal(model_vm(m, &info), 0);
	assert_int_equal(model_vcpu_of_guest_cpu(m, VM, 1, &vcpu), 0);
	assert_int_equal(vcpu, 1); /* by rank as long as the guest has not said */
	assert_int_equal(model_guest_cpus(m, VM, cpus, COUNT(cpus)), 0);
	assert_int_equal(model_vcpu_of_guest_cpu(m, VM, 0, &vcpu), 0);
	assert_int_equal(vcpu, 2);
	assert_int_equal(model_vcpu_of_guest_cpu(m, VM, 1, &vcpu), 0);
	assert_int_equal(vcpu, 0);
	assert_int_equal(model_guest_cpu_of_vcpu(m, VM, 1, &cpu), 0);
	assert_int_equal(cpu, 2);
	assert_int_equal(model_vcpu_of_guest_cpu(m, VM, 3, &vcpu), -2);
	model_free(m);
}

/* A vCPU is plugged, and the guest takes its CPU online, after the agent has listed the CPUs. */
static void a_cpu_that_came_later_joins_the_vcpu_that_is_left(void **state)
{
	static const struct message_cpu cpus[] = {{0, 0}, {2, 2}};
	static struct message_vm_info info = {.vm = VM, .n_threads = 2, .qemu_pid = QEMU};
	const struct timeline_event on_1 = SWITCH(VM, 10, 1, 0, 7, 0);
	struct model *m = model_new();
	uint32_t vcpu;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		info.threads[i] = (struct message_vm_thread){.tid = TID0 + (int)i,
							     .is_vcpu = true,
							     .vcpu = i,
							     .apic_id_known = true,
							     .apic_id = i};
	info.threads[1].vcpu = info.threads[1].apic_id = 2;
	assert_int_equal(model_vm(m, &info), 0);
	assert_int_equal(model_guest_cpus(m, VM, cpus, COUNT(cpus)), 0);
	assert_int_equal(model_vcpu_of_guest_cpu(m, VM, 1, &vcpu), -2);
	info.n_threads = 3;
	info.threads[2].vcpu = info.threads[2].apic_id = 1;
	assert_int_equal(model_vm(m, &info), 0);
	assert_int_equal(model_vcpu_of_guest_cpu(m, VM, 1, &vcpu), -2);
	assert_int_equal(model_push(m, &on_1, 1), 0);
	for (uint16_t cpu = 0; cpu < 3; cpu++) {
		assert_int_equal(model_vcpu_of_guest_cpu(m, VM, cpu, &vcpu), 0);
		assert_int_equal(vcpu, cpu);
	}
	model_free(m);
}

static void a_vcpu_may_change_its_thread(void **state)
{
	static const struct timeline_event first[] = {START, SWITCH(HOST, 50, 1, 5, 6, 0)};
	static const struct timeline_event then[] = {SWITCH(HOST, 70, 0, 0, TID1, 0),
						     SWITCH(HOST, 90, 0, TID1, 0, 1)};
	static const struct expected_span expected[] = {
		{0, 50, VCPU_GUEST}, {50, 70, VCPU_UNKNOWN}, {70, 90, VCPU_GUEST}};
	static struct message_vm_info info = {.vm = VM,
					      .qemu_pid = QEMU,
					      .n_threads = 1,
					      .threads = {{.tid = TID1, .is_vcpu = true}}};
	struct spans *s = malloc(sizeof(*s));
	struct model *m = model_new();

	(void)state;
	script_vm(m, 1, "");
	spans_observe(m, s);
	script_run(m, first, COUNT(first));
	assert_int_equal(model_vm(m, &info), 0);
	script_run(m, then, COUNT(then));
	model_finish(m);
	spans_expect_vcpu(s, 0, expected, COUNT(expected));
	model_free(m);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vcpu_stories_give_their_spans),
		cmocka_unit_test(a_cpu_that_came_later_joins_the_vcpu_that_is_left),
		cmocka_unit_test(a_pause_by_the_vmm_is_a_stop),
		cmocka_unit_test(an_uncertain_account_does_not_decide),
		cmocka_unit_test(the_innermost_context_wins),
		cmocka_unit_test(missing_exits_heal),
		cmocka_unit_test(impossible_nestings_are_incomplete),
		cmocka_unit_test(possible_nestings_are_whole),
		cmocka_unit_test(guest_loss_is_unknown_until_the_next_good_event),
		cmocka_unit_test(a_softirq_whose_entry_is_missing_is_known_from_its_exit),
		cmocka_unit_test(hostile_numbers_are_refused),
		cmocka_unit_test(a_million_names_take_no_memory),
		cmocka_unit_test(guest_cpus_join_vcpus_by_apic_id),
		cmocka_unit_test(a_vcpu_may_change_its_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
