/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures the run time of the BPF program for a hit of an event that the user chose: a tracepoint
 * with two fields, at the return of a system call. One filter keeps all hits, another one keeps
 * none. The kernel counts the run time (kernel.bpf_stats). An empty program on the same tracepoint
 * is measured in each round, and its time is subtracted. Goals: 100 ns for a hit that is kept, 40
 * ns for one that is not.
 *
 * Exit code 77: cannot be measured here.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/backend/capture_open.h"
#include "bpf/capture/capture.h"
#include "bpf/chosen/chosen_events.h"
#include "tests/bench/figure.h"

#define TRACEPOINT "syscalls:sys_exit_getppid"

enum { ROUNDS = 40, CALLS = 10000, SKIPPED = 77 };

static const struct {
	const char *name, *text;
	bool kept;
	double goal_ns;
} cases[] = {
	{"chosen event of two fields, kept, above an empty program",
	 TRACEPOINT "/ret > 0/untraced/", true, 100},
	{"chosen event of two fields, filtered out, above an empty program",
	 TRACEPOINT "/ret < 0/untraced/", false, 40},
};

static int tracepoint_id(void)
{
	static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	char path[128];
	int id = -1;

	for (size_t i = 0; i < 2 && id < 0; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/events/syscalls/sys_exit_getppid/id", roots[i]);
		f = fopen(path, "re");
		if (f && fscanf(f, "%d", &id) != 1)
			id = -1;
		if (f)
			fclose(f);
	}
	return id;
}

/* Attaches a program that does nothing. Returns its file descriptor, or -1. */
static int empty_attach(void)
{
	/* r0 = 1; exit */
	static const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1},
		{.code = BPF_JMP | BPF_EXIT},
	};
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_TRACEPOINT,
				       .config = (uint64_t)tracepoint_id(),
				       .sample_period = 1};
	const int program = bpf_prog_load(BPF_PROG_TYPE_TRACEPOINT, "empty", "GPL", code, 2, NULL);
	const int event = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);

	if (program < 0 || event < 0 || ioctl(event, PERF_EVENT_IOC_SET_BPF, program) ||
	    ioctl(event, PERF_EVENT_IOC_ENABLE, 0))
		return -1;
	return program; /* `event` stays open to the end */
}

/* Returns the program of the chosen tracepoint, among those loaded after `id`; -1: there is none.
 */
static int chosen_program(uint32_t id)
{
	while (!bpf_prog_get_next_id(id, &id)) {
		struct bpf_prog_info info = {0};
		uint32_t bytes = sizeof(info);
		const int fd = bpf_prog_get_fd_by_id(id);

		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &bytes) &&
		    !strncmp(info.name, "vs_u_tracepoint", strlen("vs_u_tracepoint")))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

static uint32_t newest_id(void)
{
	uint32_t id = 0;

	while (!bpf_prog_get_next_id(id, &id)) {
	}
	return id;
}

static bool cost_read(int program, uint64_t *ns, uint64_t *hits)
{
	struct bpf_prog_info info = {0};
	uint32_t bytes = sizeof(info);

	if (bpf_obj_get_info_by_fd(program, &info, &bytes))
		return false;
	*ns = info.run_time_ns;
	*hits = info.run_cnt;
	return true;
}

static void events_ignore(void *context, uint16_t cpu, const struct vs_event *events, size_t n)
{
	(void)context, (void)cpu, (void)events, (void)n;
}

/* Returns false if the programs did not run for each call. */
static bool measure(struct capture *c, const int programs[2], double *each)
{
	const struct capture_sink sink = {.events = events_ignore};

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t ns[2][2], hits[2][2];

		for (int i = 0; i < 2; i++) {
			if (!cost_read(programs[i], &ns[0][i], &hits[0][i]))
				return false;
		}
		for (int i = 0; i < CALLS; i++)
			syscall(SYS_getppid);
		for (int i = 0; i < 2; i++) {
			if (!cost_read(programs[i], &ns[1][i], &hits[1][i]) ||
			    hits[1][i] < hits[0][i] + CALLS)
				return false;
		}
		if (capture_drain(c, &sink) < 0)
			return false;
		each[round] = 0;
		for (int i = 0; i < 2; i++)
			each[round] += (i ? -1.0 : 1.0) * (double)(ns[1][i] - ns[0][i]) /
				       (double)(hits[1][i] - hits[0][i]);
	}
	return true;
}

/* Without a limit: it would cut short most hits of the loop in measure(). */
static int event_add(struct capture *c, struct capture_event *event, uint32_t *id)
{
	event->rate = UINT32_MAX;
	return capture_event_add(c, event, id);
}

/* Returns whether all hits became events, or none. */
static bool hits_are(struct capture *c, uint32_t id, bool kept)
{
	struct capture_cpu_stats cpu = {0};
	struct capture_event_state state;
	uint64_t dropped = 0;

	if (capture_event_state_get(c, id, 0, &state) || state.limited)
		return false;
	for (size_t i = 0; i < capture_n_cpus(c); i++) {
		if (!capture_cpu_stats(c, i, &cpu))
			dropped += cpu.dropped;
	}
	return !dropped && (kept ? state.kept >= (uint64_t)ROUNDS * CALLS : !state.kept);
}

/* Returns the exit code: 0, 1 if the goal is missed, or SKIPPED. */
static int case_measure(size_t n, int empty)
{
	const struct capture_options options = {.kind = CAPTURE_HOST, .backend = CAPTURE_BY_BPF};
	const struct figure f = {.name = cases[n].name,
				 .unit = "ns",
				 .goal_is = FIGURE_AT_MOST,
				 .goal = cases[n].goal_ns};
	struct chosen_events *chosen = calloc(1, sizeof(*chosen));
	const uint32_t before = newest_id();
	static double each[ROUNDS];
	struct expr_error error = {0};
	struct capture *c = NULL;
	int status = SKIPPED;
	char why[256] = "out of memory";
	uint32_t id;

	if (!chosen || capture_open(&options, &c, why, sizeof(why))) {
		printf("skipped: %s\n", why);
	} else if (chosen_events_add(chosen, NULL, cases[n].text, &error) ||
		   event_add(c, &chosen->events[0].capture, &id)) {
		printf("skipped: %s: %s\n", cases[n].text, error.text);
	} else {
		const int programs[2] = {chosen_program(before), empty};

		if (measure(c, programs, each) && hits_are(c, id, cases[n].kept))
			status = !figure_print(&f, each, ROUNDS);
		else
			puts("nothing could be measured");
		close(programs[0]);
	}
	if (c)
		capture_close(c);
	free(chosen);
	return status;
}

int main(void)
{
	const int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	const int empty = stats < 0 ? -1 : empty_attach();
	int status = 0;

	if (empty < 0) {
		printf("skipped: the kernel measures no programs here: %s\n", strerror(errno));
		return SKIPPED;
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const int one = case_measure(i, empty);

		status = one > status ? one : status;
	}
	return status;
}
