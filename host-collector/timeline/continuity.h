/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts the events of a stream that did not arrive. Consecutive batches of a CPU have consecutive
 * sequence numbers, and a LOST event covers as many numbers as events were lost. So a reader can
 * count missing events without trusting the sender's counters. Also sums these counters over all
 * CPUs.
 */
#ifndef TIMELINE_CONTINUITY_H
#define TIMELINE_CONTINUITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-collector/timeline/boots.h"
#include "proto/codec.h"
#include "proto/message.h"

struct continuity_cpu {
	bool started;
	uint32_t next_seq;
	uint64_t session_id;
	uint32_t boot; /* boot of the newest batch */
	/* The newest batch is the first after the sender restarted its sequence numbers. */
	bool anew;
	/* the sender's counters in the newest batch */
	uint64_t emitted, dropped_kernel, dropped_user;
	/* The latest stream time that was converted, and its host time: converted times of a CPU
	 * never decrease (batches.c). */
	uint64_t floor_stream;
	int64_t floor_ns;
	/* Events are missing, and since then no slice has named the task on the CPU (batches.c). */
	bool in_doubt;
};

struct continuity {
	struct continuity_cpu *cpus; /* array of n_cpus */
	size_t n_cpus;
	uint64_t delivered, emitted, dropped_kernel, dropped_user;
	struct boots boots;
};

enum continuity_verdict {
	CONTINUITY_WHOLE,   /* continues the last batch of the CPU */
	CONTINUITY_GAP,     /* *missing events did not arrive; 0: their number is unknown */
	CONTINUITY_REPEATS, /* contains nothing new: drop the batch */
};

/* Returns the number of events that were emitted and neither delivered nor reported as dropped by
 * the sender, so they were lost on the channel. Negative if the sender's counters contradict each
 * other, or for a short time while delayed events arrive. */
int64_t continuity_lost(const struct continuity *c);
void continuity_fini(struct continuity *c);
/* Returns the state of a CPU number below VS_CPUS_MAX, or NULL on ENOMEM. The pointer is valid
 * until the next call. */
struct continuity_cpu *continuity_cpu(struct continuity *c, uint16_t cpu);
/* Takes the boot id from the HELLO of a session. Returns true if another boot begins: its sequence
 * numbers, and possibly its clock, restart. */
bool continuity_hello(struct continuity *c, uint64_t session_id, const char *boot_id);
/* Compares the next batch of a CPU with the ones before and counts its events. */
enum continuity_verdict continuity_check(struct continuity *c, struct continuity_cpu *cpu,
					 const struct batch *b, uint64_t session_id,
					 uint64_t *missing);

#endif
