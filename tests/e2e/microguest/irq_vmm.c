// SPDX-License-Identifier: GPL-2.0-only
#include "irq_vmm.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock/sample.h"
#include "irq_machine.h"

enum {
	WAIT_US = 10000000, /* for a handler */
	STEP_US = 40,
	SETTLE_US = 2000,
	BURST_MAX = 5,
	TIMER_TICKS_MIN = 50000,
	TIMER_TICKS_SPREAD = 600000,
};

struct play {
	struct irq_machine machine;
	struct irq_truth *truth;
	uint32_t random;
	enum irq_guest_mode modes[IRQ_VMM_VCPUS];
	uint64_t wanted[IRQ_VMM_VCPUS][256]; /* runs of each vector to wait for */
};

static const struct {
	const char *name;
	uint32_t vector;
} kinds[] = {
#define X(NAME, text, vector) [IRQ_KIND_##NAME] = {text, vector},
	IRQ_KINDS(X)
#undef X
};

const char *irq_kind_name(enum irq_kind kind)
{
	return kinds[kind].name;
}

/* ---- raising ---- */

static uint32_t draw(struct play *p, uint32_t below)
{
	p->random = p->random * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)p->random * below >> 32);
}

static int fail(struct play *p, int error, const char *what, uint32_t vcpu, uint32_t vector)
{
	if (!p->truth->error[0])
		snprintf(p->truth->error, sizeof(p->truth->error),
			 "vCPU %u, vector %#x, %llu raised: %s", vcpu, vector,
			 (unsigned long long)p->truth->n_raised, what);
	return error;
}

/* One run more of this vector's handler, which does not run now, is to be waited for. */
static void run_want(struct play *p, uint32_t vcpu, uint32_t vector)
{
	p->wanted[vcpu][vector] = irq_machine_cpu(&p->machine, vcpu)->runs[vector] + 1;
}

/* Until the guest has run all handlers of this vector. */
static int runs_wait(struct play *p, uint32_t vcpu, uint32_t vector)
{
	volatile struct irq_guest_cpu *cpu = irq_machine_cpu(&p->machine, vcpu);

	for (int us = 0; cpu->runs[vector] < p->wanted[vcpu][vector]; us += STEP_US) {
		if (us >= WAIT_US || p->truth->error[0])
			return fail(p, -ETIMEDOUT, "its handler did not run", vcpu, vector);
		usleep(STEP_US);
	}
	return 0;
}

/* NULL if there is no room left. */
static struct irq_raised *raised_new(struct play *p, enum irq_kind kind, uint32_t vcpu,
				     uint32_t vector)
{
	struct irq_raised *r;

	if (p->truth->n_raised >= IRQ_RAISED_MAX ||
	    irq_machine_cpu(&p->machine, vcpu)->n_log + BURST_MAX > IRQ_GUEST_LOG_MAX)
		return NULL;
	r = &p->truth->raised[p->truth->n_raised++];
	*r = (struct irq_raised){
		.kind = kind, .vcpu = vcpu, .vector = vector, .mode = p->modes[vcpu]};
	return r;
}

/* From outside; does not wait. */
static int raise_outside(struct play *p, enum irq_kind kind, uint32_t vcpu, uint32_t vector,
			 bool merged)
{
	struct irq_raised *r = raised_new(p, kind, vcpu, vector);
	int error;

	if (!r)
		return fail(p, -ENOSPC, "no room to note it", vcpu, vector);
	r->merged = merged;
	if (!merged)
		run_want(p, vcpu, vector);
	r->before = clock_tsc_read();
	error = irq_machine_raise(&p->machine, kind, vcpu, vector);
	r->after = clock_tsc_read();
	return error ? fail(p, error, "cannot be raised", vcpu, vector) : 0;
}

