/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints the run time of each BPF program of the guest's and of the host's capture, as the kernel
 * counts it (BPF_ENABLE_STATS), and that of an empty program in the same rounds. The load is two
 * processes that pass a byte through pipes on one CPU. The host's capture follows them as vCPUs, or
 * follows another, idle process, so that they are tasks of no VM.
 *
 * The figures are medians of the rounds, in ns per run. All of them include the cost of counting,
 * which the figure of the empty program shows. Exit code 1: a switch in the guest takes more than
 * 160 ns; 77: cannot be measured here (no root, or no BPF).
 *
 *   bench_probe_runs [ROUNDS]
 */
#include <errno.h>
#include <linux/bpf.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "bpf/backend/capture_open.h"
#include "bpf/capture/capture.h"
#include "bpf/capture/tracepoint_format.h"
#include "tests/bench/child.h"
#include "tests/bench/figure.h"
#include "tests/bench/probe.h"

enum {
	ROUNDS_MAX = 64,
	ROUND_TRIPS = 20000,
	DRAIN_MS = 20,
	PROGRAMS_MAX = 64,
	RUNS_MIN = 1000, /* fewer runs in a round are not shown */
	GOAL_SWITCH_NS = 160,
	VM = 1,
};

enum scene { GUEST, HOST_UNRELATED, HOST_VCPUS, SCENES };

static const char *const scene_names[] = {
	[GUEST] = "guest",
	[HOST_UNRELATED] = "host, unrelated processes",
	[HOST_VCPUS] = "host, vCPUs, with stacks",
};

struct program {
	__u32 id;
	char name[BPF_OBJ_NAME_LEN];
	uint64_t ns, runs;
};

struct row {
	char name[BPF_OBJ_NAME_LEN];
	double ns[ROUNDS_MAX];
	double runs;
	size_t n;
};

/* An attached program that does nothing. Returns its link, or -errno. */
static int empty_attach(int *program)
{
	/* r0 = 0; exit */
	static const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int link;

	*program = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "empty", "GPL", code, 2, NULL);
	if (*program < 0)
		return -errno;
	link = bpf_raw_tracepoint_open("sched_switch", *program);
	return link < 0 ? -errno : link;
}

static bool is_ours(const char *name)
{
	return !strncmp(name, "vs_", 3) || !strcmp(name, "empty");
}

static __u32 newest_id(void)
{
	__u32 id = 0;

	while (!bpf_prog_get_next_id(id, &id)) {
	}
	return id;
}

/* Reads the counters of the programs that were loaded after the program `id`. Returns their number.
 */
static size_t programs_read(__u32 id, struct program *out)
{
	size_t n = 0;

	while (n < PROGRAMS_MAX && !bpf_prog_get_next_id(id, &id)) {
		struct bpf_prog_info info = {0};
		__u32 bytes = sizeof(info);
		const int fd = bpf_prog_get_fd_by_id(id);

		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &bytes) && is_ours(info.name)) {
			out[n].id = id;
			memcpy(out[n].name, info.name, sizeof(out[n].name));
			out[n].ns = info.run_time_ns;
			out[n++].runs = info.run_cnt;
		}
		close(fd);
	}
	return n;
}

static struct row *row_of(struct row *rows, size_t *n, const char *name)
{
	for (size_t i = 0; i < *n; i++) {
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	}
	if (*n == PROGRAMS_MAX)
		return NULL;
	memcpy(rows[*n].name, name, sizeof(rows[*n].name));
	return &rows[(*n)++];
}

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

struct load {
	pid_t pids[2];
	int go[2], result[2];
};

static bool load_start(struct load *l)
{
	int to[2], back[2];
	char byte;

	if (pipe(to) || pipe(back) || pipe(l->go) || pipe(l->result))
		return false;
	for (int side = 0; side < 2; side++) {
		l->pids[side] = child_fork();
		if (l->pids[side])
			continue;
		pin(0);
		if (read(l->go[0], &byte, 1) != 1)
			_exit(1);
		_exit(!pass_bytes(side, ROUND_TRIPS, to, back) || write(l->result[1], "", 1) != 1);
	}
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(back[i]);
	}
	return true;
}

