/* SPDX-License-Identifier: GPL-2.0-only */
/* A KVM guest in real mode that writes to an I/O port in an endless loop. So each KVM_RUN has
 * exactly one exit to the VMM. */
#ifndef TESTS_UNIT_KVM_GUEST_H
#define TESTS_UNIT_KVM_GUEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/kvm.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KVM_GUEST_BYTES = 4096, KVM_GUEST_PORT = 0x10 };

struct kvm_guest {
	int kvm, vm, vcpu;
	struct kvm_run *run;
	size_t run_bytes;
	unsigned char *memory;
};

/* out %al, $KVM_GUEST_PORT for ever */
static const unsigned char kvm_guest_code[] = {0xe6, KVM_GUEST_PORT, 0xeb, 0xfc};

static inline bool kvm_guest_open(struct kvm_guest *g)
{
	struct kvm_userspace_memory_region region = {.memory_size = KVM_GUEST_BYTES};
	struct kvm_sregs sregs;
	struct kvm_regs regs = {.rflags = 2};

	g->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (g->kvm < 0)
		return false;
	g->vm = ioctl(g->kvm, KVM_CREATE_VM, 0);
	g->memory = mmap(NULL, KVM_GUEST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);
	assert_true(g->vm >= 0 && g->memory != MAP_FAILED);
	memcpy(g->memory, kvm_guest_code, sizeof(kvm_guest_code));
	region.userspace_addr = (uintptr_t)g->memory;
	assert_int_equal(ioctl(g->vm, KVM_SET_USER_MEMORY_REGION, &region), 0);
	g->vcpu = ioctl(g->vm, KVM_CREATE_VCPU, 0);
	g->run_bytes = (size_t)ioctl(g->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	g->run = mmap(NULL, g->run_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, g->vcpu, 0);
	assert_true(g->vcpu >= 0 && g->run != MAP_FAILED);
	assert_int_equal(ioctl(g->vcpu, KVM_GET_SREGS, &sregs), 0);
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	assert_int_equal(ioctl(g->vcpu, KVM_SET_SREGS, &sregs), 0);
	assert_int_equal(ioctl(g->vcpu, KVM_SET_REGS, &regs), 0);
	return true;
}

static inline void kvm_guest_close(struct kvm_guest *g)
{
	munmap(g->run, g->run_bytes);
	munmap(g->memory, KVM_GUEST_BYTES);
	close(g->vcpu);
	close(g->vm);
	close(g->kvm);
}

static inline void kvm_guest_exit(struct kvm_guest *g)
{
	assert_int_equal(ioctl(g->vcpu, KVM_RUN, 0), 0);
	assert_int_equal(g->run->exit_reason, KVM_EXIT_IO);
}

#endif
