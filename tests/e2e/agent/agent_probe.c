// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads from an agent behind a VM's channel for some seconds, closes the channel for one second,
 * and reads again. Prints its counts as "name value" lines for a test.
 *
 *   agent_probe SOCKET SECONDS
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/agent/agent_host.h"

static void show(const char *name, uint64_t value)
{
	printf("%s %" PRIu64 "\n", name, value);
}

/* One connection: greets again every second until heard, echoes ten times a second. */
static int connection_serve(struct agent_host *h, const char *path, unsigned int seconds)
{
	uint64_t heartbeats = h->heartbeats;
	int err = agent_host_connect(h, path);

	for (unsigned int i = 0; !err && i < seconds * 10; i++) {
		agent_host_send_echo(h);
		if (!agent_host_serve(h, 100))
			err = -1;
	}
	return err ? err : h->heartbeats > heartbeats ? 0 : -1;
}

int main(int argc, char **argv)
{
	uint64_t first_session, first_received;
	struct agent_host_sums sums;
	struct agent_host h;
	bool balanced = true;
	unsigned int seconds;

	if (argc != 3) {
		fprintf(stderr, "usage: agent_probe SOCKET SECONDS\n");
		return 2;
	}
	seconds = (unsigned int)atoi(argv[2]);
	if (agent_host_init(&h))
		return 1;
	if (connection_serve(&h, argv[1], seconds)) {
		fprintf(stderr, "agent_probe: %s: no agent answers on the first connection\n",
			argv[1]);
		return 1;
	}
	first_session = h.agent_session;
	first_received = agent_host_sums(&h).received;
	agent_host_hang_up(&h);
	agent_host_serve(&h, 1000);
	if (connection_serve(&h, argv[1], seconds)) {
		fprintf(stderr, "agent_probe: %s: no agent answers on the second connection\n",
			argv[1]);
		return 1;
	}
	for (size_t i = 0; i < HOST_CPUS_MAX; i++)
		balanced &=
			h.cpus[i].received + h.cpus[i].lost + h.cpus[i].gaps == h.cpus[i].emitted;
	sums = agent_host_sums(&h);
	show("cpus", h.hello.n_cpus);
	show("clock_hz", h.hello.clock_hz);
	show("dmesg_known", h.heartbeat.dmesg.known);
	show("dmesg_err", h.heartbeat.dmesg.err);
	show("hellos", h.hellos);
	show("new_session", h.agent_session != first_session);
	show("heartbeats", h.heartbeats);
	show("heartbeat_violations", h.heartbeat_violations);
	show("first_received", first_received);
	show("received", sums.received);
	show("gaps", sums.gaps);
	show("lost", sums.lost);
	show("late", sums.late);
	show("balanced", balanced);
	show("emitted", h.heartbeat.emitted);
	show("dropped_kernel", h.heartbeat.dropped_kernel);
	show("dropped_user", h.heartbeat.dropped_user);
	show("echoes", h.echoes);
	show("echo_min_us",
	     (uint64_t)((double)h.echo_round_trip_min * 1e6 / (double)h.hello.clock_hz));
	show("echo_max_us",
	     (uint64_t)((double)h.echo_round_trip_max * 1e6 / (double)h.hello.clock_hz));
	show("rss_kib", h.heartbeat.rss_bytes / 1024);
	show("cpu_time_us", h.heartbeat.cpu_time_ns / 1000);
	show("bytes", h.bytes);
	agent_host_fini(&h);
	return 0;
}
