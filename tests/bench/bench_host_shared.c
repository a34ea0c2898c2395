/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures the cost of the one capture that all VMs of a daemon share, with 2 VMs and with 50. Two
 * processes, as vCPUs of two VMs, pass a byte through pipes on one CPU. The kernel counts the run
 * time of the BPF programs (kernel.bpf_stats; the figures include the cost of counting). This
 * program counts its own CPU time for giving the events to the users of the capture. For
 * comparison, it measures ten captures of one VM each.
 *
 * Goals: a switch costs no more with 50 VMs than with 2, and at most 1.8 us. Exit code 77: cannot
 * be measured here.
 */
#include <bpf/bpf.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf/backend/capture_open.h"
#include "bpf/capture/capture_internal.h"
#include "bpf/backend/capture_shared.h"
#include "tests/bench/child.h"
#include "tests/bench/figure.h"

enum {
	VMS = 50,
	CAPTURES = 10,
	ROUNDS = 15,
	ROUND_TRIPS = 5000,
	GOAL_SWITCH_NS = 1800,
	SKIPPED = 77
};
/* Equal costs differ by some percent between rounds on a busy machine. */
#define SAME 1.15

/* Figures of each round. */
struct cost {
	double per_hit[ROUNDS], per_switch[ROUNDS]; /* ns in the capture's BPF programs */
	double drain[ROUNDS];                       /* ns of this process per switch */
	double events;                              /* per switch */
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void pass_bytes(const int from[2], const int to[2])
{
	cpu_set_t set;
	char byte;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(from[0], &byte, 1) == 1 && write(to[1], &byte, 1) == 1)
		;
	_exit(0);
}

static pid_t sleeper(void)
{
	pid_t pid = child_fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

/* Two processes and this one form a ring of pipes. This process starts each round trip with a byte
 * on `begin`. */
struct pair {
	pid_t pids[2];
	int begin[2], between[2], end[2];
};

static bool pair_start(struct pair *p)
{
	if (pipe(p->begin) || pipe(p->between) || pipe(p->end))
		return false;
	p->pids[0] = child_fork();
	if (!p->pids[0])
		pass_bytes(p->begin, p->between);
	p->pids[1] = child_fork();
	if (!p->pids[1])
		pass_bytes(p->between, p->end);
	return p->pids[0] > 0 && p->pids[1] > 0;
}

static void reap(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void events_count(void *context, uint16_t cpu, const struct vs_event *events, size_t n)
{
	(void)cpu, (void)events;
	*(uint64_t *)context += n;
}

static void stack_ignore(void *context, const struct capture_stack *stack)
{
	(void)context, (void)stack;
}

static bool cost_sum(struct capture *const *captures, size_t n, uint64_t *ns, uint64_t *hits)
{
	*ns = *hits = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t one_ns, one_hits;

		if (capture_cost(captures[i], &one_ns, &one_hits))
			return false;
		*ns += one_ns;
		*hits += one_hits;
	}
	return true;
}

/* Measures the programs of the captures `all`, and the draining of the captures `users`. */
static bool measure(const struct pair *p, struct capture *const *all, size_t n_all,
		    struct capture *const *users, size_t n_users, struct cost *c)
{
	const double switches = 2.0 * ROUND_TRIPS;
	uint64_t events = 0;
	const struct capture_sink sink = {events_count, stack_ignore, &events};

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t ns[2], hits[2], used;
		char byte = 0;

		if (!cost_sum(all, n_all, &ns[0], &hits[0]))
			return false;
		for (int i = 0; i < ROUND_TRIPS; i++) {
			if (write(p->begin[1], &byte, 1) != 1 || read(p->end[0], &byte, 1) != 1)
				return false;
		}
		if (!cost_sum(all, n_all, &ns[1], &hits[1]) || hits[1] <= hits[0])
			return false;
		events = 0;
		usleep(6000); /* the rings are read at most once in 5 ms */
		used = cpu_ns();
		for (size_t i = 0; i < n_users; i++) {
			struct clock_sample sample;

			if (capture_clock_sample(users[i], &sample) ||
			    capture_drain(users[i], &sink) < 0)
				return false;
		}
		used = cpu_ns() - used;
		c->per_hit[round] = (double)(ns[1] - ns[0]) / (double)(hits[1] - hits[0]);
		c->per_switch[round] = (double)(ns[1] - ns[0]) / switches;
		c->drain[round] = (double)used / switches;
		c->events = (double)events / switches;
	}
	return true;
}

