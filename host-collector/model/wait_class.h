/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a thread waited for, told by the symbols of its stack. The table in wait_class.c holds one
 * row per pattern with the reason it is there; the first row that matches wins, so rows stand in
 * order from the most telling to the most general. What no row knows is "other", never hidden.
 */
#ifndef MODEL_WAIT_CLASS_H
#define MODEL_WAIT_CLASS_H

#include <stddef.h>

#include "proto/message.h"

/* X(NAME, "name", "waited for ...") */
#define WAIT_CLASSES(X)                                                                            \
	X(NONE, "none", "nothing known")                                                           \
	X(HALT, "halt", "an interrupt for the idle vCPU")                                          \
	X(IDLE_LOOP, "idle_loop", "QEMU to have work for the vCPU")                                \
	X(PAUSE, "pause", "the VM to be resumed")                                                  \
	X(FREEZER, "freezer", "the cgroup to be thawed")                                           \
	X(VMM_LOCK, "vmm_lock", "QEMU's big lock")                                                 \
	X(BLOCK_IO, "block_io", "a block device")                                                  \
	X(USERFAULT, "userfault", "a page that userspace provides")                                \
	X(PAGE_FAULT, "page_fault", "a page to be read from disk or swap")                         \
	X(MMU_LOCK, "mmu_lock", "the memory map or the MMU lock")                                  \
	X(RECLAIM, "reclaim", "free memory")                                                       \
	X(FUTEX, "futex", "another thread")                                                        \
	X(POLL, "poll", "a file descriptor")                                                       \
	X(OTHER, "other", "something else")                                                        \
	X(SPLIT_LOCK, "split_lock", "its turn after a split lock")

enum wait_class {
#define X(NAME, ...) WAIT_##NAME,
	WAIT_CLASSES(X)
#undef X
		WAIT_CLASS_COUNT
};

/* As in exports; static. */
const char *wait_class_name(enum wait_class c);
/* "QEMU's big lock", to stand after "waited for". */
const char *wait_class_object(enum wait_class c);

/* symbols: the stack's names, leaf first, "" where unknown. kvm: the VM runs under KVM (QEMU's
 * idle loop means a pause there, a halt under TCG). n == 0: WAIT_NONE. */
enum wait_class wait_class_of(const char *const *symbols, size_t n, bool kvm);

#endif
