/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures the run time of the host's BPF program for each VM-exit and VM-entry, at both levels,
 * with one VM and with 50. The program is attached to the entry and return of a system call instead
 * of KVM's tracepoints, because every machine can cause a million of these per second. The kernel
 * counts the run time (kernel.bpf_stats_enabled); the figures include the cost of counting.
 *
 * Goals: at most 200 ns for each hit at level summary; 50 VMs cost no more than one.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/backend/capture_open.h"
#include "bpf/backend/capture_bpf.h"
#include "tests/bench/child.h"
#include "tests/bench/figure.h"

enum { VMS_MANY = 50, ROUNDS = 60, CALLS = 10000, GOAL_NS = 200, SKIPPED = 77 };
/* Equal costs differ by a few percent between rounds on a busy machine. */
#define SAME 1.15

/* A tracepoint_reader: uses the number of the system call for every field. */
static int reader(const char *system, const char *name, struct tracepoint_field *fields, size_t n)
{
	(void)name;
	for (size_t i = 0; i < n; i++) {
		fields[i].offset = 8;
		fields[i].bytes = fields[i].name ? 8 : 0;
	}
	return strcmp(system, "kvm") ? -ENOENT : 0;
}

static size_t row_of(const char *name)
{
	const struct event_tracepoint *row;
	size_t i = 0;

	while ((row = tracepoint_row(i)) && strcmp(row->name, name))
		i++;
	return i;
}

static void events_ignore(void *context, uint16_t cpu, const struct vs_event *events, size_t n)
{
	(void)context;
	(void)cpu;
	(void)events;
	(void)n;
}

static int cost_read(const struct bpf_program *program, uint64_t *ns, uint64_t *hits)
{
	struct bpf_prog_info info = {0};
	uint32_t bytes = sizeof(info);
	int err = bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes);

	*ns = info.run_time_ns;
	*hits = info.run_cnt;
	return err;
}

/* Stores the ns per hit of each round. Returns false on error. */
static bool measure(struct capture *c, const struct bpf_program *program, double *each)
{
	const struct capture_sink sink = {.events = events_ignore};

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t ns[2], hits[2];

		if (cost_read(program, &ns[0], &hits[0]))
			return false;
		for (int i = 0; i < CALLS; i++)
			syscall(SYS_getppid);
		if (cost_read(program, &ns[1], &hits[1]) || hits[1] - hits[0] < CALLS ||
		    capture_drain(c, &sink) < 0)
			return false;
		each[round] = (double)(ns[1] - ns[0]) / (double)(hits[1] - hits[0]);
	}
	return true;
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

int main(void)
{
	const struct capture_options options = {
		.kind = CAPTURE_HOST, .backend = CAPTURE_BY_BPF, .tracepoints = reader};
	static const char *const hits[][2] = {{"sys_exit_getppid", "kvm_entry"},
					      {"sys_enter_getppid", "kvm_exit"}};
	struct bpf_link *links[2] = {NULL};
	const pid_t self = getpid();
	pid_t others[VMS_MANY] = {0};
	struct bpf_program *program;
	struct capture *c = NULL;
	static double ns[2][2][ROUNDS];
	char why[256], name[80];
	bool good = true;
	int stats, status = 1;

	if (geteuid()) {
		puts("skipped: BPF needs root");
		return SKIPPED;
	}
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (stats < 0) {
		printf("skipped: the kernel measures no programs: %s\n", strerror(errno));
		return SKIPPED;
	}
	if (capture_open(&options, &c, why, sizeof(why))) {
		puts(why);
		goto out;
	}
	program = bpf_object__find_program_by_name(((struct capture_bpf *)c)->programs.object,
						   "vs_h_tracepoint");
	if (capture_add_thread(c, self, self, 0, true))
		goto out;
	for (size_t i = 0; i < 2; i++) {
		LIBBPF_OPTS(bpf_tracepoint_opts, at, .bpf_cookie = row_of(hits[i][1]));

		links[i] =
			bpf_program__attach_tracepoint_opts(program, "syscalls", hits[i][0], &at);
		if (!links[i]) {
			printf("skipped: no tracepoint syscalls:%s here\n", hits[i][0]);
			status = SKIPPED;
			goto out;
		}
	}
	for (int many = 0; many < 2; many++) {
		for (uint32_t vm = 1; many && vm < VMS_MANY; vm++) {
			others[vm] = sleeper();
			if (others[vm] < 0 ||
			    capture_add_thread(c, others[vm], others[vm], vm, true) ||
			    capture_level_set(c, vm, CAPTURE_SUMMARY))
				goto out;
		}
		for (int level = CAPTURE_DETAIL; level <= CAPTURE_SUMMARY; level++) {
			capture_level_set(c, 0, (enum capture_level)level);
			if (!measure(c, program, ns[many][level])) {
				puts("nothing could be measured");
				goto out;
			}
		}
	}
	for (int many = 0; many < 2; many++) {
		for (int level = CAPTURE_DETAIL; level <= CAPTURE_SUMMARY; level++) {
			const struct figure f = {.name = name,
						 .unit = "ns",
						 .goal_is = level == CAPTURE_SUMMARY
								    ? FIGURE_AT_MOST
								    : FIGURE_NO_GOAL,
						 .goal = GOAL_NS};

			snprintf(name, sizeof(name), "host: hit of a VM-exit, %s, %s",
				 level == CAPTURE_SUMMARY ? "summary" : "detail",
				 many ? "50 VMs" : "one VM");
			good &= figure_print(&f, ns[many][level], ROUNDS);
		}
	}
	/* figure_print() has sorted the rounds. */
	for (int round = 0; round < ROUNDS; round++)
		ns[1][1][round] /= ns[0][1][ROUNDS / 2];
	good &= figure_print(&(struct figure){.name = "host: hit of a VM-exit, summary, 50 VMs "
						      "against one",
					      .unit = "x",
					      .goal_is = FIGURE_AT_MOST,
					      .goal = SAME},
			     ns[1][1], ROUNDS);
	status = !good;
out:
	for (uint32_t vm = 1; vm < VMS_MANY; vm++) {
		if (others[vm] > 0) {
			kill(others[vm], SIGKILL);
			waitpid(others[vm], NULL, 0);
		}
	}
	bpf_link__destroy(links[0]);
	bpf_link__destroy(links[1]);
	if (c)
		capture_close(c);
	close(stats);
	return status;
}