/* Has `vcpu` do something in the handler of an MSI; returns when it is done. */
static int command(struct play *p, uint32_t vcpu, enum irq_guest_command what, uint32_t vector,
		   uint64_t argument)
{
	volatile struct irq_guest_cpu *cpu = irq_machine_cpu(&p->machine, vcpu);
	uint64_t index = p->truth->n_raised;
	int error;

	cpu->vector = vector;
	cpu->argument = argument;
	__atomic_store_n(&cpu->command, what, __ATOMIC_RELEASE);
	error = raise_outside(p, IRQ_KIND_MSI, vcpu, IRQ_VECTOR_COMMAND, false);
	if (!error)
		error = runs_wait(p, vcpu, IRQ_VECTOR_COMMAND);
	if (!error)
		p->truth->raised[index].seen = clock_tsc_read();
	return error;
}

static int mode_set(struct play *p, uint32_t vcpu, enum irq_guest_mode mode)
{
	volatile struct irq_guest_cpu *cpu = irq_machine_cpu(&p->machine, vcpu);
	bool halted = p->modes[vcpu] == IRQ_GUEST_HALT;
	int error = 0;

	/* On its way to the next halt it might close before it takes the command. */
	if (halted && mode == IRQ_GUEST_CLOSED) {
		error = mode_set(p, vcpu, IRQ_GUEST_SPIN);
		if (error)
			return error;
		halted = false;
	}
	__atomic_store_n(&cpu->mode, mode, __ATOMIC_RELEASE);
	if (halted) /* an interrupt ends the halt */
		error = command(p, vcpu, IRQ_GUEST_NOTHING, 0, 0);
	p->modes[vcpu] = mode;
	for (int us = 0; !error && cpu->mode_seen != mode; us += STEP_US) {
		if (us >= WAIT_US)
			error = fail(p, -ETIMEDOUT, "the guest does not change what it does", vcpu,
				     0);
		usleep(STEP_US);
	}
	return error;
}

/* By the guest itself: to this vCPU from the other one, or by this one's timer. */
static int raise_from_inside(struct play *p, enum irq_kind kind, uint32_t vcpu, uint32_t vector)
{
	uint64_t sender = p->truth->n_raised;
	struct irq_raised *r;
	int error;

	run_want(p, vcpu, vector);
	if (kind == IRQ_KIND_IPI)
		error = command(p, 1 - vcpu, IRQ_GUEST_SEND_IPI, 0, (uint64_t)vcpu << 32 | vector);
	else
		error = command(p, vcpu, IRQ_GUEST_ARM_TIMER, vector,
				TIMER_TICKS_MIN + draw(p, TIMER_TICKS_SPREAD));
	if (error)
		return error;
	r = raised_new(p, kind, vcpu, vector);
	if (!r)
		return fail(p, -ENOSPC, "no room to note it", vcpu, vector);
	r->sender = (uint32_t)sender;
	return runs_wait(p, vcpu, vector);
}

static int raise_one(struct play *p, enum irq_kind kind, uint32_t vcpu, uint32_t vector)
{
	uint64_t index = p->truth->n_raised;
	int error;

	if (kind == IRQ_KIND_IPI || kind == IRQ_KIND_TIMER)
		return raise_from_inside(p, kind, vcpu, vector);
	error = raise_outside(p, kind, vcpu, vector, false);
	if (!error)
		error = runs_wait(p, vcpu, vector);
	if (!error)
		p->truth->raised[index].seen = clock_tsc_read();
	/* Of lower priority than one that came again, so that is over, too. */
	if (!error && kind == IRQ_KIND_LEVEL)
		error = command(p, vcpu, IRQ_GUEST_NOTHING, 0, 0);
	return error;
}

/* Several of different vectors at once. */
static int raise_burst(struct play *p, uint32_t vcpu)
{
	static const enum irq_kind outside[] = {IRQ_KIND_MSI, IRQ_KIND_EDGE, IRQ_KIND_LEVEL,
						IRQ_KIND_IRQFD_MSI};
	enum { OUTSIDE = sizeof(outside) / sizeof(outside[0]) };
	uint32_t first = draw(p, OUTSIDE), n = 2 + draw(p, OUTSIDE - 1);
	int error = 0;

	for (uint32_t i = 0; i < n && !error; i++) {
		enum irq_kind kind = outside[(first + i) % OUTSIDE];

		error = raise_outside(p, kind, vcpu, kinds[kind].vector, false);
	}
	for (uint32_t i = 0; i < n && !error; i++)
		error = runs_wait(p, vcpu, kinds[outside[(first + i) % OUTSIDE]].vector);
	return error ? error : command(p, vcpu, IRQ_GUEST_NOTHING, 0, 0);
}

