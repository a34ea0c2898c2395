// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measures the agent under a flood of events. Ping-pong pairs on every CPU cause the events, and
 * this program reads all of them over a Unix socket. The figures are medians over the seconds of
 * the run. Then, for a quarter of the time, the kernel counts the run time of the agent's BPF
 * programs (BPF_ENABLE_STATS). That figure includes the cost of counting.
 *
 * Exit code 1: a goal is missed; 77: this kernel cannot be traced.
 *
 *   bench_agent AGENT [SECONDS] [PAIRS]
 */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/figure.h"
#include "tests/e2e/agent/agent_host.h"

enum { PAIRS_MAX = 64, SECONDS_MAX = 3600, PROGRAMS_SECONDS_MIN = 2 };

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The figures of each second. */
struct seconds {
	double rate[SECONDS_MAX], bytes[SECONDS_MAX], cpu_ns[SECONDS_MAX];
	size_t n;
};

static void second_serve(struct agent_host *h, struct seconds *s)
{
	const uint64_t events = agent_host_sums(h).received, bytes = h->batch_bytes;
	const double begin = now_s(), cpu = agent_host_agent_cpu_s(h);
	double got;

	for (int i = 0; i < 10; i++) {
		agent_host_send_echo(h);
		agent_host_serve(h, 100);
	}
	got = (double)(agent_host_sums(h).received - events);
	if (got < 1)
		return;
	s->rate[s->n] = got / (now_s() - begin) / 1000;
	s->bytes[s->n] = (double)(h->batch_bytes - bytes) / got;
	s->cpu_ns[s->n++] = (agent_host_agent_cpu_s(h) - cpu) * 1e9 / got;
}

/* The run time of all BPF programs that the process holds, in ns. A program with two descriptors
 * counts twice, in each reading. */
static uint64_t programs_ns(pid_t pid)
{
	char folder[64], path[400], line[256];
	unsigned long long ns, sum = 0;
	struct dirent *entry;
	DIR *dir;

	snprintf(folder, sizeof(folder), "/proc/%d/fdinfo", pid);
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f)) {
			if (sscanf(line, "run_time_ns: %llu", &ns) == 1)
				sum += ns;
		}
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return sum;
}

static void programs_measure(struct agent_host *h, unsigned int seconds)
{
	const int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	const struct figure f = {.name = "agent: its BPF programs, of each event", .unit = "ns"};
	double *rounds = calloc(seconds, sizeof(*rounds));
	size_t n = 0;

	if (stats < 0)
		printf("agent: its BPF programs are not measured: %s\n", strerror(errno));
	for (unsigned int i = 0; stats >= 0 && rounds && i < seconds; i++) {
		const uint64_t ns = programs_ns(h->agent), events = agent_host_sums(h).received;
		uint64_t got, took;

		agent_host_serve(h, 1000);
		got = agent_host_sums(h).received - events;
		took = programs_ns(h->agent) - ns;
		if (got && took)
			rounds[n++] = (double)took / (double)got;
	}
	if (n)
		figure_print(&f, rounds, n);
	free(rounds);
	if (stats >= 0)
		close(stats);
}

static bool goals_judge(const struct agent_host *h, struct seconds *s, double rss_mib)
{
	const double lost = (double)(h->heartbeat.emitted - agent_host_sums(h).received);
	bool good = s->n > 0;

	if (!good)
		return false;
	good &= figure_print(&(struct figure){.name = "agent: rate of a flood",
					      .unit = "k events/s",
					      .goal_is = FIGURE_AT_LEAST,
					      .goal = 300},
			     s->rate, s->n);
	good &= figure_print(&(struct figure){.name = "agent: user side, of each event of a flood",
					      .unit = "ns",
					      .goal_is = FIGURE_AT_MOST,
					      .goal = 80},
			     s->cpu_ns, s->n);
	good &= figure_print(&(struct figure){.name = "agent: wire, flood",
					      .unit = "B/event",
					      .goal_is = FIGURE_AT_MOST,
					      .goal = 4},
			     s->bytes, s->n);
	good &= figure_print_one(&(struct figure){.name = "agent: events lost in a flood",
						  .unit = "events",
						  .goal_is = FIGURE_AT_MOST},
				 lost);
	return figure_print_one(&(struct figure){.name = "agent: peak memory",
						 .unit = "MiB",
						 .goal_is = FIGURE_AT_MOST,
						 .goal = 24},
				rss_mib) &&
	       good;
}

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 10;
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int pairs = argc > 3 ? (int)strtol(argv[3], NULL, 10) : (int)n_cpus;
	static struct seconds s;
	static struct agent_host host;
	struct agent_host *h = &host;
	pid_t load[PAIRS_MAX];
	unsigned int programs_s;
	double rss;
	bool good;

	if (argc < 2 || pairs < 1 || pairs > PAIRS_MAX || !seconds || seconds > SECONDS_MAX) {
		fprintf(stderr, "usage: bench_agent AGENT [SECONDS] [PAIRS]\n");
		return 2;
	}
	if (agent_host_init(h) || agent_host_listen(h) || agent_host_spawn(h, argv[1], NULL, NULL))
		return 1;
	for (int i = 0; i < 100 && !h->heartbeats; i++)
		agent_host_serve(h, 50);
	if (!h->heartbeats) {
		printf("skipped: the agent sends nothing; is this root on a kernel with BPF? See %s\n",
		       h->log_path);
		agent_host_stop_agent(h);
		return 77;
	}
	for (int i = 0; i < pairs; i++)
		if (pingpong_start(&load[i], (unsigned int)(i % n_cpus), 0))
			return 1;
	agent_host_serve(h, 500);
	for (unsigned int i = 0; i < seconds; i++)
		second_serve(h, &s);
	rss = (double)agent_host_agent_rss_peak(h) / (1 << 20);
	programs_s = seconds / 4 > PROGRAMS_SECONDS_MIN ? seconds / 4 : PROGRAMS_SECONDS_MIN;
	programs_measure(h, programs_s);
	for (int i = 0; i < pairs; i++)
		pingpong_stop(load[i]);
	agent_host_stop_agent(h);
	printf("agent: %d ping-pong pairs on %ld CPUs, %u s; echo round trip %.0f..%.0f us\n",
	       pairs, n_cpus, seconds,
	       (double)h->echo_round_trip_min * 1e6 / (double)h->hello.clock_hz,
	       (double)h->echo_round_trip_max * 1e6 / (double)h->hello.clock_hz);
	good = goals_judge(h, &s, rss);
	agent_host_fini(h);
	return !good;
}
