// SPDX-License-Identifier: GPL-2.0-only
#include "vmm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "clock/sample.h"
#include "guest.h"

__asm__(".section .rodata\n"
	"guest_image: .incbin \"" GUEST_IMAGE "\"\n"
	"guest_image_end: .byte 0\n"
	".previous\n");
extern const char guest_image[], guest_image_end[];

struct machine {
	int kvm, vm;
	int vcpus[VMM_VCPUS];
	struct kvm_run *runs[VMM_VCPUS];
	char *memory;
};

enum operation {
	OP_CREATE,
	OP_READ_CLOCK,
	OP_ADD_TO_TSC,
	OP_SET_CLOCK,
	OP_CLOCK_CTRL,
	OP_SET_OFFSET,
	OP_OFFSET,
	OP_MASTER_CLOCK,
	OP_SCALE,
};

struct request {
	enum operation operation;
	uint32_t vcpu;
	int64_t argument;
};

struct reply {
	int error;
	uint64_t value;
	struct vmm_pair pair;
};

static int control(int fd, unsigned long request, void *argument)
{
	int n = ioctl(fd, request, argument);

	return n < 0 ? -errno : n;
}

/* Enters the guest until it ends its command. */
static int vcpu_run(struct machine *m, uint32_t vcpu)
{
	struct kvm_run *run = m->runs[vcpu];
	int error;

	do
		error = control(m->vcpus[vcpu], KVM_RUN, NULL);
	while (error == -EINTR || error == -EAGAIN);
	if (error)
		return error;
	if (run->exit_reason != KVM_EXIT_IO || run->io.port != GUEST_PORT)
		return -EPROTO;
	return 0;
}

static struct guest_mailbox *mailbox_of(struct machine *m, uint32_t vcpu)
{
	return (struct guest_mailbox *)(m->memory + GUEST_MAILBOX + vcpu * GUEST_PER_VCPU);
}

/* Flat 32-bit segments; what was in them is of no use to this guest. */
static int vcpu_reset(struct machine *m, uint32_t vcpu)
{
	const struct kvm_segment data = {.limit = 0xffffffff,
					 .selector = 0x10,
					 .type = 3,
					 .present = 1,
					 .db = 1,
					 .s = 1,
					 .g = 1};
	struct kvm_regs regs = {.rip = GUEST_CODE,
				.rsp = GUEST_STACK + vcpu * GUEST_PER_VCPU,
				.rbx = vcpu,
				.rflags = 2};
	struct kvm_sregs sregs;
	int error = control(m->vcpus[vcpu], KVM_GET_SREGS, &sregs);

	if (error)
		return error;
	sregs.ds = sregs.es = sregs.fs = sregs.gs = sregs.ss = sregs.cs = data;
	sregs.cs.selector = 8;
	sregs.cs.type = 11;
	sregs.cr0 |= 1;
	error = control(m->vcpus[vcpu], KVM_SET_SREGS, &sregs);
	return error ? error : control(m->vcpus[vcpu], KVM_SET_REGS, &regs);
}

/* The guest sees what the host's KVM supports, kvmclock among it. */
static int vcpu_set_cpuid(struct machine *m, uint32_t vcpu)
{
	enum { ENTRIES = 256 };
	struct kvm_cpuid2 *cpuid =
		calloc(1, sizeof(*cpuid) + ENTRIES * sizeof(struct kvm_cpuid_entry2));
	int error;

	if (!cpuid)
		return -ENOMEM;
	cpuid->nent = ENTRIES;
	error = control(m->kvm, KVM_GET_SUPPORTED_CPUID, cpuid);
	if (!error)
		error = control(m->vcpus[vcpu], KVM_SET_CPUID2, cpuid);
	free(cpuid);
	return error;
}

