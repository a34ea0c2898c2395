/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes a pair of each event A and the next event B of the same key, unless another A comes before
 * B. A and B may be on the host, in a guest, or one on each side. docs/pairs.md describes the
 * algorithm with an example.
 *
 * Each -e is a group of choices. Stage i pairs the events of group i with those of group i + 1. A
 * call is a pair that is counted. A pair is past losses if another A or B of its key may have been
 * lost between its two events, so that the pair may be wrong.
 *
 * With with_intervals, each hit of an event with the attribute `trigger` begins a new interval,
 * with rows of its own. A pair belongs to the interval of its B, an event without a partner to its
 * own. An event at the time of the hit belongs to the interval that ends then.
 *
 * Memory is bounded: at most open_max keys wait for their B, and at most pending_max pairs wait for
 * the states of their vCPU; there are at most PAIR_ROWS_MAX rows.
 */
#ifndef EVENT_PAIRS_H
#define EVENT_PAIRS_H

#include "clock/histogram.h"
#include "host-collector/analyze/event/event_reader.h"
#include "host-collector/analyze/event/state_marks.h"

enum {
	PAIR_OPEN_MAX = 65536,
	PAIR_PENDING_MAX = 32768,
	PAIR_ROWS_MAX = 4096,
	PAIR_KEPT_MAX = 64,
	PAIR_KEY_BYTES = 24,
	PAIR_ROUND_PAIRS = 4096, /* round_pairs of a live joiner */
	/* Intervals between hits of triggers; the last one is open. */
	PAIR_INTERVALS_MAX = 256,
};

#define PAIR_ROUND_NS 600000000000ll

struct pair;
struct pair_fields; /* pair_fields.h */

struct pairs_options {
	bool cycle;   /* the last group leads to the first one again */
	bool per_key; /* a row for each key */
	/* The states of the vCPU are not needed, so pairs are counted sooner. */
	bool without_states;
	/* Events with the attribute `trigger` begin intervals. Without round_pairs only. */
	bool with_intervals;
	bool with_fields; /* pairs have the fields of their events, which takes more memory */
	/* Which single pairs are kept: the `kept` longest of at least than_ns; with lower_ns, the
	 * `kept` shortest below lower_ns. than_ns, lower_ns 0: no limit. Rows do not depend on
	 * these members. */
	size_t kept;
	int64_t than_ns, lower_ns;
	const struct narrow *narrow; /* the events that it selects; NULL: all. Borrowed. */
	/* For a live stream, which has no end: whether pairs past losses are calls is decided in
	 * rounds of this many pairs, or of PAIR_ROUND_NS. A pair is decided as soon as the evidence
	 * of its round and of the round before is enough, at the latest when its round ends. 0:
	 * pairs_finish() decides, over all pairs. Not together with per_key. */
	uint64_t round_pairs;
	/* Receives each pair that counts as a call, or that will count as one if pairs past losses
	 * become calls, as soon as that is known. May be NULL. */
	void (*settled)(void *context, const struct pair *pair);
	void *context;
	/* Largest number of keys that wait for their B, and of pairs that wait for the states of
	 * their vCPU; 0: PAIR_OPEN_MAX, PAIR_PENDING_MAX. */
	uint32_t open_max, pending_max;
};

/* The value of a key. */
struct pair_key {
	enum expr_type type;
	uint64_t number;           /* of a text: a hash */
	char text[PAIR_KEY_BYTES]; /* of a text: its first bytes */
	bool hex;                  /* a field that is shown in hexadecimal */
	/* The key belongs to VM `vm`: the same value in another VM is another key. */
	bool of_vm;
	uint32_t vm;
};

struct pair_end {
	struct host_ns t;
	uint32_t err_ns, source;
	uint16_t cpu, choice;
	int32_t tid; /* -1 unknown */
	bool vm_known, vcpu_known;
	uint32_t vm, vcpu;
};

struct pair {
	unsigned stage;
	struct pair_key key;
	struct pair_end from, to;
	int64_t duration_ns;
	uint64_t error_ns; /* bound on the error of duration_ns; UINT64_MAX: unbounded */
	bool states_known;
	struct state_times_ns states; /* of the vCPU, between both events */
	bool past_losses;             /* see struct pair_row */
	bool past_both;               /* the row counts it in past_both, not in past_losses */
	/* Only in the call of `settled`, and with with_fields; NULL: there was no memory. */
	const struct pair_fields *from_fields, *to_fields;
	/* The pair is already known to be a call. Without round_pairs, never true past losses. */
	bool is_call;
};

/* Calls of one kind. */
struct pair_calls {
	struct histogram times;
	uint64_t beyond;      /* calls of at least than_ns; with lower_ns, below lower_ns */
	uint64_t error_ns;    /* largest error of a call's duration; UINT64_MAX: unbounded */
	uint64_t with_states; /* calls whose vCPU's states are known */
	struct state_times_ns states; /* their sum */
};