/* Two of one vector while the guest has interrupts off: the second finds the first pending. */
static int raise_merged(struct play *p, uint32_t vcpu)
{
	static const enum irq_kind pairs[][2] = {{IRQ_KIND_MSI, IRQ_KIND_MSI},
						 {IRQ_KIND_EDGE, IRQ_KIND_IRQFD_MSI},
						 {IRQ_KIND_IRQFD_MSI, IRQ_KIND_MSI}};
	const enum irq_kind *pair = pairs[draw(p, sizeof(pairs) / sizeof(pairs[0]))];
	enum irq_guest_mode before = p->modes[vcpu];
	int error = mode_set(p, vcpu, IRQ_GUEST_CLOSED);

	for (int i = 0; i < 2 && !error; i++) {
		error = raise_outside(p, pair[i], vcpu, IRQ_VECTOR_SHARED, i == 1);
		usleep(SETTLE_US); /* a kernel worker may have to raise it */
	}
	if (!error)
		error = mode_set(p, vcpu, before);
	return error ? error : runs_wait(p, vcpu, IRQ_VECTOR_SHARED);
}

static int raise_all(struct play *p, uint32_t count)
{
	int error = 0;

	while (p->truth->n_raised < count && !error) {
		enum irq_kind kind = draw(p, IRQ_KIND_COUNT);
		uint32_t vcpu = draw(p, IRQ_VMM_VCPUS), what = draw(p, 40);
		bool shared =
			draw(p, 3) == 0 && kind != IRQ_KIND_LEVEL && kind != IRQ_KIND_IRQFD_PIN;

		if (what == 0)
			error = mode_set(p, vcpu,
					 p->modes[vcpu] == IRQ_GUEST_HALT ? IRQ_GUEST_SPIN
									  : IRQ_GUEST_HALT);
		else if (what == 1)
			error = raise_burst(p, vcpu);
		else if (what == 2)
			error = raise_merged(p, vcpu);
		else
			error = raise_one(p, kind, vcpu,
					  shared ? IRQ_VECTOR_SHARED : kinds[kind].vector);
	}
	/* Nobody spins while the test reads. */
	for (uint32_t i = 0; i < IRQ_VMM_VCPUS && !error; i++)
		error = mode_set(p, i, IRQ_GUEST_HALT);
	return error;
}

/* ---- which run belongs to which ---- */

/* The next one of this vCPU and vector from `from` on that has a run of its own; n_raised: none. */
static uint64_t raised_next(const struct irq_truth *t, uint64_t n, uint64_t from, uint32_t vcpu,
			    uint64_t vector)
{
	while (from < n && (t->raised[from].vcpu != vcpu || t->raised[from].vector != vector ||
			    t->raised[from].merged))
		from++;
	return from;
}

/* At most one of a vCPU and vector was under way at any time, so runs and causes have one order. */
static int runs_match(struct play *p, uint32_t vcpu)
{
	const volatile struct irq_guest_cpu *cpu = irq_machine_cpu(&p->machine, vcpu);
	struct irq_truth *t = p->truth;
	uint64_t next[256] = {0}, last[256] = {0}, n = t->n_raised;

	for (uint64_t log = 0; log < cpu->n_log; log++) {
		uint64_t vector = cpu->log[log].vector;
		uint64_t began = cpu->log[log].entry - t->tsc_offset[vcpu];
		uint64_t i = raised_next(t, n, next[vector], vcpu, vector);

		if (i < n && t->raised[i].before <= began) {
			t->raised[i].log = log;
			last[vector] = i;
			next[vector] = i + 1;
		} else if (next[vector] && vector == IRQ_VECTOR_LEVEL) {
			struct irq_raised *again =
				raised_new(p, IRQ_KIND_LEVEL, vcpu, IRQ_VECTOR_LEVEL);

			if (!again)
				return fail(p, -ENOSPC, "no room to note it", vcpu,
					    IRQ_VECTOR_LEVEL);
			*again = t->raised[last[vector]];
			again->log = log;
			again->again = true;
		} else {
			return fail(p, -EPROTO, "a handler ran that nobody caused", vcpu,
				    (uint32_t)vector);
		}
	}
	for (uint64_t i = 0; i < n; i++) /* follows the one that it was merged into */
		if (t->raised[i].merged)
			t->raised[i].log = t->raised[i - 1].log;
	for (uint64_t vector = 0; vector < 256; vector++)
		if (raised_next(t, n, next[vector], vcpu, vector) < n)
			return fail(p, -EPROTO, "fewer runs than causes", vcpu, (uint32_t)vector);
	return 0;
}