static int vcpu_create(struct machine *m, uint32_t vcpu)
{
	int bytes = control(m->kvm, KVM_GET_VCPU_MMAP_SIZE, NULL), error;

	if (bytes < 0)
		return bytes;
	m->vcpus[vcpu] = control(m->vm, KVM_CREATE_VCPU, (void *)(uintptr_t)vcpu);
	if (m->vcpus[vcpu] < 0)
		return m->vcpus[vcpu];
	m->runs[vcpu] =
		mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->vcpus[vcpu], 0);
	if (m->runs[vcpu] == MAP_FAILED)
		return -errno;
	error = vcpu_set_cpuid(m, vcpu);
	return error ? error : vcpu_reset(m, vcpu);
}

static int machine_create(struct machine *m)
{
	struct kvm_userspace_memory_region region = {.memory_size = GUEST_MEMORY_BYTES};
	int error = 0;

	m->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (m->kvm < 0)
		return -errno;
	m->vm = control(m->kvm, KVM_CREATE_VM, NULL);
	if (m->vm < 0)
		return m->vm;
	m->memory = mmap(NULL, GUEST_MEMORY_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->memory == MAP_FAILED)
		return -errno;
	memcpy(m->memory + GUEST_CODE, guest_image, (size_t)(guest_image_end - guest_image));
	region.userspace_addr = (uintptr_t)m->memory;
	error = control(m->vm, KVM_SET_USER_MEMORY_REGION, &region);
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS && !error; vcpu++)
		error = vcpu_create(m, vcpu);
	/* To where it waits for its first command. */
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS && !error; vcpu++)
		error = vcpu_run(m, vcpu);
	return error;
}

static int read_clock(struct machine *m, uint32_t vcpu, struct vmm_pair *out)
{
	struct guest_mailbox *mailbox = mailbox_of(m, vcpu);
	int error;

	mailbox->command = GUEST_READ_CLOCK;
	out->host_before = clock_tsc_read();
	error = vcpu_run(m, vcpu);
	out->host_after = clock_tsc_read();
	out->guest_tsc = mailbox->tsc;
	out->kvmclock_ns = mailbox->kvmclock_ns;
	return error;
}

static int offset_access(struct machine *m, uint32_t vcpu, unsigned long request, uint64_t *offset)
{
	struct kvm_device_attr attribute = {
		.group = KVM_VCPU_TSC_CTRL, .attr = KVM_VCPU_TSC_OFFSET, .addr = (uintptr_t)offset};

	return control(m->vcpus[vcpu], request, &attribute);
}

static int scale(struct machine *m, int64_t permille)
{
	int khz, error = 0;

	if (control(m->kvm, KVM_CHECK_EXTENSION, (void *)KVM_CAP_TSC_CONTROL) <= 0)
		return -EOPNOTSUPP;
	for (uint32_t vcpu = 0; vcpu < VMM_VCPUS && !error; vcpu++) {
		khz = control(m->vcpus[vcpu], KVM_GET_TSC_KHZ, NULL);
		if (khz < 0)
			return khz;
		error = control(m->vcpus[vcpu], KVM_SET_TSC_KHZ,
				(void *)(uintptr_t)(khz * permille / 1000));
	}
	return error;
}

static int request_serve(struct machine *m, const struct request *q, struct reply *r)
{
	struct kvm_clock_data clock = {0};
	int error = 0;

	switch (q->operation) {
	case OP_CREATE:
		return machine_create(m);
	case OP_READ_CLOCK:
		return read_clock(m, q->vcpu, &r->pair);
	case OP_ADD_TO_TSC:
		mailbox_of(m, q->vcpu)->command = GUEST_ADD_TO_TSC;
		mailbox_of(m, q->vcpu)->argument = (uint64_t)q->argument;
		return vcpu_run(m, q->vcpu);
	case OP_SET_CLOCK:
		error = control(m->vm, KVM_GET_CLOCK, &clock);
		clock.clock += (uint64_t)q->argument;
		clock.flags = 0;
		return error ? error : control(m->vm, KVM_SET_CLOCK, &clock);
	case OP_CLOCK_CTRL:
		for (uint32_t vcpu = 0; vcpu < VMM_VCPUS && !error; vcpu++)
			error = control(m->vcpus[vcpu], KVM_KVMCLOCK_CTRL, NULL);
		return error;
	case OP_SET_OFFSET:
		r->value = (uint64_t)q->argument;
		return offset_access(m, q->vcpu, KVM_SET_DEVICE_ATTR, &r->value);
	case OP_OFFSET:
		return offset_access(m, q->vcpu, KVM_GET_DEVICE_ATTR, &r->value);
	case OP_MASTER_CLOCK:
		error = control(m->vm, KVM_GET_CLOCK, &clock);
		r->value = clock.flags & KVM_CLOCK_TSC_STABLE;
		return error;
	case OP_SCALE:
		return scale(m, q->argument);
	}
	return -EINVAL;
}

