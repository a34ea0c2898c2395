/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The simulator's time and random numbers: runs actions in order of time (equal times: in the order
 * of planning), and draws random numbers from one seed, so that a run is the same on every machine.
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
	int error; /* first -ENOMEM of the run; nothing is planned after it */
};

/* Sets the time to 0 ns. The same seed gives the same random numbers. */
void engine_init(struct engine *e, uint64_t seed);
void engine_fini(struct engine *e);
/* Plans an action; a time in the past means now. An action cannot be cancelled. An action that
 * may become obsolete carries a generation as its argument. */
void engine_at(struct engine *e, int64_t t, engine_action action, void *object, uint64_t argument);
/* Runs the actions up to and including `t` and sets the time to `t`. Returns 0 or the engine's
 * error. */
int engine_run(struct engine *e, int64_t t);

/* Returns a number that is uniform in all 64 bits. */
uint64_t engine_random(struct engine *e);
/* Returns a number that is uniform in [low, high]. */
int64_t engine_between(struct engine *e, int64_t low, int64_t high);
bool engine_chance(struct engine *e, double p);

#endif
