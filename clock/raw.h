/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Converts between host TSC and the host's CLOCK_MONOTONIC_RAW with clock samples of the host.
 * Each sample refines the rate, and conversions of nearby times never differ by more than their
 * bounds.
 */
#ifndef CLOCK_RAW_H
#define CLOCK_RAW_H

#include <stdbool.h>
#include <stddef.h>

#include "clock/sample.h"
#include "clock/types.h"

struct raw_clock;

/* Returns NULL if out of memory. hz: nominal TSC frequency. short_memory: see struct band_options.
 */
struct raw_clock *raw_clock_new(uint64_t hz, bool short_memory);
void raw_clock_free(struct raw_clock *c);
/* Adds a sample, in order of time. Returns 0, -EINVAL if the sample contradicts itself (it is
 * ignored) or -ENOMEM. */
int raw_clock_push(struct raw_clock *c, const struct clock_sample *sample);
/* Converts tsc. err_ticks: bound of tsc, included in the result's bound. Needs at least one
 * sample. */
struct host_time raw_clock_from_tsc(const struct raw_clock *c, struct host_tsc tsc,
				    uint64_t err_ticks);
struct host_tsc raw_clock_to_tsc(const struct raw_clock *c, struct host_ns t);
/* Copies the i-th pair of CLOCK_MONOTONIC and the timeline, in order of time. Between two pairs the
 * relation is a line, apart from changes of NTP's rate. At most 1024 pairs are kept. Returns false
 * past the last. */
bool raw_clock_monotonic_point(const struct raw_clock *c, size_t i, struct host_ns *t,
			       struct monotonic_ns *monotonic);
/* Returns CLOCK_REALTIME, ns, at host time t, from the nearest sample; 0 without a sample. */
uint64_t raw_clock_realtime_ns(const struct raw_clock *c, struct host_ns t);

#endif
