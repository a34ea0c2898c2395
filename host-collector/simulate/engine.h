/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The simulator's time and chance: actions in order of time (equal times in order of planning), and
 * random numbers from one seed, so that a run is the same on every machine.
 */
#ifndef SIMULATE_ENGINE_H
#define SIMULATE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*engine_action)(void *object, uint64_t argument);

struct engine_entry {
	int64_t t;
	uint64_t order;
	engine_action action;
	void *object;
	uint64_t argument;
};

struct engine {
	int64_t now; /* ns since the run's start */
	uint64_t random, planned;
	struct engine_entry *heap;
	size_t n, capacity;
	int error; /* the first -ENOMEM of anyone in the run; nothing is planned after it */
};

/* It is 0 ns. The same seed gives the same random numbers. */
void engine_init(struct engine *e, uint64_t seed);
void engine_fini(struct engine *e);
/* Plans an action; a time that has passed means now. There is no cancelling: an action that may
 * have become stale carries a generation as its argument. */
void engine_at(struct engine *e, int64_t t, engine_action action, void *object, uint64_t argument);
/* Runs what is due up to and including `t`, then it is `t`. 0 or the engine's error. */
int engine_run(struct engine *e, int64_t t);

/* Uniform in all 64 bits. */
uint64_t engine_random(struct engine *e);
/* Uniform in [low, high]. */
int64_t engine_between(struct engine *e, int64_t low, int64_t high);
bool engine_chance(struct engine *e, double p);

#endif
