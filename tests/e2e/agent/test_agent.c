// SPDX-License-Identifier: GPL-2.0-only
/* Tests the agent on this machine's kernel with a collector of the test (agent_host.h): the
 * events that arrive, the losses, and the cost. Skips (77) where this kernel cannot be traced. */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "clock/sample.h"
#include "tests/e2e/agent/agent_host.h"

enum { RSS_LIMIT = 24 << 20 };

static int setup(void **state)
{
	struct agent_host *h = malloc(sizeof(*h));

	*state = h;
	return agent_host_init(h);
}

static int teardown(void **state)
{
	agent_host_fini(*state);
	free(*state);
	return 0;
}

static void agent_spawn(struct agent_host *h, const char *argument, const char *argument2)
{
	assert_int_equal(agent_host_spawn(h, AGENT_PROGRAM, argument, argument2), 0);
}

/* Serves until the agent's next heartbeat. */
static void wait_open(struct agent_host *h)
{
	uint64_t heartbeats = h->heartbeats;

	for (int i = 0; i < 60 && h->heartbeats == heartbeats; i++)
		agent_host_serve(h, 50);
	assert_true(h->heartbeats > heartbeats);
}

static void exit_is_clean(int status)
{
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* What the batches say of themselves agrees with our own count, by sequence number. */
static void books_balance(const struct agent_host *h)
{
	for (size_t i = 0; i < HOST_CPUS_MAX; i++) {
		const struct host_cpu *cpu = &h->cpus[i];

		assert_int_equal(cpu->received + cpu->lost + cpu->gaps, cpu->emitted);
		assert_int_equal(cpu->late, 0);
	}
	assert_int_equal(h->heartbeat.emitted, h->heartbeat.delivered +
						       h->heartbeat.dropped_kernel +
						       h->heartbeat.dropped_user);
	assert_int_equal(h->heartbeat_violations, 0);
	assert_int_equal(h->replayed_frames, 0);
	assert_int_equal(h->reader.stats.skipped_bytes, 0);
}

static void a_session_brings_everything_and_ends_cleanly(void **state)
{
	struct agent_host *h = *state;
	struct agent_host_sums sums;
	uint64_t hz, local, dmesg_at_local;
	FILE *kmsg;
	pid_t load;

	assert_int_equal(clock_tsc_hz(&hz), 0);
	assert_int_equal(agent_host_listen(h), 0);
	assert_int_equal(pingpong_start(&load, 0, 200), 0);
	agent_spawn(h, NULL, NULL);
	wait_open(h);
	/* At the connection, in answer to ours, and on a slow day once more in between. */
	assert_in_range(h->hellos, 2, 4);
	assert_int_equal(h->hello.role, STREAM_ROLE_GUEST);
	assert_int_equal(h->hello.clock, STREAM_CLOCK_GUEST_TSC);
	assert_true(h->hello.clock_hz > hz / 100 * 99 && h->hello.clock_hz < hz / 100 * 101);
	assert_int_equal(h->hello.n_cpus, sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(strlen(h->hello.boot_id), 36);
	assert_true(h->hello.tick_hz >= 100 && h->hello.tick_hz <= 1000);
	assert_true(h->hello.dmesg.known);

	/* Our TSC is the agent's: every round trip must nest. */
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(agent_host_send_echo(h), 0);
		for (int wait = 0; wait < 200 && h->echoes == i; wait++)
			agent_host_serve(h, 5);
	}
	assert_int_equal(h->echoes, 20);
	assert_int_equal(h->echo_disorder, 0);
	assert_true(h->echo_round_trip_min < hz / 1000);

	/* A line of the kernel's log lies, by the dmesg point, where it was written. */
	h->log_wanted = "vcpuscope agent test";
	kmsg = fopen("/dev/kmsg", "we");
	assert_non_null(kmsg);
	local = clock_tsc_read();
	fprintf(kmsg, "vcpuscope agent test\n");
	fclose(kmsg);
	h->heartbeats = 0;
	agent_host_serve(h, 1000);
	assert_in_range(h->heartbeats, 5, 12);
	assert_true(h->log_seen);
	assert_true(h->heartbeat.dmesg.known);
	dmesg_at_local =
		h->heartbeat.dmesg.ns +
		(uint64_t)(((double)local - (double)h->heartbeat.dmesg.time) * 1e9 / (double)hz);
	assert_in_range(h->log_line.dmesg_us, dmesg_at_local / 1000 - 100,
			dmesg_at_local / 1000 + 20000);

	pingpong_stop(load);
	exit_is_clean(agent_host_stop_agent(h));
	sums = agent_host_sums(h);
	assert_true(sums.received > 1000);
	books_balance(h);
	assert_int_equal(sums.received, h->heartbeat.delivered);
	assert_int_equal(sums.gaps, 0);
	assert_int_equal(h->lost_frames, 0);
}

static void without_a_host_it_is_quiet_and_drops_the_oldest_by_exact_count(void **state)
{
	struct agent_host *h = *state;
	struct agent_host_sums sums;
	double cpu_s;
	pid_t load;

	agent_spawn(h, "--backlog", "1");
	usleep(700 * 1000); /* loading the programs is a cost of its own */
	cpu_s = agent_host_agent_cpu_s(h);
	usleep(2000 * 1000);
	cpu_s = agent_host_agent_cpu_s(h) - cpu_s;
	if (cpu_s >= 0.10)
		fail_msg("CPU %.2f s in 2 s without a host, want < 5 %%", cpu_s);

	/* More than the backlog holds. */
	assert_int_equal(pingpong_start(&load, 0, 0), 0);
	usleep(4000 * 1000);
	pingpong_stop(load);

	assert_int_equal(agent_host_listen(h), 0);
	wait_open(h);
	agent_host_serve(h, 500);
	assert_true(h->heartbeat.dropped_user > 0);
#ifndef __SANITIZE_ADDRESS__
	assert_true(agent_host_agent_rss_peak(h) <= RSS_LIMIT);
#endif
	exit_is_clean(agent_host_stop_agent(h));
	sums = agent_host_sums(h);
	books_balance(h);
	/* Nothing got lost on the way, so what did not come is what was dropped, exactly. */
	assert_int_equal(h->lost_frames, 0);
	assert_int_equal(sums.received, h->heartbeat.delivered);
	assert_true(sums.gaps >= h->heartbeat.dropped_user);
	assert_int_equal(sums.received + h->heartbeat.dropped_kernel + h->heartbeat.dropped_user,
			 h->heartbeat.emitted);
}

static void a_host_that_goes_and_comes_back_gets_a_new_session(void **state)
{
	struct agent_host *h = *state;
	struct agent_host_sums sums;
	uint64_t first_session, before, named;
	pid_t load;

	assert_int_equal(agent_host_listen(h), 0);
	assert_int_equal(pingpong_start(&load, 0, 100), 0);
	agent_spawn(h, NULL, NULL);
	wait_open(h);
	agent_host_serve(h, 300);
	first_session = h->agent_session;
	before = agent_host_sums(h).received;
	named = h->kthreadd_named;
	assert_true(named > 0);

	agent_host_hang_up(h);
	agent_host_unlisten(h);
	usleep(700 * 1000);
	assert_int_equal(agent_host_listen(h), 0);
	wait_open(h);
	agent_host_serve(h, 500);
	pingpong_stop(load);
	assert_true(h->agent_session != first_session);
	assert_true(h->kthreadd_named > named); /* the new host may be another one */
	assert_true(agent_host_sums(h).received > before);
	exit_is_clean(agent_host_stop_agent(h));
	sums = agent_host_sums(h);
	books_balance(h);
	/* The connection's own buffers may have swallowed some; we know how many. */
	assert_true(sums.received <= h->heartbeat.delivered);
	assert_int_equal(sums.received + sums.lost + sums.gaps, h->heartbeat.emitted);
	assert_int_equal(h->lost_frames, 0);
}

static void garbage_from_the_host_is_survived(void **state)
{
	static uint8_t garbage[50000];
	struct agent_host *h = *state;
	char log[4096] = "";
	const char *said;
	ssize_t n;
	int fd;

	assert_int_equal(agent_host_listen(h), 0);
	agent_spawn(h, NULL, NULL);
	wait_open(h);
	for (size_t i = 0; i < sizeof(garbage); i++)
		garbage[i] = (uint8_t)(i * 2654435761u >> 13);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(agent_host_send_bytes(h, garbage, sizeof(garbage)), 0);
		agent_host_serve(h, 50);
		agent_host_send_echo(h);
		agent_host_serve(h, 300);
	}
	assert_int_equal(h->echoes, 3);
	exit_is_clean(agent_host_stop_agent(h));
	books_balance(h);
	fd = open(h->log_path, O_RDONLY);
	n = read(fd, log, sizeof(log) - 1);
	close(fd);
	assert_true(n > 0);
	said = strstr(log, "no frame");
	assert_non_null(said);
	assert_null(strstr(said + 1, "no frame")); /* once */
}