/* The pairs of a stage, or of one key in it. */
struct pair_row {
	/* Number of the interval, from 0. PAIR_INTERVALS_MAX: of all intervals, for keys that found
	 * no row. Without triggers 0. */
	unsigned interval;
	unsigned stage;
	struct pair_key key; /* type EXPR_NONE: all keys */
	/* After pairs_finish() including the pairs past losses that became calls. */
	struct pair_calls calls;
	/* Pairs past losses that are not decided yet. past_losses: either an A or a B may have been
	 * lost between both events. past_both: an A and a B may have been lost, each in a loss of
	 * few events. pairs_finish() counts them as calls or as incomplete. */
	struct pair_calls past_losses, past_both;
	uint64_t calls_past_losses; /* pairs of both kinds that became calls */
	uint64_t calls_past_both;   /* of these, the pairs of past_both */
	/* Expected number of wrong pairs among the calls of the stage, if pairs past losses became
	 * calls because losses were rare; else 0. */
	double wrong_expected;
	uint64_t unpaired_from; /* begins without an end */
	uint64_t unpaired_to;   /* ends without a begin */
	uint64_t incomplete;    /* events were lost between both: not counted as calls */
	uint64_t ambiguous;     /* two candidates within the clocks' error: not counted */
};

struct pairs;

/* Returns the number of stages that the choices have: 0 if there is nothing to pair. */
unsigned pairs_stages(const struct event_choices *choices, bool cycle);
/* Subscribes to the model; `choices`, whose keys are set, is borrowed. Returns NULL on ENOMEM. */
struct pairs *pairs_new(struct model *m, const struct event_choices *choices,
			const struct pairs_options *options);
void pairs_free(struct pairs *p); /* NULL is allowed */
/* Counts the events and pairs that still wait; call it after model_finish(). Returns 0 or -ENOMEM.
 */
int pairs_finish(struct pairs *p);

/* Calls `take` for each pair that still waits for the states of its vCPU or for late reports of
 * losses. Leaves out pairs that are ambiguous or incomplete by what is known so far. */
void pairs_pending_each(const struct pairs *p, void (*take)(void *context, const struct pair *pair),
			void *context);

/* Return row number i and kept pair number i, or NULL past the last. Rows are ordered by interval,
 * then by stage, then by total time; pairs from the longest, with lower_ns from the shortest. Valid
 * until pairs_free(). */
const struct pair_row *pairs_row(const struct pairs *p, size_t i);
const struct pair *pairs_kept(const struct pairs *p, size_t i);
/* Writes "A -> B" of a stage. Returns `out`. */
const char *pairs_stage_name(const struct pairs *p, unsigned stage, char *out, size_t out_bytes);
/* Writes a key as reports show it; "all" for all keys. Returns `out`. */
const char *pair_key_text(const struct pair_key *key, char *out, size_t out_bytes);

/* Returns the number of intervals; 0: without with_intervals, or no event is a trigger. The first
 * begins with the recording, the last ends with it. */
size_t pairs_intervals(const struct pairs *p);
/* Returns the time of the hit that begins interval number `i`, which is not 0. */
struct host_ns pairs_interval_begin(const struct pairs *p, size_t i);

/* Numbers of events, keys and pairs that were counted differently from the rest, or not at all. */
struct pairs_limits {
	uint64_t without_key; /* events whose key is missing */
	uint64_t evicted;     /* keys given up because too many were open */
	/* Pairs and unpaired events that the last row of their stage counts, because there are more
	 * than PAIR_ROWS_MAX keys. */
	uint64_t keys_joined;
	uint64_t states_given_up; /* pairs whose states did not arrive in time */
	/* Hits of triggers that began no interval, because there are PAIR_INTERVALS_MAX. */
	uint64_t intervals_joined;
};
struct pairs_limits pairs_limits_get(const struct pairs *p);

/* Computes the key of an event. of_vm: result of pairs_of_vm(). Returns false if the event has no
 * key. */
bool pair_key_of(struct event_row *row, bool of_vm, struct pair_key *out);
/* Returns true if the key names a vCPU or a task of a guest: the same value in another VM then
 * means another vCPU or task. */
bool pair_key_names_vm(const struct expr *key);
/* Returns a hash of the key and `number`. */
static inline uint64_t pair_key_hash(unsigned number, const struct pair_key *key)
{
	const uint64_t kind = (uint64_t)key->vm << 16 | number << 1 | (key->type == EXPR_TEXT);

	return (key->number ^ key->number >> 29) * 0x9e3779b97f4a7c15ull +
	       kind * 0xbf58476d1ce4e5b9ull;
}
/* Returns true if each key of these choices belongs to one VM (pair_key.of_vm). */
bool pairs_of_vm(const struct event_choices *choices);
static inline bool pair_key_equal(const struct pair_key *a, const struct pair_key *b)
{
	return (a->type == EXPR_TEXT) == (b->type == EXPR_TEXT) && a->number == b->number &&
	       a->vm == b->vm;
}

#endif