/* Returns false if the cost misses the goal. */
static bool cost_print(const char *captures, struct cost *c, enum figure_goal goal_is)
{
	char name[80];
	struct figure f = {.name = name, .unit = "ns"};

	printf("%s: %.1f events per switch\n", captures, c->events);
	snprintf(name, sizeof(name), "host: hit of a program, %s", captures);
	figure_print(&f, c->per_hit, ROUNDS);
	snprintf(name, sizeof(name), "host: drain of a vCPU switch, %s", captures);
	figure_print(&f, c->drain, ROUNDS);
	snprintf(name, sizeof(name), "host: vCPU switch, %s", captures);
	f.goal_is = goal_is;
	f.goal = GOAL_SWITCH_NS;
	return figure_print(&f, c->per_switch, ROUNDS);
}

/* Measures one capture for each VM: one follows the pair, the others follow sleeping processes. */
static bool separate_measure(const struct pair *p, const pid_t *others, struct cost *out)
{
	const struct capture_options options = {
		.kind = CAPTURE_HOST, .backend = CAPTURE_BY_BPF, .stacks = true};
	struct capture *captures[CAPTURES] = {NULL};
	char why[256];
	size_t n = 0;
	bool good = true;

	for (; good && n < CAPTURES; n++) {
		good = !capture_open(&options, &captures[n], why, sizeof(why));
		for (int i = 0; good && i < (n ? 1 : 2); i++) {
			const pid_t pid = n ? others[n] : p->pids[i];

			good = !capture_add_thread(captures[n], pid, pid, 1, true);
		}
	}
	good = good && measure(p, captures, n, captures, n, out);
	for (size_t i = 0; i < CAPTURES; i++)
		capture_close(captures[i]);
	return good;
}

int main(void)
{
	const struct capture_options options = {.backend = CAPTURE_BY_BPF, .stacks = true};
	struct capture *users[VMS] = {NULL}; /* each process of the pair is a VM */
	struct capture_shared *shared = NULL;
	struct cost one, many, separate;
	bool good;
	pid_t others[VMS] = {0};
	int stats, status = SKIPPED;
	struct pair p = {0};
	char why[256];

	stats = geteuid() ? -1 : bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (stats < 0 || !pair_start(&p)) {
		puts("skipped: the kernel measures programs for root only, and here not at all");
		return SKIPPED;
	}
	if (capture_shared_open(&options, &shared, why, sizeof(why))) {
		puts(why);
		goto out;
	}
	for (int i = 0; i < 2; i++) {
		if (capture_shared_join(shared, 0, &users[i]) ||
		    capture_add_thread(users[i], p.pids[i], p.pids[i], 1, true))
			goto out;
	}
	if (!measure(&p, users, 1, users, 2, &one))
		goto out;
	for (int i = 2; i < VMS; i++) {
		others[i] = sleeper();
		if (capture_shared_join(shared, 0, &users[i]) ||
		    capture_add_thread(users[i], others[i], others[i], 1, true))
			goto out;
	}
	others[1] = sleeper();
	if (!measure(&p, users, 1, users, VMS, &many))
		goto out;
	for (int i = 0; i < VMS; i++) {
		if (users[i])
			capture_close(users[i]);
		users[i] = NULL;
	}
	if (!separate_measure(&p, others, &separate))
		goto out;
	good = cost_print("one capture, 2 VMs", &one, FIGURE_AT_MOST);
	good &= cost_print("one capture, 50 VMs", &many, FIGURE_AT_MOST);
	cost_print("10 captures, 10 VMs", &separate, FIGURE_NO_GOAL);
	/* figure_print() has sorted the rounds. */
	for (int round = 0; round < ROUNDS; round++)
		many.per_switch[round] /= one.per_switch[ROUNDS / 2];
	good &= figure_print(&(struct figure){.name = "host: vCPU switch, 50 VMs against 2",
					      .unit = "x",
					      .goal_is = FIGURE_AT_MOST,
					      .goal = SAME},
			     many.per_switch, ROUNDS);
	status = !good;
out:
	for (int i = 0; i < VMS; i++) {
		if (users[i])
			capture_close(users[i]);
		reap(others[i]);
	}
	capture_shared_close(shared);
	reap(p.pids[0]);
	reap(p.pids[1]);
	close(stats);
	return status;
}
