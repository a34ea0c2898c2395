/* SPDX-License-Identifier: GPL-2.0-only */
/* Generates events of a simulated kernel, puts them into an agent's queue as batches, and counts
 * them. A test compares the counts with those of the collector. */
#ifndef TESTS_SIM_LOAD_H
#define TESTS_SIM_LOAD_H

#include <stdint.h>

#include "guest-agent/send_queue.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "proto/message.h"

enum { SIM_CPUS = 4 };

struct sim_cpu {
	uint32_t seq;
	uint64_t emitted, dropped;
};

struct sim_load {
	struct frame_writer *writer; /* borrowed; so is the queue */
	struct send_queue *queue;
	struct batch_encoder *encoder;
	struct byte_buffer payload, frame;
	struct sim_cpu *cpus; /* SIM_CPUS elements: `own`, or mapped from a file */
	struct sim_cpu own[SIM_CPUS];
	uint64_t rate, made, begin_ms;
	int error; /* -errno of the first error, after which no more events are generated; 0: none
		    */
	struct vs_event events[VS_BATCH_EVENTS_MAX];
};

/* Initializes `l`. rate: events per second. This and the functions below store errors in l->error.
 */
void sim_load_init(struct sim_load *l, struct frame_writer *writer, struct send_queue *queue,
		   uint64_t rate, uint64_t now_ms);
void sim_load_fini(struct sim_load *l);
/* Counts events in this file from now on, as struct sim_cpu[SIM_CPUS], so that the counts remain if
 * this process is killed. Call it before the first event. Returns 0 or -errno. */
int sim_load_tally(struct sim_load *l, const char *path);
/* Generates the events that are due until now_ms. The newest has the time `tsc`. */
void sim_load_make(struct sim_load *l, uint64_t now_ms, uint64_t tsc);
/* Generates a last event on each CPU. */
void sim_load_end(struct sim_load *l, uint64_t tsc);
void sim_load_heartbeat(struct sim_load *l, uint64_t tsc);
/* Counts the events of a frame that the queue dropped (a send_queue_dropped). */
void sim_load_dropped(struct sim_load *l, const struct send_item *item);
/* Returns the sums over all CPUs. */
struct sim_cpu sim_load_sum(const struct sim_load *l);
/* Fills in the HELLO of the simulated kernel. Each process stands for another boot. Returns 0 or
 * -errno. */
int sim_load_hello(struct message_hello *hello);

#endif
