/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of a kernel that is made up, as batches in an agent's queue, counted: so that the truth
 * about them is known. */
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
	struct frame_writer *writer; /* borrowed, as the queue */
	struct send_queue *queue;
	struct batch_encoder *encoder;
	struct byte_buffer payload, frame;
	struct sim_cpu *cpus; /* SIM_CPUS: own, or in a file */
	struct sim_cpu own[SIM_CPUS];
	uint64_t rate, made, begin_ms;
	int error; /* the first, -errno: nothing more is made after it */
	struct vs_event events[VS_BATCH_EVENTS_MAX];
};

/* rate: events per second. What goes wrong here and below is kept in l->error. */
void sim_load_init(struct sim_load *l, struct frame_writer *writer, struct send_queue *queue,
		   uint64_t rate, uint64_t now_ms);
void sim_load_fini(struct sim_load *l);
/* Counts in this file from now on, as struct sim_cpu[SIM_CPUS]: what was emitted is known there
 * also when this process is killed. Before anything is made. 0 or -errno. */
int sim_load_tally(struct sim_load *l, const char *path);
/* The events due until now_ms, the newest at tsc. */
void sim_load_make(struct sim_load *l, uint64_t now_ms, uint64_t tsc);
/* One more on every CPU: its last word. */
void sim_load_end(struct sim_load *l, uint64_t tsc);
void sim_load_heartbeat(struct sim_load *l, uint64_t tsc);
/* A frame of the queue was thrown away (send_queue_dropped). */
void sim_load_dropped(struct sim_load *l, const struct send_item *item);
/* Of all CPUs together. */
struct sim_cpu sim_load_sum(const struct sim_load *l);
/* Who makes such events greets with this; each process is a machine that booted anew. 0 or -errno.
 */
int sim_load_hello(struct message_hello *hello);

#endif
