/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/wait_class.h"

#include <stdbool.h>
#include <string.h>

static const char *const class_names[][2] = {
#define X(NAME, name, object) [WAIT_##NAME] = {name, object},
	WAIT_CLASSES(X)
#undef X
};

const char *wait_class_name(enum wait_class c)
{
	return class_names[c][0];
}

const char *wait_class_object(enum wait_class c)
{
	return class_names[c][1];
}

enum accelerator { ANY, KVM_ONLY };

/* A stack matches a row if it holds `symbol` and, further from the leaf, `caller` (NULL: any). A
 * trailing '*' matches the rest of a name; the compiler's ".isra.0" and the like never count. */
struct wait_pattern {
	enum wait_class class;
	const char *symbol, *caller;
	enum accelerator accelerator;
	const char *reason;
};

static const struct wait_pattern patterns[] = {
	{WAIT_FREEZER, "__refrigerator", NULL, ANY, "the kernel's freezer, cgroup v1 and suspend"},
	{WAIT_FREEZER, "__thaw_task", NULL, ANY, "of a waker: it ends a freeze"},
	{WAIT_FREEZER, "do_freezer_trap", NULL, ANY, "cgroup v2 freezer, sleeps as S"},
	{WAIT_PAUSE, "do_signal_stop", NULL, ANY, "group stop by a signal"},
	{WAIT_PAUSE, "ptrace_stop", NULL, ANY, "a debugger holds the thread"},

	/* A thread that sleeps in get_signal itself is stopped, unless it dumps core or exits.
	 * The frames of what the program waited for when the stop began are still below. */
	{WAIT_OTHER, "do_coredump", NULL, ANY, "the VM's process dumps core"},
	{WAIT_OTHER, "vfs_coredump", NULL, ANY, "the same, since 6.16"},
	{WAIT_OTHER, "do_exit", NULL, ANY, "the thread ends"},
	{WAIT_FREEZER, "get_signal", NULL, ANY,
	 "do_freezer_trap, inlined; stops by a signal or a debugger do not sleep as S"},

	{WAIT_SPLIT_LOCK, "split_lock_warn", NULL, ANY,
	 "the kernel slows down who locks across cache lines: 10 ms, one at a time"},
	{WAIT_SPLIT_LOCK, "handle_guest_split_lock", NULL, ANY, "the same, inlined"},
	{WAIT_SPLIT_LOCK, "handle_user_split_lock", NULL, ANY, "the same, inlined"},

	{WAIT_USERFAULT, "handle_userfault", NULL, ANY,
	 "userfaultfd: postcopy migration, snapshot restore"},
	{WAIT_BLOCK_IO, "nbd_co_*", NULL, ANY, "QEMU waits for its NBD server"},
	{WAIT_BLOCK_IO, "bdrv_poll_co", NULL, ANY, "a synchronous block request inside QEMU"},
	{WAIT_BLOCK_IO, "blk_p*", "memory_region_*", ANY, "a device model does block I/O in MMIO"},

	/* The lock before the condition: a thread woken from its idle wait takes the lock again. */
	{WAIT_VMM_LOCK, "qemu_mutex_lock_iothread*", NULL, ANY, "QEMU's big lock, before 9.0"},
	{WAIT_VMM_LOCK, "bql_lock*", NULL, ANY, "QEMU's big lock, since 9.0"},
	{WAIT_VMM_LOCK, "__lll_lock_wait*", "qemu_cond_*wait*", ANY,
	 "taking the big lock again after the idle wait"},
	{WAIT_VMM_LOCK, "__pthread_mutex_cond_lock*", "qemu_wait_io_event", ANY,
	 "the same, in libc's own words"},
	{WAIT_VMM_LOCK, "__lll_lock_wait*", "qemu_wait_io_event", ANY, "the same"},
	{WAIT_VMM_LOCK, "__lll_lock_wait*", "qemu_mutex_lock_impl", ANY,
	 "a mutex of QEMU; in a vCPU thread nearly always the big lock"},
	{WAIT_VMM_LOCK, "__lll_lock_wait*", "prepare_mmio_access", ANY,
	 "MMIO takes the big lock; the locking function was inlined"},

	{WAIT_HALT, "kvm_vcpu_block", NULL, ANY, "HLT in the kernel"},
	{WAIT_HALT, "kvm_vcpu_halt", NULL, ANY, "HLT in the kernel, since 5.17"},
	{WAIT_HALT, "kvm_vcpu_check_block", NULL, ANY, "the same, seen from its inside"},
	{WAIT_HALT, "vcpu_block", "kvm_arch_vcpu_ioctl_run", ANY, "HLT; the callee was inlined"},
	/* With KVM's own interrupt controller HLT stays in the kernel: the loop means a stop. */
	{WAIT_PAUSE, "qemu_wait_io_event", NULL, KVM_ONLY, "QMP stop, savevm, end of migration"},
	{WAIT_PAUSE, "qemu_*wait_io_event", NULL, KVM_ONLY, "the same, other versions"},
	/* VMMs in Rust, whose names hold their path: from their sources. Seen with a stand-in that
	 * has functions of these names (tests/e2e/test_stand_in.py). */
	{WAIT_PAUSE, "*4vcpu4Vcpu6paused*", NULL, KVM_ONLY, "Firecracker: paused by its API"},
	{WAIT_PAUSE, "*6thread*4park*", "*10CpuManager10start_vcpu*", KVM_ONLY,
	 "Cloud Hypervisor: paused by its API, snapshot, migration"},
	{WAIT_PAUSE, "*7Condvar4wait*", "*9vcpu_loop*", KVM_ONLY, "crosvm: suspended"},
	{WAIT_IDLE_LOOP, "qemu_wait_io_event", NULL, ANY,
	 "TCG: HLT waits here, and so does a pause"},
	{WAIT_IDLE_LOOP, "qemu_*wait_io_event", NULL, ANY, "TCG: round-robin and other versions"},

	{WAIT_RECLAIM, "try_to_free_pages", NULL, ANY, "direct reclaim"},
	{WAIT_RECLAIM, "try_to_free_mem_cgroup_pages", NULL, ANY, "the cgroup's memory limit"},
	{WAIT_RECLAIM, "mem_cgroup_handle_over_high", NULL, ANY, "memory.high throttles"},
	{WAIT_RECLAIM, "shrink_lruvec", NULL, ANY, "reclaim"},
	{WAIT_RECLAIM, "try_to_compact_pages", NULL, ANY, "direct compaction, huge pages"},
	{WAIT_RECLAIM, "compact_zone", NULL, ANY, "compaction"},
	{WAIT_RECLAIM, "out_of_memory", NULL, ANY, "the OOM killer"},

	{WAIT_PAGE_FAULT, "do_swap_page", NULL, ANY, "swapped out"},
	{WAIT_PAGE_FAULT, "folio_lock_or_retry", NULL, ANY, "the page is being read"},
	{WAIT_PAGE_FAULT, "__folio_lock_or_retry", NULL, ANY, "the page is being read"},
	{WAIT_PAGE_FAULT, "filemap_fault", NULL, ANY, "file-backed guest memory"},
	{WAIT_PAGE_FAULT, "migration_entry_wait*", NULL, ANY, "the page is being moved (NUMA)"},
	{WAIT_PAGE_FAULT, "kvm_async_pf_task_wait_schedule", NULL, ANY,
	 "this host's own host pages memory in"},

	{WAIT_BLOCK_IO, "io_schedule*", NULL, ANY, "the kernel's own mark of block I/O"},
	{WAIT_BLOCK_IO, "blk_mq_get_tag", NULL, ANY, "the device queue is full"},
	{WAIT_BLOCK_IO, "rq_qos_wait", NULL, ANY, "block I/O throttling"},
	{WAIT_BLOCK_IO, "submit_bio_wait", NULL, ANY, "a synchronous request"},
	{WAIT_BLOCK_IO, "jbd2_log_wait_commit", NULL, ANY, "ext4 journal commit"},
	{WAIT_BLOCK_IO, "wait_on_page_writeback*", NULL, ANY, "write-back"},
	{WAIT_BLOCK_IO, "folio_wait_writeback*", NULL, ANY, "write-back"},
	{WAIT_BLOCK_IO, "balance_dirty_pages*", NULL, ANY, "too many dirty pages"},
	{WAIT_BLOCK_IO, "vfs_fsync*", NULL, ANY, "fsync"},

	{WAIT_MMU_LOCK, "rwsem_down_*_slowpath", NULL, ANY, "mmap_lock or another semaphore of it"},
	{WAIT_MMU_LOCK, "rwbase_*_lock", NULL, ANY, "mmap_lock on a real-time kernel"},
	{WAIT_MMU_LOCK, "kvm_mmu_notifier_*", NULL, ANY, "an MMU notifier"},
	{WAIT_MMU_LOCK, "kvm_page_fault_*", "kvm_mmu_page_fault", ANY, "KVM's MMU"},

	{WAIT_POLL, "do_sys_poll", NULL, ANY, "poll"},
	{WAIT_POLL, "do_epoll_wait", NULL, ANY, "epoll"},
	{WAIT_POLL, "do_select", NULL, ANY, "select"},
	{WAIT_FUTEX, "futex_wait*", NULL, ANY, "some lock or condition of the VMM"},
	{WAIT_FUTEX, "__lll_lock_wait*", NULL, ANY, "some lock of the VMM"},
};

static bool symbol_matches(const char *pattern, const char *symbol)
{
	const char *star = strchr(pattern, '*');
	size_t len = strcspn(symbol, "."), head = star ? (size_t)(star - pattern) : strlen(pattern);

	if (len < head || strncmp(symbol, pattern, head) != 0)
		return false;
	if (!star)
		return len == head;
	if (!star[1])
		return true;
	for (; !symbol_matches(star + 1, symbol + head); len--, symbol++) {
		if (len == head)
			return false;
	}
	return true;
}

static bool pattern_matches(const struct wait_pattern *p, const char *const *symbols, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!symbol_matches(p->symbol, symbols[i]))
			continue;
		if (!p->caller)
			return true;
		for (size_t k = i + 1; k < n; k++) {
			if (symbol_matches(p->caller, symbols[k]))
				return true;
		}
	}
	return false;
}

enum wait_class wait_class_of(const char *const *symbols, size_t n, bool kvm)
{
	if (n == 0)
		return WAIT_NONE;
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		if ((patterns[i].accelerator == ANY || kvm) &&
		    pattern_matches(&patterns[i], symbols, n))
			return patterns[i].class;
	}
	return WAIT_OTHER;
}
