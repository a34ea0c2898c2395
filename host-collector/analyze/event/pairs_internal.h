/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by pairs.c (which event belongs to which), pairs_lost.c (between which events others were
 * lost) and pairs_rows.c (what is counted). */
#ifndef EVENT_PAIRS_INTERNAL_H
#define EVENT_PAIRS_INTERNAL_H

#include "host-collector/analyze/event/pairs.h"
#include "host-collector/util/lru.h"

/* The events of one key and stage that wait for their partner. */
struct pair_open {
	bool used;
	bool has_from, has_to; /* `from`, `to` is valid: a begin or an end waits */
	bool from_follows;     /* the event of this key before `from` was a begin, too */
	bool from_maybe;       /* `from` may have happened before `to`, by the clocks' error */
	bool from_near;        /* `from` may have happened before the end of the newest pair */
	bool to_ambiguous;     /* `to` is counted as ambiguous already */
	bool after_pair;       /* the newest event of this key is the end of the newest pair */
	bool to_follows; /* the event of this key before `to` was the end of the newest pair */
	unsigned stage;
	struct pair_key key;
	struct pair_end from, to;
	uint32_t from_mark, to_mark;
	/* Only with_fields. When a pair is found, they go to its struct pair_pending. */
	struct pair_fields *from_fields, *to_fields;
	/* Position in the ring of the begin before `from`, if that begin has no partner. */
	uint64_t alone;
	/* The newest pair of this key, if it still waits, and its end. */
	uint64_t newest;
	struct pair_end newest_to;
};

/* Which events of a pair's key may have been lost between its two events. */
enum pair_doubt {
	PAIR_CERTAIN,   /* none of its key */
	PAIR_PAST,      /* an end or a begin of its key, not both in this order */
	PAIR_PAST_BOTH, /* an end and a begin of its key, in separate losses of few events */
	PAIR_TORN,      /* an end and a begin of its key */
	PAIR_DOUBTS
};

/* A pair that waits for the states of its vCPU and for late reports of losses. */
struct pair_pending {
	struct pair pair;
	struct host_ns since; /* time at which it entered the ring */
	uint32_t from_mark, to_mark;
	struct pair_fields *from_fields, *to_fields; /* with_fields */
	enum pair_doubt doubt;
	bool ambiguous;
	uint64_t round;
	uint64_t before; /* position in the ring of the pair whose end may belong to this pair's
			    begin */
	/* Its end and the next begin, or its begin and the end before it, may have happened in the
	 * opposite order: then one loss is enough to make a wrong pair. */
	bool order_unsure;
	bool near_loss;   /* an event was lost between both, on any CPU */
	bool past_many;   /* many events were lost at once that may have been an end or a begin */
	bool alone;       /* not a pair, but two begins or two ends without an event between them */
	bool alone_maybe; /* alone, and a later end may belong to the first begin */
};

enum { PAIR_LOSSES_MAX = 1024 };

/* The newest losses of a source, in the order in which they became known. */
struct pair_losses {
	uint32_t source;
	int64_t longest_ahead_ns;  /* largest until - t of the losses that have ended */
	uint64_t n;                /* number of losses so far */
	size_t n_open;             /* number of losses whose end is not known */
	struct event_loss *newest; /* PAIR_LOSSES_MAX, ring */
};

/* Counts of a stage from which the share of wrong pairs is estimated (docs/pairs.md). */
struct pair_evidence {
	uint64_t clean; /* pairs without a loss near them */
	uint64_t alone; /* begins and ends that have no partner, without a loss near them */
	uint64_t pairs; /* of all doubts, without ambiguous ones */
	uint64_t past_losses, past_both;
	uint64_t past_many;                  /* of past_losses, those with `past_many` */
	uint64_t unpaired_from, unpaired_to; /* of all keys */
	struct {
		uint64_t pairs, from, to;
	} window;         /* the newest of them */
	double both_lost; /* expected number of times that an end and the next begin were both lost,
			     summed over all windows */
};

enum { PAIR_ROUNDS = 4 };

/* The rounds of a stage (pairs_options.round_pairs): a pair belongs to the round in which it was
 * found, and is counted later. */
struct pair_round {
	uint64_t newest;   /* number of the round in which pairs are found, at most deciding + 2 */
	uint64_t deciding; /* of the round whose pairs are counted */
	uint64_t found;    /* pairs of the newest */
	struct host_ns began;
};

