/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the newest pairs of each vCPU, to find those that overlap a past time. Short
 * pairs do not displace long ones.
 */
#ifndef EVENT_PAIR_HISTORY_H
#define EVENT_PAIR_HISTORY_H

#include "host-collector/analyze/event/pair_definition.h"
#include "host-collector/analyze/event/pairs.h"

enum {
	PAIR_HISTORY_KEPT = 128,      /* short pairs of a vCPU, and as many long ones */
	PAIR_HISTORY_VCPUS_MAX = 256, /* pairs of further vCPUs are not kept */
};
#define PAIR_HISTORY_LONG_NS 1000000ll /* pairs of at least this length are long */

/* The members of a pair that a history keeps. */
struct pair_span {
	struct host_ns begin, end;
	int64_t duration_ns;
	uint64_t error_ns; /* as in struct pair */
	struct pair_key key;
	bool past_losses;
};

struct pair_history;

struct pair_history *pair_history_new(void);    /* NULL on ENOMEM */
void pair_history_free(struct pair_history *h); /* NULL is allowed */
/* Keeps a pair for the vCPU of each of its events, if that is known. Drops the pair if out of
 * memory. */
void pair_history_add(struct pair_history *h, const struct pair *pair);

/* A vCPU and a time. */
struct pair_window {
	uint32_t vm, vcpu;
	struct host_ns from, until;
};

/* The pairs of a vCPU that overlap a time. */
struct pair_overlaps {
	uint64_t n;
	bool more; /* older ones were not kept */
	struct pair_span longest;
};
/* Finds the pairs that overlap the window, among the kept pairs and among those of `pairs` that are
 * not settled yet. pairs: NULL if only settled pairs count. */
struct pair_overlaps pair_history_find(const struct pair_history *h, const struct pairs *pairs,
				       const struct pair_window *window);
/* Adds a pair if it overlaps the window. */
void pair_overlaps_add(struct pair_overlaps *o, const struct pair *pair,
		       const struct pair_window *window);

/* What is kept of the pairs of one definition. */
struct pair_kept {
	const struct pair_definition *definition;
	const struct pair_history *history;
	const struct pairs *pairs; /* NULL: its events are not known */
};

#endif
