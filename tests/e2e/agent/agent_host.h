/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A small collector for tests and benchmarks of the agent. It starts the agent on a Unix socket and
 * reads every frame. It counts received and missing events by their sequence numbers, independently
 * of the agent's own totals.
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
	uint64_t received; /* events, without LOST events */
	uint64_t lost;     /* events that LOST events report as lost */
	uint64_t gaps;     /* sequence numbers that neither arrived nor were reported as lost */
	uint64_t next;     /* expected number of the next event; does not wrap */
	uint64_t watermark;
	uint64_t emitted, dropped_kernel, dropped_user; /* totals in the newest batch */
	uint64_t late;                                  /* events older than a watermark */
};

struct agent_host {
	char path[108], log_path[108];
	int listener, fd;
	pid_t agent;
	struct frame_writer *writer;
	uint64_t sessions; /* number of HELLOs sent; also the id of the next session */
	uint32_t echo_id;
	uint64_t echo_sent_tsc;
	struct frame_reader reader;
	struct frame_order order;
	struct frame_unpacker *unpacker;
	struct batch_decoder *decoder;

	struct host_cpu cpus[HOST_CPUS_MAX];
	uint64_t bytes, batch_bytes, batches, heartbeats, hellos, lost_frames, replayed_frames;
	uint64_t echoes, echo_round_trip_min, echo_round_trip_max, echo_disorder;
	uint64_t heartbeat_violations; /* batches with events older than the watermark of an earlier
					  heartbeat */
	uint64_t promise;
	uint64_t kthreadd_named; /* number of TASK_NAMEs of task 2: one for each full list of tasks
				  */
	uint64_t agent_session;
	struct message_hello hello;
	struct message_heartbeat heartbeat;
	/* The newest kernel log line that contains `log_wanted`. */
	const char *log_wanted;
	bool log_seen;
	struct message_log_line log_line;
};

/* Initializes `h` and chooses the path of its socket. Returns 0 or -errno. */
int agent_host_init(struct agent_host *h);
void agent_host_fini(struct agent_host *h);
int agent_host_listen(struct agent_host *h);
/* Stops listening. The existing connection stays open. */
void agent_host_unlisten(struct agent_host *h);
/* Connects to the socket of a VM's channel and sends a HELLO. Returns 0 or -errno. */
int agent_host_connect(struct agent_host *h, const char *path);
/* Starts the agent on the socket of `h`, with up to two more arguments (NULL: none). The agent's
 * standard error goes to log_path. Returns 0 or -errno. */
int agent_host_spawn(struct agent_host *h, const char *program, const char *argument,
		     const char *argument2);
/* For `ms`, accepts a connection, sends a HELLO and reads frames. Returns false, before the time is
 * over, if the agent closes the connection; else true. */
bool agent_host_serve(struct agent_host *h, unsigned int ms);
void agent_host_hang_up(struct agent_host *h);
int agent_host_send_echo(struct agent_host *h);
int agent_host_send_bytes(struct agent_host *h, const void *data, size_t len);
/* Sends SIGTERM to the agent, reads the frames that still arrive, and waits for its end. Returns
 * the status as wait() does, or -errno. */
int agent_host_stop_agent(struct agent_host *h);

struct agent_host_sums {
	uint64_t received, lost, gaps, emitted, dropped_kernel, dropped_user, late;
};
struct agent_host_sums agent_host_sums(const struct agent_host *h);
/* Return the agent's user and system time so far, in seconds, and its peak resident memory, in
 * bytes. */
double agent_host_agent_cpu_s(const struct agent_host *h);
uint64_t agent_host_agent_rss_peak(const struct agent_host *h);

/* Starts a child process that passes a byte to and fro through two pipes on one CPU, with a pause
 * of `pause_us` after each round, until pingpong_stop(). Stores the process id in *child. Returns 0
 * or -errno. */
int pingpong_start(pid_t *child, unsigned int cpu, unsigned int pause_us);
void pingpong_stop(pid_t child);

#endif