__attribute__((noreturn)) static void vmm_main(int socket)
{
	struct machine machine = {0};
	struct request request;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (recv(socket, &request, sizeof(request), 0) == sizeof(request)) {
		struct reply reply = {0};

		reply.error = request_serve(&machine, &request, &reply);
		send(socket, &reply, sizeof(reply), MSG_NOSIGNAL);
	}
	_exit(0);
}

/* ---- the test's side ---- */

int vmm_start(struct vmm *v)
{
	int ends[2];

	*v = (struct vmm){.pid = -1, .socket = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	v->pid = fork();
	if (!v->pid) {
		close(ends[0]);
		vmm_main(ends[1]);
	}
	close(ends[1]);
	v->socket = ends[0];
	return v->pid < 0 ? -errno : 0;
}

void vmm_stop(struct vmm *v)
{
	if (v->socket >= 0) {
		shutdown(v->socket, SHUT_RDWR); /* another VMM, forked later, may hold a copy */
		close(v->socket);
	}
	if (v->pid > 0)
		waitpid(v->pid, NULL, 0);
	*v = (struct vmm){.pid = -1, .socket = -1};
}

int vmm_pin(struct vmm *v)
{
	cpu_set_t all, one;

	if (sched_getaffinity(v->pid, sizeof(all), &all))
		return -errno;
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	return sched_setaffinity(v->pid, sizeof(one), &one) ? -errno : 0;
}

static int ask(struct vmm *v, enum operation operation, uint32_t vcpu, int64_t argument,
	       struct reply *reply)
{
	const struct request request = {operation, vcpu, argument};

	if (send(v->socket, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request) ||
	    recv(v->socket, reply, sizeof(*reply), 0) != sizeof(*reply))
		return -EPIPE;
	return reply->error;
}

int vmm_create(struct vmm *v)
{
	struct reply r;

	return ask(v, OP_CREATE, 0, 0, &r);
}

int vmm_read_clock(struct vmm *v, uint32_t vcpu, struct vmm_pair *out)
{
	struct reply r = {0};
	int error = ask(v, OP_READ_CLOCK, vcpu, 0, &r);

	*out = r.pair;
	return error;
}

int vmm_guest_adds_to_tsc(struct vmm *v, uint32_t vcpu, int64_t ticks)
{
	struct reply r;

	return ask(v, OP_ADD_TO_TSC, vcpu, ticks, &r);
}

int vmm_set_clock(struct vmm *v, int64_t ns)
{
	struct reply r;

	return ask(v, OP_SET_CLOCK, 0, ns, &r);
}

int vmm_clock_ctrl(struct vmm *v)
{
	struct reply r;

	return ask(v, OP_CLOCK_CTRL, 0, 0, &r);
}

int vmm_set_offset(struct vmm *v, uint32_t vcpu, uint64_t ticks)
{
	struct reply r;

	return ask(v, OP_SET_OFFSET, vcpu, (int64_t)ticks, &r);
}

int vmm_offset(struct vmm *v, uint32_t vcpu, uint64_t *out)
{
	struct reply r = {0};
	int error = ask(v, OP_OFFSET, vcpu, 0, &r);

	*out = r.value;
	return error;
}

int vmm_master_clock(struct vmm *v, bool *on)
{
	struct reply r = {0};
	int error = ask(v, OP_MASTER_CLOCK, 0, 0, &r);

	*on = r.value;
	return error;
}

int vmm_scale(struct vmm *v, uint32_t permille)
{
	struct reply r;

	return ask(v, OP_SCALE, 0, permille, &r);
}
