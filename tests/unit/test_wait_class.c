/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests which wait class recorded stacks get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "host-collector/model/wait_class.h"

enum { FRAMES = 8 };

static const struct {
	enum wait_class class;
	bool kvm;
	const char *symbols[FRAMES];
} cases[] = {
	{WAIT_HALT, true, {"__schedule", "schedule", "kvm_vcpu_block", "kvm_vcpu_halt"}},
	{WAIT_HALT, true, {"schedule", "vcpu_block.isra.0", "kvm_arch_vcpu_ioctl_run"}},
	{WAIT_IDLE_LOOP,
	 false,
	 {"futex_wait_queue", "futex_wait", "", "pthread_cond_wait", "qemu_cond_wait_impl",
	  "qemu_wait_io_event", ""}},
	{WAIT_PAUSE,
	 true,
	 {"futex_wait", "pthread_cond_wait", "qemu_cond_wait_impl", "qemu_wait_io_event"}},
	/* Names as Rust's compilers of both manglings make them. */
	{WAIT_PAUSE,
	 true,
	 {"futex_wait", "syscall", "_ZN3std4sync4mpsc17Receiver$LT$T$GT$4recv17h0123456789abcdefE",
	  "_ZN3vmm6vstate4vcpu4Vcpu6paused17h0123456789abcdefE"}},
	{WAIT_PAUSE, true, {"futex_wait", "_RNvMs_NtNtCs5_3vmm6vstate4vcpuNtB4_4vcpu4Vcpu6paused"}},
	{WAIT_PAUSE,
	 true,
	 {"futex_wait", "_ZN3std6thread4park17h0123456789abcdefE",
	  "_ZN3vmm3cpu10CpuManager10start_vcpu28_$u7b$$u7b$closure$u7d$$u7d$17h01E"}},
	{WAIT_PAUSE,
	 true,
	 {"futex_wait", "_ZN3std4sync7condvar7Condvar4wait17h01E",
	  "_ZN6crosvm3sys5linux4vcpu9vcpu_loop17h01E"}},
	/* Other waits of theirs, and a VMM that only runs. */
	{WAIT_FUTEX,
	 true,
	 {"futex_wait", "_ZN3std6thread4park17h0123456789abcdefE",
	  "_ZN3vmm3cpu10CpuManager12create_vcpus17h01E"}},
	{WAIT_FUTEX, true, {"futex_wait", "_ZN3vmm6vstate4vcpu4Vcpu7running17h0123456789abcdefE"}},
	{WAIT_HALT,
	 true,
	 {"schedule", "kvm_vcpu_halt", "kvm_arch_vcpu_ioctl_run",
	  "_ZN6crosvm3sys5linux4vcpu9vcpu_loop17h01E"}},
	{WAIT_VMM_LOCK,
	 true,
	 {"futex_wait", "__lll_lock_wait", "pthread_mutex_lock", "qemu_mutex_lock_impl",
	  "qemu_mutex_lock_iothread_impl", "kvm_cpu_exec"}},
	{WAIT_VMM_LOCK, true, {"futex_wait", "__lll_lock_wait", "bql_lock_impl"}},
	/* Woken from the idle wait, it takes the lock again: no halt. */
	{WAIT_VMM_LOCK,
	 false,
	 {"futex_wait", "__lll_lock_wait", "pthread_cond_wait", "qemu_cond_wait_impl",
	  "qemu_wait_io_event"}},
	{WAIT_USERFAULT,
	 true,
	 {"schedule", "handle_userfault", "do_anonymous_page", "hva_to_pfn", "kvm_mmu_page_fault",
	  "kvm_arch_vcpu_ioctl_run"}},
	/* A page fault that reads from disk is a page fault first. */
	{WAIT_PAGE_FAULT, true, {"io_schedule", "folio_wait_bit_common", "do_swap_page"}},
	{WAIT_RECLAIM, true, {"io_schedule", "try_to_free_pages", "do_swap_page"}},
	{WAIT_BLOCK_IO, true, {"io_schedule_timeout", "blkdev_read_iter", "vfs_read"}},
	{WAIT_MMU_LOCK, true, {"schedule", "rwsem_down_write_slowpath", "down_write", "vm_mmap"}},
	{WAIT_FREEZER, true, {"schedule", "do_freezer_trap", "get_signal"}},
	{WAIT_FREEZER, true, {"__schedule", "schedule", "get_signal", "arch_do_signal_or_restart"}},
	{WAIT_FREEZER, true, {"try_to_wake_up", "__thaw_task", "freezer_apply_state"}},
	/* Frozen on its way out of a wait for QEMU's lock. */
	{WAIT_FREEZER,
	 false,
	 {"get_signal", "exit_to_user_mode_loop", "__lll_lock_wait", "qemu_mutex_lock_impl",
	  "qemu_mutex_lock_iothread_impl"}},
	{WAIT_OTHER, true, {"schedule", "pipe_write", "do_coredump", "get_signal"}},
	{WAIT_FREEZER, false, {"__refrigerator", "futex_wait", "qemu_wait_io_event"}},
	{WAIT_POLL, true, {"schedule_hrtimeout_range", "do_sys_poll", "__x64_sys_ppoll"}},
	{WAIT_FUTEX, true, {"schedule", "futex_wait_queue", "futex_wait", "do_futex"}},
	{WAIT_FUTEX, true, {"", "", "__lll_lock_wait"}},
	{WAIT_OTHER, true, {"schedule", "pipe_read"}},
	{WAIT_OTHER, true, {"", ""}},
	{WAIT_OTHER, true, {"qemu_mutex_lock_iothreat"}},
	{WAIT_NONE, true, {NULL}},
};

static void stacks_have_their_class(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t n = 0;
		enum wait_class is;

		while (n < FRAMES && cases[i].symbols[n])
			n++;
		is = wait_class_of(cases[i].symbols, n, cases[i].kvm);
		if (is != cases[i].class)
			fail_msg("case %zu is %s, not %s", i, wait_class_name(is),
				 wait_class_name(cases[i].class));
	}
}

static void the_caller_must_be_further_from_the_leaf(void **state)
{
	static const char *const symbols[] = {"qemu_cond_wait_impl", "__lll_lock_wait"};

	(void)state;
	assert_int_equal(wait_class_of(symbols, 2, true), WAIT_FUTEX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_have_their_class),
		cmocka_unit_test(the_caller_must_be_further_from_the_leaf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