/* Lets the load run and drains meanwhile. */
static bool load_run(struct load *l, struct capture *c)
{
	const struct capture_sink sink = {events_ignore, stack_ignore, NULL};
	struct pollfd done = {.fd = l->result[0], .events = POLLIN};
	char byte;
	int left = 2;

	if (write(l->go[1], "..", 2) != 2)
		return false;
	close(l->result[1]);
	while (left) {
		const int ready = poll(&done, 1, DRAIN_MS);

		capture_drain(c, &sink);
		if (ready > 0 && read(l->result[0], &byte, 1) != 1)
			break;
		left -= ready > 0;
	}
	for (int i = 0; i < 2; i++)
		waitpid(l->pids[i], NULL, 0);
	close(l->go[0]);
	close(l->go[1]);
	close(l->result[0]);
	return !left;
}

/* Returns 0 or the exit code. */
static int round_measure(enum scene scene, struct row *rows, size_t *n_rows)
{
	const struct capture_options options = {
		.kind = scene == GUEST ? CAPTURE_GUEST : CAPTURE_HOST,
		.backend = CAPTURE_BY_BPF,
		.stacks = scene != GUEST,
		.tracepoints = scene == GUEST ? NULL : tracepoint_format_read,
	};
	struct program before[PROGRAMS_MAX], after[PROGRAMS_MAX];
	size_t n_before, n_after;
	struct capture *c;
	char why[256];
	struct load l;
	const __u32 id = newest_id();
	int link, empty, result = 0;

	if (!load_start(&l))
		return 1;
	if (capture_open(&options, &c, why, sizeof(why))) {
		fprintf(stderr, "capture: %s\n", why);
		return 77;
	}
	link = empty_attach(&empty);
	if (link < 0) {
		fprintf(stderr, "empty program: %s\n", strerror(-link));
		return 77;
	}
	for (int i = 0; scene == HOST_VCPUS && i < 2; i++)
		capture_add_thread(c, l.pids[i], l.pids[i], VM, true);
	if (scene == HOST_UNRELATED)
		capture_add_thread(c, getppid(), getppid(), VM, true);
	n_before = programs_read(id, before);
	if (!load_run(&l, c))
		result = 1;
	n_after = programs_read(id, after);
	for (size_t i = 0; i < n_after && i < n_before && after[i].id == before[i].id; i++) {
		const uint64_t runs = after[i].runs - before[i].runs;
		struct row *row = row_of(rows, n_rows, after[i].name);

		if (!row || runs < RUNS_MIN)
			continue;
		row->runs += (double)runs;
		row->ns[row->n++] = (double)(after[i].ns - before[i].ns) / (double)runs;
	}
	close(link);
	close(empty);
	capture_close(c);
	return result;
}

static bool rows_print(enum scene scene, struct row *rows, size_t n)
{
	struct row *empty = row_of(rows, &n, "empty");
	bool good = true;
	char name[80], peer[80] = "";

	if (empty && empty->n)
		snprintf(peer, sizeof(peer), "empty program %.0f ns",
			 figure_median(empty->ns, empty->n));
	for (size_t i = 0; i < n; i++) {
		struct figure f = {.name = name, .unit = "ns", .peer = peer[0] ? peer : NULL};

		if (!rows[i].n || &rows[i] == empty)
			continue;
		if (scene == GUEST && !strcmp(rows[i].name, "vs_switch")) {
			f.goal_is = FIGURE_AT_MOST;
			f.goal = GOAL_SWITCH_NS;
		}
		snprintf(name, sizeof(name), "run of %.15s, %s", rows[i].name, scene_names[scene]);
		good &= figure_print(&f, rows[i].ns, rows[i].n);
	}
	return good;
}

int main(int argc, char **argv)
{
	static struct row rows[SCENES][PROGRAMS_MAX];
	size_t n_rows[SCENES] = {0};
	int rounds = argc > 1 ? atoi(argv[1]) : 7;
	const int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	bool good = true;

	signal(SIGPIPE, SIG_IGN);
	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_probe_runs [ROUNDS], 1 to %d\n", ROUNDS_MAX);
		return 2;
	}
	if (stats < 0) {
		printf("probe runs: skipped, BPF_ENABLE_STATS: %s\n", strerror(errno));
		return 77;
	}
	for (int i = 0; i < rounds; i++) {
		for (enum scene scene = 0; scene < SCENES; scene++) {
			const int result = round_measure(scene, rows[scene], &n_rows[scene]);

			if (result)
				return result;
		}
	}
	for (enum scene scene = 0; scene < SCENES; scene++)
		good &= rows_print(scene, rows[scene], n_rows[scene]);
	close(stats);
	return !good;
}
