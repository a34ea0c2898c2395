/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table `faults`: counts KVM's page faults by ranges of 2 MiB of the guest's physical memory,
 * and finds retries.
 *
 * A sequence is a series of faults of one vCPU on the same page with the same access, each at most
 * PAGE_FAULTS_ROW_NS after the one before it. Each fault after the first is a retry: what the vCPU
 * waits for (for example the memory map's lock, or a page that is reclaimed again at once) is not
 * done. Faults on a device's registers are emulated each time, so they form no sequence.
 */
#ifndef TABLES_PAGE_FAULTS_H
#define TABLES_PAGE_FAULTS_H

#include "host-collector/tables/analysis.h"
#include "host-collector/model/model.h"

enum {
	PAGE_FAULTS_RANGE_BITS = 21,
	PAGE_FAULTS_STORM = 8, /* length of a sequence that is a storm */
};
/* Longest time between two faults of a sequence. */
#define PAGE_FAULTS_ROW_NS 10000000ll

struct page_faults_range {
	uint32_t vm;
	uint32_t vcpu; /* only if per_vcpu */
	uint64_t gpa;  /* guest physical address of the range */
	uint64_t faults;
	uint64_t writes, fetches; /* faults that wrote; faults that fetched instructions */
	uint64_t mmio;            /* faults on a device's registers */
	uint64_t retries;         /* faults after the first of their sequence */
	uint64_t storms;          /* sequences of at least PAGE_FAULTS_STORM faults */
	uint64_t longest_row;     /* length of the longest sequence, faults */
	uint64_t longest_gfn;
	int64_t longest_ns; /* longest time from first to last fault of a sequence */
};

struct page_faults;

/* clear() keeps sequences in progress. */
extern const struct analysis page_faults_analysis;
/* Returns range number `index`, NULL past the last. Borrowed. Keeps 16384 ranges, because a
 * guest chooses its addresses; further ones replace the least recently seen. */
const struct page_faults_range *page_faults_range(const struct page_faults *f, size_t index);

#endif
