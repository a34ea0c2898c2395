/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A small host for tests and benches of the agent: starts the agent on a unix socket, reads every
 * frame, and keeps books of its own by sequence number, independent of what the agent says.
 */
#ifndef TESTS_AGENT_HOST_H
#define TESTS_AGENT_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/codec.h"
#include "proto/frame.h"
#include "proto/message.h"

enum { HOST_CPUS_MAX = 256 };

struct host_cpu {
	uint64_t received; /* events, without LOST markers */
	uint64_t lost;     /* what LOST markers say */
	uint64_t gaps;     /* numbers that neither came nor were told lost */
	uint64_t next;     /* unwrapped number of the next event */
	uint64_t watermark;
	uint64_t emitted, dropped_kernel, dropped_user; /* of the newest batch */
	uint64_t late;                                  /* events older than a watermark */
};

struct agent_host {
	char path[108], log_path[108];
	int listener, fd;
	pid_t agent;
	struct frame_writer *writer;
	uint64_t sessions; /* connections greeted; also the next session's id */
	uint32_t echo_id;
	uint64_t echo_sent_tsc;
	struct frame_reader reader;
	struct frame_order order;
	struct frame_unpacker *unpacker;
	struct batch_decoder *decoder;

	struct host_cpu cpus[HOST_CPUS_MAX];
	uint64_t bytes, batch_bytes, batches, heartbeats, hellos, lost_frames, replayed_frames;
	uint64_t echoes, echo_round_trip_min, echo_round_trip_max, echo_disorder;
	uint64_t heartbeat_violations; /* batches older than an earlier heartbeat's promise */
	uint64_t promise;
	uint64_t kthreadd_named; /* how often task 2 was named: once per full listing */
	uint64_t agent_session;
	struct message_hello hello;
	struct message_heartbeat heartbeat;
	/* The newest kernel log line that contains `log_wanted`. */
	const char *log_wanted;
	bool log_seen;
	struct message_log_line log_line;
};

/* Opens the socket's path and the books. 0 or -errno. */
int agent_host_init(struct agent_host *h);
void agent_host_fini(struct agent_host *h);
int agent_host_listen(struct agent_host *h);
/* Stops listening; the connection stays. */
void agent_host_unlisten(struct agent_host *h);
/* For a VM's channel, where we are the client: connects and greets. */
int agent_host_connect(struct agent_host *h, const char *path);
/* Starts the agent on our socket with up to two more arguments (NULL: none); its stderr goes to
 * log_path. */
int agent_host_spawn(struct agent_host *h, const char *program, const char *argument,
		     const char *argument2);
/* Serves for `ms`: accepts, greets, reads. Ends early when the agent closes (returns false). */
bool agent_host_serve(struct agent_host *h, unsigned int ms);
void agent_host_hang_up(struct agent_host *h);
int agent_host_send_echo(struct agent_host *h);
int agent_host_send_bytes(struct agent_host *h, const void *data, size_t len);
/* Sends SIGTERM, reads what still comes, waits. The exit status as of wait(), or -errno. */
int agent_host_stop_agent(struct agent_host *h);

struct agent_host_sums {
	uint64_t received, lost, gaps, emitted, dropped_kernel, dropped_user, late;
};
struct agent_host_sums agent_host_sums(const struct agent_host *h);
/* User and system time of the agent so far, seconds; resident memory now and at its peak, bytes. */
double agent_host_agent_cpu_s(const struct agent_host *h);
uint64_t agent_host_agent_rss_peak(const struct agent_host *h);

/* Two threads bounce a byte through two pipes on one CPU for `seconds`, `pause_us` between rounds;
 * returns rounds made. Runs in a child process; pid in *child; -errno on failure. */
int pingpong_start(pid_t *child, unsigned int cpu, unsigned int pause_us);
void pingpong_stop(pid_t child);

#endif
