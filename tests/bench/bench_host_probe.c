/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures the CPU time that a host's capture adds, through BPF and through perf. In the first
 * load, two processes on one CPU pass a byte through pipes. They are tasks of no VM, threads of a
 * VM, or vCPUs of a VM, whose stacks are captured when they sleep. In the second load, a guest
 * under KVM causes VM-exits to its VMM.
 *
 * Prints the added CPU time per context switch or exit, and the CPU time of the process that
 * captures. The figures are medians of the differences to the turn without a capture just before.
 * Exit code 77: cannot be measured here (no root, no BPF or no perf).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/backend/capture_open.h"
#include "bpf/capture/capture.h"
#include "bpf/capture/tracepoint_format.h"
#include "tests/bench/child.h"
#include "tests/bench/figure.h"
#include "tests/bench/probe.h"

enum { TURNS = 9, ROUND_TRIPS = 20000, EXITS = 20000, DRAIN_MS = 20, VM = 1, GUEST_BYTES = 4096 };

enum role { STRANGERS, THREADS, VCPUS, GUEST, ROLES };

static const char *const role_names[] = {
	[STRANGERS] = "host: switch of tasks of no VM",
	[THREADS] = "host: switch of a VM's threads",
	[VCPUS] = "host: switch of vCPUs, with stacks",
	[GUEST] = "host: VM-exit to the VMM",
};

/* ---- the load: processes that begin at a byte on `go` and then write their CPU time ---- */

struct load {
	pid_t pids[2];
	size_t n;
	int go[2], result[2];
};

/* Creates a VM that executes `out %al, $0x10` in an endless loop, in real mode. Returns its vCPU,
 * or -1 without KVM. */
static int guest_open(void)
{
	static const unsigned char code[] = {0xe6, 0x10, 0xeb, 0xfc};
	struct kvm_userspace_memory_region region = {.memory_size = GUEST_BYTES};
	struct kvm_regs regs = {.rflags = 2};
	struct kvm_sregs sregs;
	void *memory;
	int vm, vcpu, kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (kvm < 0)
		return -1;
	vm = ioctl(kvm, KVM_CREATE_VM, 0);
	memory = mmap(NULL, GUEST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (vm < 0 || memory == MAP_FAILED)
		return -1;
	memcpy(memory, code, sizeof(code));
	region.userspace_addr = (uintptr_t)memory;
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region))
		return -1;
	vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	if (vcpu < 0 || ioctl(vcpu, KVM_GET_SREGS, &sregs))
		return -1;
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	if (ioctl(vcpu, KVM_SET_SREGS, &sregs) || ioctl(vcpu, KVM_SET_REGS, &regs))
		return -1;
	return vcpu;
}

static void work(const struct load *l, enum role role, int side, const int to[2], const int back[2])
{
	const int vcpu = role == GUEST ? guest_open() : -1;
	const double n = role == GUEST ? EXITS : 2.0 * ROUND_TRIPS;
	uint64_t start;
	bool good = role != GUEST || vcpu >= 0;
	double ns;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(0);
	if (read(l->go[0], &byte, 1) != 1)
		_exit(1);
	start = cpu_ns();
	if (role != GUEST)
		good = pass_bytes(side, ROUND_TRIPS, to, back);
	for (int i = 0; role == GUEST && good && i < EXITS; i++)
		good = !ioctl(vcpu, KVM_RUN, 0);
	ns = good ? (double)(cpu_ns() - start) / n : -1;
	_exit(write(l->result[1], &ns, sizeof(ns)) != sizeof(ns));
}

static bool load_start(struct load *l, enum role role)
{
	int to[2], back[2];

	l->n = role == GUEST ? 1 : 2;
	if (pipe2(to, O_CLOEXEC) || pipe2(back, O_CLOEXEC) || pipe2(l->go, O_CLOEXEC) ||
	    pipe2(l->result, O_CLOEXEC))
		return false;
	for (size_t side = 0; side < l->n; side++) {
		l->pids[side] = child_fork();
		if (!l->pids[side])
			work(l, role, (int)side, to, back);
	}
	close(l->result[1]);
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(back[i]);
	}
	return true;
}

/* Runs the load. Returns ns per switch or exit; negative on failure. */
static double load_run(struct load *l)
{
	double ns, sum = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (write(l->go[1], "", 1) != 1)
			return -1;
	}
	for (size_t i = 0; i < l->n; i++) {
		if (read(l->result[0], &ns, sizeof(ns)) != sizeof(ns) || ns < 0)
			sum = -1e9;
		sum += ns;
	}
	for (size_t i = 0; i < l->n; i++)
		waitpid(l->pids[i], NULL, 0);
	close(l->go[0]);
	close(l->go[1]);
	close(l->result[0]);
	return sum;
}

/* ---- the captures ---- */

struct totals {
	uint64_t emitted, dropped, cpu_ns;
};

