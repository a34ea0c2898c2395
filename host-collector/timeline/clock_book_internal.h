/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the clock book share: clock_book.c takes facts, clock_convert.c converts times,
 * clock_account.c says how well. */
#ifndef TIMELINE_CLOCK_BOOK_INTERNAL_H
#define TIMELINE_CLOCK_BOOK_INTERNAL_H

#include "clock/raw.h"
#include "clock/sample.h"
#include "host-collector/timeline/clock_book.h"
#include "host-collector/timeline/guest_clock.h"
#include "host-collector/timeline/standstill.h"

enum { CLOCK_WALL_STEPS_MAX = 64 };
enum { CLOCK_BOOTS_MAX = 64 }; /* that are kept of one guest; the oldest give way */

struct guest {
	uint32_t source;
	struct vm_clock *hypervisor; /* NULL: it said nothing */
	struct standstills standstills;
	uint32_t n_boots;                           /* ever; the newest is n_boots - 1 */
	struct guest_clock *boots[CLOCK_BOOTS_MAX]; /* a ring */
};

struct clock_book {
	uint64_t host_hz;
	struct raw_clock *raw;
	uint64_t n_samples; /* in raw */
	bool span_limited;
	int64_t origin_ns; /* of the first sample in raw */
	struct message_clock_sample first_sample, last_sample;
	size_t n_wall_steps;
	struct clock_wall_step {
		struct host_ns t;
		int64_t by_ns;
	} wall_steps[CLOCK_WALL_STEPS_MAX];
	struct clock_sample *early; /* until host_hz is known */
	size_t n_early;
	struct guest *guests;
	size_t n_guests;
	bool imported, apart; /* apart: of some sample the TSC is not CLOCK_MONOTONIC_RAW */
};

/* NULL if it was never heard of. */
struct guest *clock_guest_find(const struct clock_book *b, uint32_t source);
/* NULL if it is not known, or long forgotten. */
struct guest_clock *clock_boot_find(const struct guest *g, uint32_t boot);
struct guest_clock *clock_boot_newest(const struct guest *g);
/* Did an importer state the host's time of every event of it? */
bool clock_is_stated(const struct clock_book *b, const struct guest_clock *g);

#endif
