/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Latencies over time, for histograms and heat maps: per VM, how often each length came in each
 * column of time. Columns double in width as the recording grows, lengths are kept to half an
 * octave; beside them an exact-to-0.8 % histogram for the quantiles.
 */
#ifndef SCENE_LATENCY_MAP_H
#define SCENE_LATENCY_MAP_H

#include "clock/histogram.h"
#include "host-collector/analyze/chain/chain.h"
#include "host-collector/model/model.h"

/* X(NAME, "name", what it is the length of) */
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
/* As in the page's data; what to call it for people. Static. */
const char *latency_kind_name(enum latency_kind k);
const char *latency_kind_meaning(enum latency_kind k);

/* Row r of a map holds what took less than latency_row_ns(r + 1) and at least latency_row_ns(r). */
enum { LATENCY_COLUMNS = 192, LATENCY_ROWS = 64, LATENCY_VMS_MAX = 8 };
#define LATENCY_COLUMN_MIN_NS (1ll << 20)
/* The lower edge of a row, ns; two rows an octave. */
int64_t latency_row_ns(unsigned row);

struct latency_map {
	uint32_t vm;
	enum latency_kind kind;
	struct host_ns begin;
	int64_t column_ns; /* a power of two */
	unsigned columns;  /* with anything in them, from the first on */
	uint32_t counts[LATENCY_COLUMNS][LATENCY_ROWS];
	struct histogram lengths;
};

struct latency_maps;

/* Subscribes to the model, which must not be fed any more once this is freed. NULL on ENOMEM. */
struct latency_maps *latency_maps_new(struct model *m);
void latency_maps_free(struct latency_maps *l);
/* A chain that has been closed (chain_options.closed). */
void latency_maps_chain(struct latency_maps *l, const struct chain *c);
/* Item number `index` (none is empty), NULL past the last. Borrowed. */
const struct latency_map *latency_maps_at(const struct latency_maps *l, size_t index);
/* VMs beyond LATENCY_VMS_MAX, which have no map. */
bool latency_maps_left_out(const struct latency_maps *l);
/* 0, or -ENOMEM: something could not be counted. */
int latency_maps_error(const struct latency_maps *l);

#endif
