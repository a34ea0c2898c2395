// SPDX-License-Identifier: GPL-2.0-only
#include "irq_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

__asm__(".section .rodata\n"
	"irq_guest_image: .incbin \"" IRQ_GUEST_IMAGE "\"\n"
	"irq_guest_image_end: .byte 0\n"
	".previous\n");
extern const char irq_guest_image[], irq_guest_image_end[];

enum {
	CR0_PROTECTED = 1,
	CR0_PAGING = 1u << 31,
	CR4_PAE = 1 << 5,
	EFER_LONG = 1 << 8 | 1 << 10,
	PAGE_WRITABLE = 3,
	PAGE_LARGE = 1 << 7,
	PINS = 24,
	READY_MS = 5000,
	MSI_BASE = (int)0xfee00000,
	MSI_CPU_SHIFT = 12,
};

static int control(int fd, unsigned long request, void *argument)
{
	int n = ioctl(fd, request, argument);

	return n < 0 ? -errno : n;
}

static int fail(struct irq_machine *m, int error, const char *what)
{
	if (error < 0 && !m->truth->error[0])
		snprintf(m->truth->error, sizeof(m->truth->error), "%s: %s", what,
			 strerror(-error));
	return error;
}

volatile struct irq_guest_cpu *irq_machine_cpu(struct irq_machine *m, uint32_t vcpu)
{
	return (struct irq_guest_cpu *)(m->memory + IRQ_GUEST_SHARED) + vcpu;
}

/* One large page, mapped to itself, and flat segments for what iretq loads. */
static void tables_fill(uint8_t *memory)
{
	uint64_t *gdt = (uint64_t *)(memory + IRQ_GUEST_GDT);

	*(uint64_t *)(memory + IRQ_GUEST_PML4) = IRQ_GUEST_PDPT | PAGE_WRITABLE;
	*(uint64_t *)(memory + IRQ_GUEST_PDPT) = IRQ_GUEST_PD | PAGE_WRITABLE;
	*(uint64_t *)(memory + IRQ_GUEST_PD) = PAGE_WRITABLE | PAGE_LARGE;
	gdt[IRQ_GUEST_CODE_SELECTOR / 8] = 0x00af9b000000ffff;
	gdt[IRQ_GUEST_DATA_SELECTOR / 8] = 0x00cf93000000ffff;
	memcpy(memory + IRQ_GUEST_CODE, irq_guest_image,
	       (size_t)(irq_guest_image_end - irq_guest_image));
}

static int registers_set(struct irq_machine_vcpu *v)
{
	const struct kvm_segment data = {.limit = 0xffffffff,
					 .selector = IRQ_GUEST_DATA_SELECTOR,
					 .type = 3,
					 .present = 1,
					 .db = 1,
					 .s = 1,
					 .g = 1};
	struct kvm_regs regs = {.rip = IRQ_GUEST_CODE,
				.rsp = IRQ_GUEST_STACK + v->number * IRQ_GUEST_PER_STACK,
				.rdi = v->number,
				.rflags = 2};
	struct kvm_sregs sregs;
	int error = control(v->fd, KVM_GET_SREGS, &sregs);

	if (error)
		return error;
	sregs.ds = sregs.es = sregs.fs = sregs.gs = sregs.ss = sregs.cs = data;
	sregs.cs.selector = IRQ_GUEST_CODE_SELECTOR;
	sregs.cs.type = 11;
	sregs.cs.db = 0;
	sregs.cs.l = 1;
	sregs.gdt.base = IRQ_GUEST_GDT;
	sregs.gdt.limit = 3 * 8 - 1;
	sregs.cr3 = IRQ_GUEST_PML4;
	sregs.cr4 |= CR4_PAE;
	sregs.cr0 |= CR0_PROTECTED | CR0_PAGING;
	sregs.efer |= EFER_LONG;
	error = control(v->fd, KVM_SET_SREGS, &sregs);
	return error ? error : control(v->fd, KVM_SET_REGS, &regs);
}