/* HELLOs of ever new sessions with echo requests, unknown frames and garbage behind each, as fast
 * as the agent takes them. */
static void flood(struct agent_host *h, unsigned int ms)
{
	const uint64_t hz = h->hello.clock_hz, end = clock_tsc_read() + hz / 1000 * ms;
	static struct message_hello hello = {.protocol_min = VS_PROTOCOL_MIN,
					     .protocol_max = VS_PROTOCOL_MAX,
					     .role = STREAM_ROLE_HOST,
					     .clock = STREAM_CLOCK_HOST_TSC,
					     .clock_hz = 1000000000};
	const struct message_echo_request request = {.id = 1};
	struct byte_buffer payload = {0}, out = {0};

	for (uint64_t session = 1000; clock_tsc_read() < end; session++) {
		struct frame_writer *w = frame_writer_new(session);
		size_t at = 0;

		out.len = payload.len = 0;
		assert_int_equal(message_hello_pack(&hello, &payload), 0);
		assert_int_equal(frame_write(w, FRAME_HELLO, payload.data, payload.len, &out), 0);
		payload.len = 0;
		assert_int_equal(message_echo_request_pack(&request, &payload), 0);
		for (int i = 0; i < 20; i++)
			frame_write(w, FRAME_ECHO_REQUEST, payload.data, payload.len, &out);
		frame_write(w, (enum frame_kind)99, payload.data, payload.len, &out);
		assert_int_equal(byte_buffer_append(&out, "no frame", 8), 0);
		frame_writer_free(w);
		while (at < out.len && clock_tsc_read() < end) {
			ssize_t n = send(h->fd, out.data + at, out.len - at, MSG_DONTWAIT);

			at += n > 0 ? (size_t)n : 0;
			if (n <= 0)
				agent_host_serve(h, 5);
		}
	}
	byte_buffer_fini(&payload);
	byte_buffer_fini(&out);
}