static void events_ignore(void *context, uint16_t cpu, const struct vs_event *e, size_t n)
{
	(void)context;
	(void)cpu;
	(void)e;
	(void)n;
}

static void stack_ignore(void *context, const struct capture_stack *stack)
{
	(void)context;
	(void)stack;
}

static void capture_run(enum backend_choice backend, const struct load *l, enum role role,
			int ready, int stop_fd)
{
	const struct capture_options options = {.kind = CAPTURE_HOST,
						.backend = backend,
						.stacks = true,
						.tracepoints = tracepoint_format_read};
	const struct capture_sink sink = {events_ignore, stack_ignore, NULL};
	struct pollfd stop = {.fd = stop_fd, .events = POLLIN};
	struct totals totals = {0};
	struct capture *c;
	char why[256];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (capture_open(&options, &c, why, sizeof(why))) {
		fprintf(stderr, "capture: %s\n", why);
		_exit(77);
	}
	/* The capture attaches to KVM's tracepoints only if it follows a vCPU. For STRANGERS it
	 * follows this process as one. */
	if (role == STRANGERS)
		capture_add_thread(c, getpid(), getpid(), VM, true);
	for (size_t i = 0; role != STRANGERS && i < l->n; i++)
		capture_add_thread(c, l->pids[i], l->pids[i], VM, role != THREADS);
	capture_drain(c, &sink);
	totals.cpu_ns = cpu_ns();
	if (write(ready, "", 1) != 1)
		_exit(1);
	while (!poll(&stop, 1, DRAIN_MS))
		capture_drain(c, &sink);
	capture_drain(c, &sink);
	totals.cpu_ns = cpu_ns() - totals.cpu_ns;
	for (size_t i = 0; i < capture_n_cpus(c); i++) {
		struct capture_cpu_stats stats;

		capture_cpu_stats(c, i, &stats);
		totals.emitted += stats.emitted;
		totals.dropped += stats.dropped;
	}
	capture_close(c);
	_exit(write(ready, &totals, sizeof(totals)) != sizeof(totals));
}

/* Runs the load under a capture. Returns ns per switch or exit; negative on failure. */
static double turn(enum backend_choice backend, enum role role, struct totals *sum, double *used)
{
	struct totals totals = {0};
	int ready[2], stop[2];
	struct load l;
	double ns = -1;
	char byte;
	pid_t pid;

	if (!load_start(&l, role) || pipe2(ready, O_CLOEXEC) || pipe2(stop, O_CLOEXEC))
		return ns;
	if (backend == CAPTURE_BY_ANY)
		return load_run(&l);
	pid = child_fork();
	if (!pid) {
		close(stop[1]);
		capture_run(backend, &l, role, ready[1], stop[0]);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) == 1)
		ns = load_run(&l);
	if (write(stop[1], "", 1) == 1 &&
	    read(ready[0], &totals, sizeof(totals)) == sizeof(totals)) {
		sum->emitted += totals.emitted;
		sum->dropped += totals.dropped;
		*used = (double)totals.cpu_ns / (role == GUEST ? EXITS : 2.0 * ROUND_TRIPS);
	}
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(stop[0]);
	close(stop[1]);
	return ns;
}

/* Measures a role. Returns false if this is impossible here. */
static bool role_measure(enum role role)
{
	static const enum backend_choice backends[2] = {CAPTURE_BY_BPF, CAPTURE_BY_PERF};
	double bare[TURNS], added[2][TURNS], used[2][TURNS] = {0};
	struct totals totals[2] = {0};

	for (int i = 0; i < TURNS; i++) {
		bare[i] = turn(CAPTURE_BY_ANY, role, NULL, NULL);
		for (int k = 0; k < 2; k++) {
			const double ns = turn(backends[k], role, &totals[k], &used[k][i]);

			if (bare[i] < 0 || ns < 0)
				return false;
			added[k][i] = ns - bare[i];
		}
	}
	printf("%s: bare %.0f ns\n", role_names[role], figure_median(bare, TURNS));
	for (int k = 0; k < 2; k++) {
		const char *backend = k ? "perf" : "BPF";
		char name[80];
		const struct figure f = {.name = name, .unit = "ns"};

		printf("%s: %s lost %llu of %llu events\n", role_names[role], backend,
		       (unsigned long long)totals[k].dropped,
		       (unsigned long long)totals[k].emitted);
		snprintf(name, sizeof(name), "%s, added by %s", role_names[role], backend);
		figure_print(&f, added[k], TURNS);
		snprintf(name, sizeof(name), "%s, to drain, %s", role_names[role], backend);
		figure_print(&f, used[k], TURNS);
	}
	return true;
}

int main(void)
{
	bool any = false;

	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (enum role role = 0; role < ROLES; role++) {
		if (role_measure(role))
			any = true;
		else
			printf("%-28s skipped: cannot be measured here\n", role_names[role]);
	}
	return any ? 0 : 77;
}
