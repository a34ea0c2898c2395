/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Determines what a thread waited for from the symbols of its stack. The table in wait_class.c has
 * one row per pattern, with the reason for it. The first row that matches decides, so the rows are
 * sorted from specific to general. A stack that matches no row gets the class "other".
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

/* Returns the name used in exports. Static. */
const char *wait_class_name(enum wait_class c);
/* Returns what was waited for, to follow "waited for": "QEMU's big lock". Static. */
const char *wait_class_object(enum wait_class c);

/* Returns the class of a stack. `symbols` are its names, leaf first, "" if unknown. `kvm`: the VM
 * runs under KVM, where QEMU's idle loop is a pause; under TCG it is a halt. Returns WAIT_NONE if n
 * is 0. */
enum wait_class wait_class_of(const char *const *symbols, size_t n, bool kvm);

#endif
