/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures the cost of `vcpuscope-agent --sample-hz`: the run time of the capture's BPF programs,
 * as the kernel counts it (BPF_ENABLE_STATS). The first load is a process on CPU 0 that computes in
 * 16 nested functions. The second load is two processes on CPU 0 that wake each other in turn.
 *
 * Prints the ns for each sample of a busy CPU, and for a switch with and without the stack of the
 * task that goes to sleep. The figures do not include the interrupt of the timer. Exit code 77:
 * cannot be measured here.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf/backend/capture_open.h"
#include "bpf/capture/capture.h"
#include "tests/bench/child.h"
#include "tests/bench/figure.h"
#include "tests/bench/probe.h"

enum { SAMPLE_HZ = 999, WORK_MS = 2000, DRAIN_MS = 20, DEPTH = 16, FDS = 1024 };

struct cost {
	uint64_t ns, runs;
};

static __attribute__((noinline)) uint64_t compute(int depth)
{
	volatile uint64_t x = (uint64_t)depth;

	if (depth)
		return compute(depth - 1) + x;
	for (int i = 0; i < 1000000; i++)
		x = x + 1;
	return x;
}

static void busy(void)
{
	pin(0);
	for (;;)
		compute(DEPTH);
}

static void ping_pong(void)
{
	int to[2], back[2];
	char byte = 0;
	pid_t other;

	pin(0);
	if (pipe(to) || pipe(back))
		_exit(1);
	other = child_fork();
	close(other ? to[0] : to[1]);
	close(other ? back[1] : back[0]);
	/* When this process is killed, its pipes close, and the other process ends. */
	for (;;) {
		if (other && write(to[1], &byte, 1) != 1)
			_exit(1);
		if (read(other ? back[0] : to[0], &byte, 1) != 1)
			_exit(1);
		if (!other && write(back[1], &byte, 1) != 1)
			_exit(1);
	}
}

static bool is_program(int fd)
{
	char path[32], what[32] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, what, sizeof(what) - 1) > 0 && !strcmp(what, "anon_inode:bpf-prog");
}

/* Returns the cost of the program of this name that this process has loaded. */
static struct cost cost_of(const char *name)
{
	struct cost c = {0};

	for (int fd = 0; fd < FDS; fd++) {
		struct bpf_prog_info info = {0};
		uint32_t bytes = sizeof(info);

		if (!is_program(fd) || bpf_obj_get_info_by_fd(fd, &info, &bytes) ||
		    strcmp(info.name, name) != 0)
			continue;
		c.ns += info.run_time_ns;
		c.runs += info.run_cnt;
	}
	return c;
}

static void events_ignore(void *context, uint16_t cpu, const struct vs_event *e, size_t n)
{
	(void)context, (void)cpu, (void)e, (void)n;
}

static void stack_ignore(void *context, const struct capture_guest_stack *stack)
{
	(void)context, (void)stack;
}

/* Measures the cost of program `name` while `work` runs. Returns 0 or -errno. */
static int measure(void (*work)(void), uint32_t hz, const char *name, struct cost *out)
{
	const struct capture_options options = {.kind = CAPTURE_GUEST,
						.backend = CAPTURE_BY_BPF,
						.sample_hz = hz,
						.ring_bytes = 32 << 20};
	const struct capture_sink sink = {.events = events_ignore};
	struct capture *c;
	char why[256];
	int err = capture_open(&options, &c, why, sizeof(why));
	pid_t pid;

	if (err) {
		printf("guest stacks: skipped: %s\n", why);
		return err;
	}
	pid = child_fork();
	if (!pid) {
		work();
		_exit(0);
	}
	for (int ms = 0; ms < WORK_MS; ms += DRAIN_MS) {
		poll(NULL, 0, DRAIN_MS);
		capture_drain(c, &sink);
		if (hz)
			capture_guest_stacks(c, stack_ignore, NULL, 4096);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	*out = cost_of(name);
	capture_close(c);
	return 0;
}

static double each(struct cost c)
{
	return c.runs ? (double)c.ns / (double)c.runs : 0;
}

int main(void)
{
	static const struct figure figures[] = {
		{.name = "guest's stacks: a look at a busy CPU", .unit = "ns"},
		{.name = "guest's stacks: a switch without", .unit = "ns"},
		{.name = "guest's stacks: a switch with the stack of who goes to sleep",
		 .unit = "ns"},
	};
	struct cost look, bare, with;
	const int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);

	if (stats < 0) {
		printf("guest stacks: skipped: the kernel does not count what BPF programs cost: "
		       "%s\n",
		       strerror(errno));
		return 77;
	}
	if (measure(busy, SAMPLE_HZ, "vs_sample", &look) ||
	    measure(ping_pong, 0, "vs_switch", &bare) ||
	    measure(ping_pong, SAMPLE_HZ, "vs_switch", &with))
		return 77;
	printf("guest stacks: %llu looks at a busy CPU: %.3f %% of it at 99 Hz; %llu switches\n",
	       (unsigned long long)look.runs, each(look) * 99 / 1e7, (unsigned long long)with.runs);
	figure_print_one(&figures[0], each(look));
	figure_print_one(&figures[1], each(bare));
	figure_print_one(&figures[2], each(with));
	close(stats);
	return !look.runs || !with.runs;
}
