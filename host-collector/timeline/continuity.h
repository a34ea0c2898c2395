/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Did every event of a stream arrive? Consecutive batches of a CPU continue each other's sequence
 * numbers, and a LOST marker accounts for as many as it says, so a reader counts what it did not
 * get without trusting the sender. Also sums the sender's own totals per CPU.
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
	uint32_t boot; /* of the newest batch */
	bool anew;     /* it is the first of a sender that counts from the start */
	/* the sender's running totals in the newest batch */
	uint64_t emitted, dropped_kernel, dropped_user;
	/* never backwards: what an event mapped to, see pipeline.c */
	uint64_t floor_stream;
	int64_t floor_ns;
};

struct continuity {
	struct continuity_cpu *cpus; /* n_cpus of them */
	size_t n_cpus;
	uint64_t delivered, emitted, dropped_kernel, dropped_user;
	struct boots boots;
};

enum continuity_verdict {
	CONTINUITY_WHOLE,   /* continues the CPU's last batch */
	CONTINUITY_GAP,     /* *missing events are not here (0: nobody knows how many) */
	CONTINUITY_REPEATS, /* nothing new in it: drop it */
};

/* Of what was emitted, neither delivered nor dropped by the sender's word: lost on the way.
 * Negative if the sender contradicts itself, or for a moment while stragglers come. */
int64_t continuity_lost(const struct continuity *c);
void continuity_fini(struct continuity *c);
/* The state of a CPU below VS_CPUS_MAX; valid until the next call. NULL on ENOMEM. */
struct continuity_cpu *continuity_cpu(struct continuity *c, uint16_t cpu);
/* A session's HELLO told its sender's boot id: a machine that booted again counts anew, and so may
 * its clock. True if it did. */
bool continuity_hello(struct continuity *c, uint64_t session_id, const char *boot_id);
/* Judges the next batch of a CPU and counts it. */
enum continuity_verdict continuity_check(struct continuity *c, struct continuity_cpu *cpu,
					 const struct batch *b, uint64_t session_id,
					 uint64_t *missing);

#endif
