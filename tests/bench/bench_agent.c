// SPDX-License-Identifier: GPL-2.0-only
/*
 * The agent under a storm: ping-pong pairs on every CPU, everything read over a unix socket.
 * Prints one line of figures and one of goals; exit code 1 if a goal is missed, 77 if this kernel
 * cannot be traced.
 *
 *   bench_agent AGENT [SECONDS] [PAIRS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/agent/agent_host.h"

enum { PAIRS_MAX = 64 };

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int goal(const char *name, double value, const char *sign, double limit, bool met)
{
	printf("  %-34s %12.2f  goal %s %.2f  %s\n", name, value, sign, limit,
	       met ? "ok" : "MISSED");
	return !met;
}

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 2 ? (unsigned int)atoi(argv[2]) : 10;
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int pairs = argc > 3 ? atoi(argv[3]) : (int)n_cpus, missed = 0;
	struct agent_host_sums before, after;
	pid_t load[PAIRS_MAX];
	double elapsed, cpu, rate, lost, bytes, rss;
	uint64_t batch_bytes;
	struct agent_host h;

	if (argc < 2 || pairs < 1 || pairs > PAIRS_MAX) {
		fprintf(stderr, "usage: bench_agent AGENT [SECONDS] [PAIRS]\n");
		return 2;
	}
	if (agent_host_init(&h) || agent_host_listen(&h) ||
	    agent_host_spawn(&h, argv[1], NULL, NULL))
		return 1;
	for (int i = 0; i < 100 && !h.heartbeats; i++)
		agent_host_serve(&h, 50);
	if (!h.heartbeats) {
		printf("skipped: the agent sends nothing; is this root on a kernel with BPF? See %s\n",
		       h.log_path);
		return 77;
	}
	for (int i = 0; i < pairs; i++)
		if (pingpong_start(&load[i], (unsigned int)(i % n_cpus), 0))
			return 1;
	agent_host_serve(&h, 500);
	before = agent_host_sums(&h);
	batch_bytes = h.batch_bytes;
	cpu = agent_host_agent_cpu_s(&h);
	elapsed = now_s();
	for (unsigned int i = 0; i < seconds * 10; i++) {
		agent_host_send_echo(&h);
		agent_host_serve(&h, 100);
	}
	elapsed = now_s() - elapsed;
	cpu = agent_host_agent_cpu_s(&h) - cpu;
	after = agent_host_sums(&h);
	batch_bytes = h.batch_bytes - batch_bytes;
	rss = (double)agent_host_agent_rss_peak(&h) / (1 << 20);
	for (int i = 0; i < pairs; i++)
		pingpong_stop(load[i]);
	agent_host_stop_agent(&h);

	rate = (double)(after.received - before.received) / elapsed;
	bytes = (double)batch_bytes / (double)(after.received - before.received);
	lost = (double)(h.heartbeat.emitted - agent_host_sums(&h).received);
	printf("agent: %d ping-pong pairs on %ld CPUs, %.1f s; echo round trip %.0f..%.0f us; agent "
	       "CPU %.1f %%, %.0f ns per event\n",
	       pairs, n_cpus, elapsed,
	       (double)h.echo_round_trip_min * 1e6 / (double)h.hello.clock_hz,
	       (double)h.echo_round_trip_max * 1e6 / (double)h.hello.clock_hz, cpu / elapsed * 100,
	       cpu * 1e9 / (double)(after.received - before.received));
	missed += goal("events per second", rate, ">=", 300000, rate >= 300000);
	missed += goal("events lost", lost, "<=", 0, lost == 0);
	missed += goal("bytes per event on the wire", bytes, "<=", 4, bytes <= 4);
	missed += goal("agent's peak RSS, MiB", rss, "<=", 24, rss <= 24);
	agent_host_fini(&h);
	return missed ? 1 : 0;
}
