/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by pairs.c (which event belongs to which), pairs_lost.c (between which events others were
 * lost) and pairs_rows.c (what is counted). */
#ifndef EVENT_PAIRS_INTERNAL_H
#define EVENT_PAIRS_INTERNAL_H

#include "host-collector/analyze/event/pairs.h"
#include "host-collector/util/lru.h"

/* What waits for its partner under one key of one stage. */
struct pair_open {
	bool used, has_from, has_to;
	/* `from` came after another one that found no end. */
	bool from_follows;
	/* `from` came within the clocks' error after `to`: it may be before it. */
	bool from_maybe;
	unsigned stage;
	struct pair_key key;
	struct pair_end from, to;
	uint32_t from_mark, to_mark;
	/* The newest pair of this key, if it still waits, and its end. */
	uint64_t newest;
	struct pair_end newest_to;
};

/* A pair that waits for the states of its vCPU and for late news of losses. */
struct pair_pending {
	struct pair pair;
	struct host_ns since; /* it waits, in the order of the ring */
	uint32_t from_mark, to_mark;
	bool incomplete, ambiguous;
};

/* When events of a source were lost: the newest end of an interval, of all CPUs and of each. */
struct pair_losses {
	uint32_t source;
	int64_t newest_ns;
	int64_t *cpus; /* VS_CPUS_MAX */
};

struct pair_rows {
	struct lru index; /* of rows of keys */
	struct pair_row *rows;
	size_t n;
	struct pair kept[PAIR_KEPT_MAX];
	size_t n_kept;
	struct pair_row stages[EVENT_GROUPS_MAX];
	bool out_of_memory;
};

struct pairs {
	const struct event_choices *choices;
	struct pairs_options options;
	unsigned n_stages;
	bool of_vm;
	bool bound[EVENT_CHOICES_MAX]; /* its key names its CPU: no other CPU's events have it */
	struct event_reader *reader;
	struct host_ns now; /* time of the newest event */
	struct state_marks *marks;
	struct lru index;
	struct pair_open *open;
	struct pair_pending *pending; /* ring */
	uint64_t pending_first, pending_end;
	struct pair_losses losses[MODEL_VMS_MAX + 1];
	size_t n_losses;
	struct pair_rows rows;
	struct pairs_limits limits;
};

/* Allocates the rows. Returns 0 or -ENOMEM. */
int pair_rows_init(struct pairs *p);
void pair_rows_fini(struct pairs *p);
/* Returns the row that counts this key. */
struct pair_row *pair_row_of(struct pairs *p, unsigned stage, const struct pair_key *key);
/* Counts a pair whose states are known, or never will be. */
void pair_rows_count(struct pairs *p, const struct pair_pending *done);
/* Sorts the rows, when all is counted. */
void pair_rows_sort(struct pairs *p);

/* Notes a loss, and marks the pending pairs that it concerns. */
void pairs_lost(void *context, uint32_t source, uint16_t cpu, struct host_ns since,
		struct host_ns until);
/* Returns true if events that would belong to this pair's key may have been lost within it. */
bool pairs_lost_within(const struct pairs *p, const struct pair *pair);

#endif
