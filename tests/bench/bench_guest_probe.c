/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures the CPU time that the guest's capture adds to a context switch. The load only switches:
 * two processes on one CPU pass a byte through pipes. It runs without a capture, under the capture
 * through BPF, under that through perf, and under `trace-cmd record` and `perf record` with the
 * same events. These take turns in one run, so that other work on the machine affects all of them.
 *
 * Prints the added CPU ns per context switch, and the ratio to trace-cmd. Both are medians of the
 * differences to the turn without a capture just before. Also prints the number of lost events.
 *
 * Exit code 77: cannot be measured here (no root, or no BPF); 1: the ratio is above 0.65.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf/backend/capture_open.h"
#include "bpf/capture/capture.h"
#include "tests/bench/child.h"
#include "tests/bench/figure.h"
#include "tests/bench/probe.h"

enum { TURNS = 15, ROUND_TRIPS = 20000, DRAIN_MS = 20 };

#define MAX_RATIO 0.65

static const char *const events[] = {
	"sched:sched_switch",
	"sched:sched_wakeup",
	"sched:sched_wakeup_new",
	"sched:sched_migrate_task",
	"task:task_newtask",
	"task:task_rename",
	"sched:sched_process_exec",
	"sched:sched_process_exit",
	"irq:irq_handler_entry",
	"irq:irq_handler_exit",
	"irq:softirq_entry",
	"irq:softirq_exit",
	"irq_vectors:local_timer_entry",
	"irq_vectors:local_timer_exit",
	"irq_vectors:reschedule_entry",
	"irq_vectors:reschedule_exit",
	"irq_vectors:call_function_entry",
	"irq_vectors:call_function_exit",
	"irq_vectors:call_function_single_entry",
	"irq_vectors:call_function_single_exit",
};

enum { N_EVENTS = sizeof(events) / sizeof(*events) };

static void sleep_ms(long ms)
{
	const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

/* Runs a ping-pong on CPU 0. Returns its CPU ns per context switch, or 0 on failure. */
static double ping_pong(void)
{
	int to[2], back[2], result[2];
	double ns = 0, sum = 0;
	pid_t pids[2];

	if (pipe(to) || pipe(back) || pipe(result))
		return 0;
	for (int side = 0; side < 2; side++) {
		pids[side] = child_fork();
		if (pids[side])
			continue;
		pin(0);
		const uint64_t start = cpu_ns();

		if (!pass_bytes(side, ROUND_TRIPS, to, back))
			_exit(1);
		ns = (double)(cpu_ns() - start) / (2.0 * ROUND_TRIPS);
		_exit(write(result[1], &ns, sizeof(ns)) != sizeof(ns));
	}
	for (int side = 0; side < 2; side++)
		waitpid(pids[side], NULL, 0);
	close(result[1]);
	for (int side = 0; side < 2; side++)
		sum = read(result[0], &ns, sizeof(ns)) == sizeof(ns) ? sum + ns : 0;
	close(result[0]);
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(back[i]);
	}
	return sum;
}

struct totals {
	uint64_t delivered, emitted, dropped;
};

static void count_events(void *context, uint16_t cpu, const struct vs_event *e, size_t n)
{
	(void)cpu;
	(void)e;
	((struct totals *)context)->delivered += n;
}

/* Starts a process that captures until `stop_fd` is closed, and then writes its totals to
 * `ready_fd`. It drains the rings during the ping-pong. */
static pid_t start_capture(enum backend_choice backend, int ready_fd, int stop_fd)
{
	const struct capture_options options = {.kind = CAPTURE_GUEST, .backend = backend};
	struct totals totals = {0};
	const struct capture_sink sink = {.events = count_events, .context = &totals};
	struct pollfd stop = {.fd = stop_fd, .events = POLLIN};
	struct capture *c;
	char why[256];
	pid_t pid = child_fork();

	if (pid)
		return pid;
	if (capture_open(&options, &c, why, sizeof(why))) {
		fprintf(stderr, "capture: %s\n", why);
		_exit(77);
	}
	capture_drain(c, &sink);
	if (write(ready_fd, "", 1) != 1)
		_exit(1);
	while (!poll(&stop, 1, DRAIN_MS))
		capture_drain(c, &sink);
	capture_drain(c, &sink);
	for (size_t i = 0; i < capture_n_cpus(c); i++) {
		struct capture_cpu_stats stats;

		capture_cpu_stats(c, i, &stats);
		totals.emitted += stats.emitted;
		totals.dropped += stats.dropped;
	}
	capture_close(c);
	_exit(write(ready_fd, &totals, sizeof(totals)) != sizeof(totals));
}