static int play(struct play *p, uint32_t count)
{
	int error = raise_all(p, count);

	for (uint32_t i = 0; i < IRQ_VMM_VCPUS && !error; i++)
		error = runs_match(p, i);
	return error;
}

/* ---- the process ---- */

struct request {
	uint32_t count, seed; /* count 0: create */
};

__attribute__((noreturn)) static void vmm_main(int socket, uint8_t *memory, struct irq_truth *truth)
{
	static struct play p;
	struct request request;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	p.truth = truth;
	for (uint32_t i = 0; i < IRQ_VMM_VCPUS; i++)
		p.modes[i] = IRQ_GUEST_HALT;
	while (recv(socket, &request, sizeof(request), 0) == sizeof(request)) {
		int error;

		p.random = request.seed;
		error = request.count ? play(&p, request.count)
				      : irq_machine_create(&p.machine, memory, truth);
		send(socket, &error, sizeof(error), MSG_NOSIGNAL);
	}
	_exit(0);
}

static int ask(struct irq_vmm *v, const struct request *request)
{
	return send(v->socket, request, sizeof(*request), MSG_NOSIGNAL) == sizeof(*request)
		       ? 0
		       : -EPIPE;
}

int irq_vmm_wait(struct irq_vmm *v, int timeout_ms)
{
	struct pollfd p = {.fd = v->socket, .events = POLLIN};
	int error;

	if (!poll(&p, 1, timeout_ms))
		return -ETIME;
	return recv(v->socket, &error, sizeof(error), 0) == sizeof(error) ? error : -EPIPE;
}

int irq_vmm_play(struct irq_vmm *v, uint32_t count, uint32_t seed)
{
	return ask(v, &(struct request){count, seed});
}

static void *shared_new(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int irq_vmm_start(struct irq_vmm *v)
{
	int ends[2], error;

	*v = (struct irq_vmm){.pid = -1, .socket = -1};
	v->memory = shared_new(IRQ_GUEST_BYTES);
	v->truth = shared_new(sizeof(*v->truth));
	if (!v->memory || !v->truth)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	v->pid = fork();
	if (!v->pid) {
		close(ends[0]);
		vmm_main(ends[1], v->memory, v->truth);
	}
	close(ends[1]);
	v->socket = ends[0];
	if (v->pid < 0)
		return -errno;
	error = ask(v, &(struct request){0, 0});
	return error ? error : irq_vmm_wait(v, -1);
}

void irq_vmm_stop(struct irq_vmm *v)
{
	if (v->socket >= 0)
		close(v->socket);
	if (v->pid > 0) {
		kill(v->pid, SIGKILL); /* it may be in the middle of a play */
		waitpid(v->pid, NULL, 0);
	}
	if (v->memory)
		munmap(v->memory, IRQ_GUEST_BYTES);
	if (v->truth)
		munmap(v->truth, sizeof(*v->truth));
	*v = (struct irq_vmm){.pid = -1, .socket = -1};
}

const struct irq_guest_cpu *irq_vmm_cpu(const struct irq_vmm *v, uint32_t vcpu)
{
	return (const struct irq_guest_cpu *)(v->memory + IRQ_GUEST_SHARED) + vcpu;
}