/* What the host's KVM supports, with the APIC's id, x2APIC and the TSC-deadline timer. */
static int cpuid_set(struct irq_machine *m, struct irq_machine_vcpu *v)
{
	enum { ENTRIES = 256, ECX_X2APIC = 1 << 21, ECX_TSC_DEADLINE = 1 << 24 };
	struct kvm_cpuid2 *cpuid =
		calloc(1, sizeof(*cpuid) + ENTRIES * sizeof(struct kvm_cpuid_entry2));
	int error;

	if (!cpuid)
		return -ENOMEM;
	cpuid->nent = ENTRIES;
	error = control(m->kvm, KVM_GET_SUPPORTED_CPUID, cpuid);
	for (uint32_t i = 0; i < cpuid->nent && !error; i++) {
		struct kvm_cpuid_entry2 *e = &cpuid->entries[i];

		if (e->function == 1) {
			e->ebx = (e->ebx & 0x00ffffff) | v->number << 24;
			e->ecx |= ECX_X2APIC | ECX_TSC_DEADLINE;
		} else if (e->function == 0xb) {
			e->edx = v->number;
		}
	}
	if (!error)
		error = control(v->fd, KVM_SET_CPUID2, cpuid);
	free(cpuid);
	return error;
}

static int vcpu_create(struct irq_machine *m, uint32_t number)
{
	struct kvm_mp_state running = {.mp_state = KVM_MP_STATE_RUNNABLE};
	struct irq_machine_vcpu *v = &m->vcpus[number];
	int bytes = control(m->kvm, KVM_GET_VCPU_MMAP_SIZE, NULL), error;

	if (bytes < 0)
		return bytes;
	v->machine = m;
	v->number = number;
	v->fd = control(m->vm, KVM_CREATE_VCPU, (void *)(uintptr_t)number);
	if (v->fd < 0)
		return v->fd;
	v->run = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
	if (v->run == MAP_FAILED)
		return -errno;
	error = cpuid_set(m, v);
	if (!error) /* nobody sends the second one INIT and SIPI */
		error = control(v->fd, KVM_SET_MP_STATE, &running);
	return error ? error : registers_set(v);
}

/* ---- where interrupts go ---- */

static int routes_set(struct irq_machine *m)
{
	enum { ROUTES = PINS + 2 * IRQ_VMM_VCPUS };
	struct kvm_irq_routing *table =
		calloc(1, sizeof(*table) + ROUTES * sizeof(struct kvm_irq_routing_entry));
	int error;

	if (!table)
		return -ENOMEM;
	for (uint32_t gsi = 0; gsi < PINS; gsi++) {
		struct kvm_irq_routing_entry *e = &table->entries[table->nr++];

		e->gsi = gsi;
		e->type = KVM_IRQ_ROUTING_IRQCHIP;
		e->u.irqchip.irqchip = KVM_IRQCHIP_IOAPIC;
		e->u.irqchip.pin = gsi;
	}
	for (uint32_t i = 0; i < 2 * IRQ_VMM_VCPUS; i++) {
		struct kvm_irq_routing_entry *e = &table->entries[table->nr++];
		uint32_t vcpu = i % IRQ_VMM_VCPUS;
		bool shared = i >= IRQ_VMM_VCPUS;

		e->gsi = (shared ? IRQ_GSI_IRQFD_MSI_SHARED : IRQ_GSI_IRQFD_MSI) + vcpu;
		e->type = KVM_IRQ_ROUTING_MSI;
		e->u.msi.address_lo = (uint32_t)MSI_BASE | vcpu << MSI_CPU_SHIFT;
		e->u.msi.data = shared ? IRQ_VECTOR_SHARED : IRQ_VECTOR_IRQFD;
	}
	error = control(m->vm, KVM_SET_GSI_ROUTING, table);
	free(table);
	return error;
}