/* trace-cmd resets the files of the function tracer, and fails on machines that forbid this. There,
 * gives it empty files, in a new mount namespace. */
static void hide_function_tracer(const char *empty)
{
	static const char *const files[] = {
		"/proc/sys/kernel/ftrace_enabled",
		"/sys/kernel/tracing/set_ftrace_filter",
		"/sys/kernel/tracing/set_ftrace_notrace",
		"/sys/kernel/tracing/set_ftrace_pid",
		"/sys/kernel/tracing/set_ftrace_notrace_pid",
		"/sys/kernel/tracing/set_graph_function",
		"/sys/kernel/tracing/set_graph_notrace",
	};
	const int fd = open("/sys/kernel/tracing/set_ftrace_filter", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		return;
	}
	if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		mount(empty, files[i], NULL, MS_BIND, NULL);
}

static pid_t start_trace_cmd(const char *dir)
{
	const char *arguments[2 * N_EVENTS + 8];
	char data[300], empty[300];
	size_t n = 0;
	int fd;
	pid_t pid;

	snprintf(data, sizeof(data), "%s/trace.dat", dir);
	snprintf(empty, sizeof(empty), "%s/empty", dir);
	/* At SIGINT, trace-cmd switches tracing off and ends its own children. */
	pid = child_fork_with(SIGINT);
	if (pid)
		return pid;
	signal(SIGINT, SIG_DFL); /* background jobs of a shell ignore SIGINT */
	fd = open(empty, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	if (fd < 0 || write(fd, "1", 1) != 1)
		_exit(1);
	hide_function_tracer(empty);
	arguments[n++] = "trace-cmd";
	arguments[n++] = "record";
	arguments[n++] = "-q";
	arguments[n++] = "-o";
	arguments[n++] = data;
	for (size_t i = 0; i < N_EVENTS; i++) {
		arguments[n++] = "-e";
		arguments[n++] = events[i];
	}
	arguments[n] = NULL;
	fd = open("/dev/null", O_RDWR);
	dup2(fd, 1);
	dup2(fd, 2);
	execvp("trace-cmd", (char **)arguments);
	_exit(127);
}

/* Returns true if the last event of the list is switched on, so that trace-cmd records. */
static bool tracing_is_on(void)
{
	FILE *f = fopen("/sys/kernel/tracing/events/irq_vectors/call_function_single_exit/enable",
			"r");
	bool on = f && fgetc(f) == '1';

	if (f)
		fclose(f);
	return on;
}

static double under_trace_cmd(const char *dir)
{
	const pid_t pid = start_trace_cmd(dir);
	double ns = 0;
	int status = 0;

	for (int i = 0; i < 200 && !tracing_is_on(); i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return 0;
		sleep_ms(20);
	}
	sleep_ms(100);
	if (tracing_is_on())
		ns = ping_pong();
	kill(pid, SIGINT);
	waitpid(pid, &status, 0);
	return ns;
}

/* Starts `perf record`, which records from its first command on the pipe `control` on. It answers
 * each command on `ack`. */
static pid_t start_perf_record(const char *dir, int control, int ack)
{
	const char *arguments[2 * N_EVENTS + 12];
	char data[300], fds[32];
	size_t n = 0;
	pid_t pid = child_fork_with(SIGINT);
	int fd;

	if (pid)
		return pid;
	signal(SIGINT, SIG_DFL);
	snprintf(data, sizeof(data), "%s/perf.data", dir);
	snprintf(fds, sizeof(fds), "fd:%d,%d", control, ack);
	arguments[n++] = "perf";
	arguments[n++] = "record";
	arguments[n++] = "-q";
	arguments[n++] = "-a";
	arguments[n++] = "-D";
	arguments[n++] = "-1";
	arguments[n++] = "--control";
	arguments[n++] = fds;
	arguments[n++] = "-o";
	arguments[n++] = data;
	for (size_t i = 0; i < N_EVENTS; i++) {
		arguments[n++] = "-e";
		arguments[n++] = events[i];
	}
	arguments[n] = NULL;
	fd = open("/dev/null", O_RDWR);
	dup2(fd, 1);
	dup2(fd, 2);
	execvp("perf", (char **)arguments);
	_exit(127);
}

/* Returns the CPU ns per context switch under `perf record`, or 0 if perf cannot record here. */
static double under_perf_record(const char *dir)
{
	int control[2], ack[2], status = 0;
	char answer[8];
	double ns = 0;
	pid_t pid;

	if (pipe(control) || pipe(ack))
		return 0;
	pid = start_perf_record(dir, control[0], ack[1]);
	close(control[0]);
	close(ack[1]);
	if (write(control[1], "enable\n", 7) == 7 && read(ack[0], answer, sizeof(answer)) > 0)
		ns = ping_pong();
	kill(pid, SIGINT);
	waitpid(pid, &status, 0);
	close(control[1]);
	close(ack[0]);
	return ns;
}

static double under_capture(enum backend_choice backend, struct totals *sum)
{
	struct totals totals;
	int ready[2], stop[2];
	double ns = 0;
	char byte;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) || pipe2(stop, O_CLOEXEC))
		return 0;
	pid = start_capture(backend, ready[1], stop[0]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) == 1)
		ns = ping_pong();
	if (write(stop[1], "", 1) == 1 &&
	    read(ready[0], &totals, sizeof(totals)) == sizeof(totals)) {
		sum->emitted += totals.emitted;
		sum->dropped += totals.dropped;
	}
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(stop[0]);
	close(stop[1]);
	return ns;
}

