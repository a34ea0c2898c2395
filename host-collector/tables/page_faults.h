/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where in its physical memory a guest faults: KVM's page faults by ranges of 2 MiB, and retries: a
 * vCPU that faults on the same page with the same access again and again, because what it waits for
 * (another CPU's hold on the memory map, a page that is taken away as fast as it comes) is not
 * done. A fault on a device's registers is emulated each time and so no retry.
 */
#ifndef TABLES_PAGE_FAULTS_H
#define TABLES_PAGE_FAULTS_H

#include "host-collector/tables/figures_options.h"
#include "host-collector/model/model.h"

enum {
	PAGE_FAULTS_RANGE_BITS = 21,
	PAGE_FAULTS_STORM = 8, /* faults in a row on one page */
};
/* Faults further apart are not of one row. */
#define PAGE_FAULTS_ROW_NS 10000000ll

struct page_faults_range {
	uint32_t vm;
	uint32_t vcpu; /* only if per_vcpu */
	uint64_t gpa;  /* where the range begins */
	uint64_t faults;
	uint64_t writes, fetches; /* of them */
	uint64_t mmio;            /* of them, on a device's registers */
	uint64_t retries;         /* of them, not the first in their row */
	uint64_t storms;          /* rows of at least PAGE_FAULTS_STORM */
	uint64_t longest_row;     /* faults */
	uint64_t longest_gfn;
	int64_t longest_ns; /* the row that lasted longest, first to last fault */
};

struct page_faults;

/* Subscribes to the model, which must not be fed any more once this is freed. NULL on ENOMEM. */
struct page_faults *page_faults_new(struct model *m, const struct figures_options *options);
void page_faults_free(struct page_faults *f);
/* Forgets all figures, but not the rows that go on. */
void page_faults_clear(struct page_faults *f);
/* Item number `index`, NULL past the last. Borrowed. Of more than 16384 ranges the least recently
 * seen are forgotten: a guest chooses its addresses. */
const struct page_faults_range *page_faults_range(const struct page_faults *f, size_t index);

#endif
