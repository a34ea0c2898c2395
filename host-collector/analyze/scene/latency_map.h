/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts latencies over time, for histograms and heat maps: for each VM, how often each length
 * occurred in each column of time. When a recording outgrows its columns, their width doubles. Rows
 * have a resolution of half an octave; a second histogram with an error of 0.8 % gives the
 * quantiles.
 */
#ifndef SCENE_LATENCY_MAP_H
#define SCENE_LATENCY_MAP_H

#include "clock/histogram.h"
#include "host-collector/analyze/chain/chain.h"
#include "host-collector/model/model.h"

/* X(NAME, "name", what the length is) */
#define LATENCY_KINDS(X)                                                                           \
	X(PCPU_WAIT, "vcpu_wait", "vCPU ready to run, until it got a pCPU")                        \
	X(INTERRUPT, "interrupt", "interrupt raised, until the guest's handler began")             \
	X(HANDLER, "handler", "time in one interrupt or softirq of the guest")

enum latency_kind {
#define X(NAME, ...) LATENCY_##NAME,
	LATENCY_KINDS(X)
#undef X
		LATENCY_KIND_COUNT
};
/* Return the name in the page's data, and the name for people. Static. */
const char *latency_kind_name(enum latency_kind k);
const char *latency_kind_meaning(enum latency_kind k);

/* Row r of a map counts lengths from latency_row_ns(r) to less than latency_row_ns(r + 1). */
enum { LATENCY_COLUMNS = 192, LATENCY_ROWS = 64, LATENCY_VMS_MAX = 8 };
#define LATENCY_COLUMN_MIN_NS (1ll << 20)
/* Returns the lower edge of a row, ns. An octave has two rows. */
int64_t latency_row_ns(unsigned row);

struct latency_map {
	uint32_t vm;
	enum latency_kind kind;
	struct host_ns begin;
	int64_t column_ns; /* a power of two */
	unsigned columns;  /* columns in use, from the first one on */
	uint32_t counts[LATENCY_COLUMNS][LATENCY_ROWS];
	struct histogram lengths;
};

/* Prepare an empty map of lengths since `begin`; release it. */
void latency_map_init(struct latency_map *m, struct host_ns begin);
void latency_map_fini(struct latency_map *m);
/* Counts a length at time t, in ns. Returns 0 or -ENOMEM. */
int latency_map_add(struct latency_map *m, struct host_ns t, int64_t ns);
/* Adds the counts of `from`, which has the same begin. May widen the columns of either map. Returns
 * 0 or -ENOMEM. */
int latency_map_merge(struct latency_map *into, struct latency_map *from);

struct latency_maps;

/* Subscribes to the model. The caller must not feed the model after latency_maps_free(). Returns
 * NULL on ENOMEM. */
struct latency_maps *latency_maps_new(struct model *m);
void latency_maps_free(struct latency_maps *l);
/* Counts a closed chain (chain_options.closed). */
void latency_maps_chain(struct latency_maps *l, const struct chain *c);
/* Returns map number `index`, NULL past the last. No map is empty. Borrowed. */
const struct latency_map *latency_maps_at(const struct latency_maps *l, size_t index);
/* Returns whether there were more than LATENCY_VMS_MAX VMs; the further ones have no map. */
bool latency_maps_left_out(const struct latency_maps *l);
/* Returns 0, or -ENOMEM if something could not be counted. */
int latency_maps_error(const struct latency_maps *l);

#endif