int main(void)
{
	double bare[TURNS], ours[TURNS], by_perf[TURNS], theirs[TURNS], perfs[TURNS];
	double added_theirs, ratios[TURNS];
	static const char *const files[] = {"trace.dat", "empty", "perf.data"};
	char dir[] = "/tmp/vs-bench-XXXXXX", path[300];
	struct totals totals = {0}, perf_totals = {0};
	bool perf_records = true, good;
	char perf_text[80] = "perf record cannot record here", peers[160];
	const struct figure ours_figure = {
		.name = "switch in a guest, added", .unit = "ns", .peer = peers};
	const struct figure perf_figure = {.name = "switch in a guest, added, capture through perf",
					   .unit = "ns"};
	const struct figure ratio_figure = {
		.name = "switch in a guest, added, against trace-cmd record",
		.unit = "x",
		.goal_is = FIGURE_AT_MOST,
		.goal = MAX_RATIO,
		.peer = peers};
	int result = 0;

	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(dir))
		return 1;
	for (int i = 0; i < TURNS && !result; i++) {
		const double before = ping_pong();
		const double captured = under_capture(CAPTURE_BY_BPF, &totals);
		const double perf = under_capture(CAPTURE_BY_PERF, &perf_totals);
		const double between = ping_pong();
		const double traced = under_trace_cmd(dir);
		const double later = ping_pong();
		const double recorded = perf_records ? under_perf_record(dir) : 0;

		if (!before || !captured || !between || !traced) {
			printf("guest probe: skipped, %s\n",
			       captured ? "trace-cmd cannot record here" : "no BPF capture here");
			result = 77;
		}
		bare[i] = before;
		ours[i] = captured - before;
		by_perf[i] = perf - before;
		theirs[i] = traced - between;
		perfs[i] = recorded - later;
		perf_records = recorded > 0;
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		unlink(path);
	}
	rmdir(dir);
	if (result)
		return result;
	added_theirs = figure_median(theirs, TURNS);
	if (perf_records)
		snprintf(perf_text, sizeof(perf_text), "perf record +%.0f ns",
			 figure_median(perfs, TURNS));
	snprintf(peers, sizeof(peers), "trace-cmd record +%.0f ns (quartiles %.0f to %.0f), %s",
		 added_theirs, theirs[TURNS / 4], theirs[TURNS - 1 - TURNS / 4], perf_text);
	/* Single turns are too noisy for a ratio of each. */
	for (int i = 0; i < TURNS; i++)
		ratios[i] = ours[i] / added_theirs;
	printf("guest probe: ping-pong %.0f ns/switch; lost %llu of %llu events, through perf %llu of "
	       "%llu\n",
	       figure_median(bare, TURNS), (unsigned long long)totals.dropped,
	       (unsigned long long)totals.emitted, (unsigned long long)perf_totals.dropped,
	       (unsigned long long)perf_totals.emitted);
	figure_print(&ours_figure, ours, TURNS);
	figure_print(&perf_figure, by_perf, TURNS);
	good = figure_print(&ratio_figure, ratios, TURNS);
	return !good || added_theirs <= 0 || !totals.emitted;
}