static void a_flood_from_the_host_costs_little_and_says_little(void **state)
{
	struct agent_host *h = *state;
	char log[16384] = "";
	uint64_t lines = 0;
	double cpu_s;
	ssize_t n;
	int fd;

	assert_int_equal(agent_host_listen(h), 0);
	agent_spawn(h, NULL, NULL);
	wait_open(h);
	flood(h, 1000); /* the first megabyte is read at once */
	cpu_s = agent_host_agent_cpu_s(h);
	flood(h, 2000);
	cpu_s = agent_host_agent_cpu_s(h) - cpu_s;
	printf("CPU %.3f s in 2 s of flood, %.3f s in all\n", cpu_s, agent_host_agent_cpu_s(h));
	if (cpu_s >= 0.12)
		fail_msg("CPU %.2f s in 2 s of flood, want < 6 %%", cpu_s);
	agent_host_stop_agent(h);
	fd = open(h->log_path, O_RDONLY);
	n = read(fd, log, sizeof(log) - 1);
	close(fd);
	assert_true(n > 0);
	for (const char *at = log; (at = strchr(at, '\n')); at++)
		lines++;
	assert_in_range(lines, 1, 2 * 20 + 4);
	assert_non_null(strstr(log, " sessions, ")); /* the summary is always there */
}

/* Runs the agent once: 0, or why this machine cannot. */
static bool machine_is_able(char *why, size_t why_bytes)
{
	struct agent_host h;
	int status = -1, fd;
	ssize_t n = 0;

	why[0] = '\0';
	if (agent_host_init(&h) || agent_host_spawn(&h, AGENT_PROGRAM, "--run-for", "1s"))
		return false;
	waitpid(h.agent, &status, 0);
	h.agent = 0;
	fd = open(h.log_path, O_RDONLY);
	if (fd >= 0) {
		n = read(fd, why, why_bytes - 1);
		close(fd);
	}
	why[n > 0 ? n : 0] = '\0';
	agent_host_fini(&h);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 4;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_session_brings_everything_and_ends_cleanly),
		TEST(without_a_host_it_is_quiet_and_drops_the_oldest_by_exact_count),
		TEST(a_host_that_goes_and_comes_back_gets_a_new_session),
		TEST(garbage_from_the_host_is_survived),
		TEST(a_flood_from_the_host_costs_little_and_says_little),
	};
	char why[1024];

	if (!machine_is_able(why, sizeof(why))) {
		printf("skipped: this kernel cannot be traced: %s\n", why);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