struct pair_rows {
	struct lru index; /* of rows of keys */
	struct pair_row *rows;
	size_t n;
	/* Indexed by enum pair_doubt. */
	struct pair kept[PAIR_TORN][PAIR_KEPT_MAX];
	size_t n_kept[PAIR_TORN];
	struct pair_evidence evidence[EVENT_GROUPS_MAX][PAIR_ROUNDS]; /* by number of the round */
	struct pair_round rounds[EVENT_GROUPS_MAX];
	struct pair_row stages[EVENT_GROUPS_MAX];
	bool out_of_memory;
};

/* Identifies a hit of a trigger. */
struct trigger_hit {
	struct host_ns t;
	uint32_t source, seq;
	uint16_t cpu;
};

struct pairs {
	const struct event_choices *choices;
	struct pairs_options options;
	unsigned n_stages;
	bool of_vm;
	bool bound[EVENT_CHOICES_MAX]; /* its key names its CPU: no other CPU's events have it */
	bool same[EVENT_GROUPS_MAX];   /* one event may end and begin pairs of this stage */
	bool triggers;                 /* an event is a trigger: rows are of intervals */
	size_t n_triggers;             /* hits */
	struct trigger_hit last_trigger;
	struct host_ns trigger_t[PAIR_INTERVALS_MAX - 1];
	struct event_reader *reader;
	struct host_ns now;    /* time of the newest event */
	struct event_row *row; /* the event that is being taken */
	uint32_t worst_err_ns; /* largest bounded error of an event's time */
	struct state_marks *marks;
	struct lru index;
	struct pair_open *open;
	/* Ring that grows up to options.pending_max, so that its memory stays in the caches. */
	struct pair_pending *pending;
	uint64_t pending_first, pending_end;
	uint64_t pending_mask; /* its capacity, a power of two, minus 1 */
	struct pair_losses losses[MODEL_VMS_MAX + 1];
	size_t n_losses;
	struct pair_rows rows;
	struct pairs_limits limits;
};

/* Returns the pair at a position of the ring. */
static inline struct pair_pending *pending_at(const struct pairs *p, uint64_t position)
{
	return &p->pending[position & p->pending_mask];
}

/* Allocates the rows. Returns 0 or -ENOMEM. */
int pair_rows_init(struct pairs *p);
void pair_rows_fini(struct pairs *p);
/* Returns the row that counts this key at this time. */
struct pair_row *pair_row_of(struct pairs *p, unsigned stage, const struct pair_key *key,
			     struct host_ns t);
/* Begins an interval. */
void pair_rows_trigger(struct pairs *p, struct host_ns t);
/* Records that a pair was found, before anything else is known about it. May begin a round. */
void pair_rows_found(struct pairs *p, unsigned stage);
/* Returns the counts of a round of a stage. */
static inline struct pair_evidence *pair_evidence_at(struct pairs *p, unsigned stage,
						     uint64_t round)
{
	return &p->rows.evidence[stage][round % PAIR_ROUNDS];
}
/* Counts the open begin or end as unpaired; `now`: it was lost about now, as the next event of its
 * key shows. */
void pair_rows_unpaired(struct pairs *p, const struct pair_open *o, bool is_from, bool now);
/* Counts a pair whose states are known, or never will be. */
void pair_rows_count(struct pairs *p, struct pair_pending *done);
/* Adds the missing rows of intervals without events, unless there is a row for each key. */
void pair_rows_complete(struct pairs *p);
/* Sorts the rows, when all is counted. */
void pair_rows_sort(struct pairs *p);

/* Returns the distance in ns within which two events may have happened in the opposite order.
 * Returns 0 for events of one side, which have the order of their kernel's clock, and if an
 * error is unbounded. */
int64_t pairs_doubt_ns(const struct pair_end *a, const struct pair_end *b);
/* Records a loss and its effect on the pending pairs. */
void pairs_lost(void *context, const struct event_loss *loss);
void pairs_lost_over(void *context, uint32_t source, uint16_t cpu, struct host_ns t);
/* Sets `doubt`, `near_loss` and `past_many` from the losses that are known by now. */
void pairs_losses_apply(const struct pairs *p, struct pair_pending *w);
/* Counts the pairs past losses as calls or as incomplete. Returns 0 or -ENOMEM. */
int pair_rows_decide(struct pairs *p);

#endif