static int pins_set(struct irq_machine *m)
{
	static const struct {
		uint32_t pin, vector;
		bool level;
	} lines[] = {
		{IRQ_GSI_EDGE, IRQ_VECTOR_EDGE, false},
		{IRQ_GSI_EDGE_SHARED, IRQ_VECTOR_SHARED, false},
		{IRQ_GSI_LEVEL, IRQ_VECTOR_LEVEL, true},
		{IRQ_GSI_IRQFD_PIN, IRQ_VECTOR_IRQFD, false},
	};
	struct kvm_irqchip chip = {.chip_id = KVM_IRQCHIP_IOAPIC};
	int error = control(m->vm, KVM_GET_IRQCHIP, &chip);

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		for (uint32_t vcpu = 0; vcpu < IRQ_VMM_VCPUS; vcpu++) {
			uint32_t pin = lines[i].pin + vcpu;

			chip.chip.ioapic.redirtbl[pin].bits = lines[i].vector;
			chip.chip.ioapic.redirtbl[pin].fields.trig_mode = lines[i].level;
			chip.chip.ioapic.redirtbl[pin].fields.dest_id = (uint8_t)vcpu;
		}
	}
	return error ? error : control(m->vm, KVM_SET_IRQCHIP, &chip);
}

static int irqfds_set(struct irq_machine *m)
{
	static const uint32_t gsis[] = {IRQ_GSI_IRQFD_PIN, IRQ_GSI_IRQFD_MSI,
					IRQ_GSI_IRQFD_MSI_SHARED};
	int error = 0;

	for (uint32_t vcpu = 0; vcpu < IRQ_VMM_VCPUS; vcpu++) {
		for (size_t i = 0; i < sizeof(gsis) / sizeof(gsis[0]) && !error; i++) {
			int fd = eventfd(0, EFD_CLOEXEC);
			struct kvm_irqfd irqfd = {.fd = (uint32_t)fd, .gsi = gsis[i] + vcpu};

			m->irqfds[vcpu][i] = fd;
			error = fd < 0 ? -errno : control(m->vm, KVM_IRQFD, &irqfd);
		}
	}
	return error;
}

static int line_set(struct irq_machine *m, uint32_t gsi, bool level)
{
	struct kvm_irq_level line = {.irq = gsi, .level = level};

	return control(m->vm, KVM_IRQ_LINE, &line);
}

static int edge_raise(struct irq_machine *m, uint32_t gsi)
{
	int error = line_set(m, gsi, true);

	return error ? error : line_set(m, gsi, false);
}

static int msi_raise(struct irq_machine *m, uint32_t vcpu, uint32_t vector)
{
	struct kvm_msi msi = {.address_lo = (uint32_t)MSI_BASE | vcpu << MSI_CPU_SHIFT,
			      .data = vector};
	int n = control(m->vm, KVM_SIGNAL_MSI, &msi);

	return n > 0 ? 0 : n ? n : -EIO; /* 0: the guest blocked it */
}

static int irqfd_raise(struct irq_machine *m, uint32_t vcpu, size_t place)
{
	uint64_t one = 1;

	return write(m->irqfds[vcpu][place], &one, sizeof(one)) == sizeof(one) ? 0 : -errno;
}

int irq_machine_raise(struct irq_machine *m, enum irq_kind kind, uint32_t vcpu, uint32_t vector)
{
	bool shared = vector == IRQ_VECTOR_SHARED;

	switch (kind) {
	case IRQ_KIND_MSI:
		return msi_raise(m, vcpu, vector);
	case IRQ_KIND_EDGE:
		return edge_raise(m, (shared ? IRQ_GSI_EDGE_SHARED : IRQ_GSI_EDGE) + vcpu);
	case IRQ_KIND_LEVEL:
		return line_set(m, IRQ_GSI_LEVEL + vcpu, true);
	case IRQ_KIND_IRQFD_PIN:
		return irqfd_raise(m, vcpu, 0);
	case IRQ_KIND_IRQFD_MSI:
		return irqfd_raise(m, vcpu, shared ? 2 : 1);
	default:
		return -EINVAL;
	}
}

/* ---- running ---- */

