/* SPDX-License-Identifier: GPL-2.0-only */
/* Definitions that the files of the clock book share: clock_book.c takes observations,
 * clock_convert.c converts times, clock_account.c summarises how precise the clocks are. */
#ifndef TIMELINE_CLOCK_BOOK_INTERNAL_H
#define TIMELINE_CLOCK_BOOK_INTERNAL_H

#include "clock/raw.h"
#include "clock/sample.h"
#include "host-collector/timeline/clock_book.h"
#include "host-collector/timeline/guest_clock.h"
#include "host-collector/timeline/standstill.h"

enum { CLOCK_WALL_STEPS_MAX = 64 };
enum { CLOCK_BOOTS_MAX = 64 }; /* boots of a guest that are kept: the newest */

struct guest {
	uint32_t source;
	struct vm_clock *hypervisor; /* NULL if no parameters are known */
	struct standstills standstills;
	uint32_t n_boots;    /* total number; the newest boot is n_boots - 1 */
	uint32_t first_boot; /* the oldest that is kept */
	struct guest_clock *boots[CLOCK_BOOTS_MAX]; /* a ring */
};

struct clock_book {
	uint64_t host_hz;
	struct raw_clock *raw;
	uint64_t n_samples; /* number of samples in raw */
	bool span_limited, short_memory;
	int64_t origin_ns; /* of the first sample in raw */
	struct message_clock_sample first_sample, last_sample;
	size_t n_wall_steps;
	struct clock_wall_step {
		struct host_ns t;
		int64_t by_ns;
	} wall_steps[CLOCK_WALL_STEPS_MAX];
	struct clock_sample *early; /* samples that arrived before host_hz was known */
	size_t n_early;
	struct guest *guests;
	size_t n_guests;
	/* apart: the TSC of some sample differs from CLOCK_MONOTONIC_RAW. */
	bool imported, apart;
};

/* Returns the guest, or NULL if nothing of it is known. */
struct guest *clock_guest_find(const struct clock_book *b, uint32_t source);
/* Returns the clock of a boot, or NULL if it is unknown or no longer kept. */
struct guest_clock *clock_boot_find(const struct guest *g, uint32_t boot);
struct guest_clock *clock_boot_newest(const struct guest *g);
/* Returns true if an importer stamped this boot's events with the host's time. */
bool clock_is_stated(const struct clock_book *b, const struct guest_clock *g);

#endif