static int exit_handle(struct irq_machine_vcpu *v)
{
	const struct kvm_run *run = v->run;
	uint32_t value;

	if (run->exit_reason != KVM_EXIT_IO || run->io.direction != KVM_EXIT_IO_OUT) {
		snprintf(v->machine->truth->error, sizeof(v->machine->truth->error),
			 "vCPU %u left the guest for reason %u", v->number, run->exit_reason);
		return -EPROTO;
	}
	memcpy(&value, (const char *)run + run->io.data_offset, sizeof(value));
	switch (run->io.port) {
	case IRQ_PORT_READY:
		__atomic_store_n(&v->ready, true, __ATOMIC_RELEASE);
		return 0;
	case IRQ_PORT_DEASSERT:
		return line_set(v->machine, IRQ_GSI_LEVEL + v->number, false);
	default:
		snprintf(v->machine->truth->error, sizeof(v->machine->truth->error),
			 "vCPU %u: exception %u", v->number, value);
		return -EFAULT;
	}
}

static void *vcpu_main(void *argument)
{
	struct irq_machine_vcpu *v = argument;
	char name[16];
	int error;

	snprintf(name, sizeof(name), "%s%u%s", v->machine->thread_name, v->number,
		 v->machine->thread_name_end);
	if (*v->machine->thread_name)
		pthread_setname_np(pthread_self(), name);
	do {
		error = control(v->fd, KVM_RUN, NULL);
		if (!error)
			error = exit_handle(v);
		else if (error == -EINTR && v->machine->interrupted)
			v->machine->interrupted(v);
	} while (!error || error == -EINTR || error == -EAGAIN);
	fail(v->machine, error, name);
	return NULL;
}

static int offset_get(struct irq_machine_vcpu *v, uint64_t *offset)
{
	struct kvm_device_attr attribute = {
		.group = KVM_VCPU_TSC_CTRL, .attr = KVM_VCPU_TSC_OFFSET, .addr = (uintptr_t)offset};

	return control(v->fd, KVM_GET_DEVICE_ATTR, &attribute);
}

static int vcpus_start(struct irq_machine *m)
{
	int error = 0;

	for (uint32_t i = 0; i < IRQ_VMM_VCPUS && !error; i++) {
		irq_machine_cpu(m, i)->mode = IRQ_GUEST_HALT;
		error = offset_get(&m->vcpus[i], &m->truth->tsc_offset[i]);
		if (!error)
			error = -pthread_create(&m->vcpus[i].thread, NULL, vcpu_main, &m->vcpus[i]);
	}
	for (uint32_t i = 0; i < IRQ_VMM_VCPUS && !error; i++) {
		for (int ms = 0; !__atomic_load_n(&m->vcpus[i].ready, __ATOMIC_ACQUIRE); ms++) {
			if (ms >= READY_MS || m->truth->error[0])
				return -ETIME;
			usleep(1000);
		}
	}
	return error;
}

static int vm_open(struct irq_machine *m)
{
	m->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (m->kvm < 0)
		return -errno;
	m->vm = control(m->kvm, KVM_CREATE_VM, NULL);
	return m->vm < 0 ? m->vm : 0;
}

int irq_machine_create(struct irq_machine *m, uint8_t *memory, struct irq_truth *truth)
{
	struct kvm_userspace_memory_region region = {.memory_size = IRQ_GUEST_BYTES,
						     .userspace_addr = (uintptr_t)memory};
	int error;

	m->memory = memory;
	m->truth = truth;
	if (!m->thread_name) {
		m->thread_name = "CPU ";
		m->thread_name_end = "/KVM";
	}
	error = fail(m, vm_open(m), "/dev/kvm");
	if (!error)
		error = fail(m, control(m->vm, KVM_CREATE_IRQCHIP, NULL), "KVM_CREATE_IRQCHIP");
	tables_fill(memory);
	if (!error)
		error = fail(m, control(m->vm, KVM_SET_USER_MEMORY_REGION, &region),
			     "KVM_SET_USER_MEMORY_REGION");
	for (uint32_t i = 0; i < IRQ_VMM_VCPUS && !error; i++)
		error = fail(m, vcpu_create(m, i), "vCPU");
	if (!error)
		error = fail(m, routes_set(m), "KVM_SET_GSI_ROUTING");
	if (!error)
		error = fail(m, pins_set(m), "KVM_SET_IRQCHIP");
	if (!error)
		error = fail(m, irqfds_set(m), "KVM_IRQFD");
	return error ? error : fail(m, vcpus_start(m), "vCPUs");
}
