/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Host TSC <-> host CLOCK_MONOTONIC_RAW, from clock samples of the host. Anchored at the first
 * sample; the rate is refined by each later one, so nearby times never jump by more than their
 * stated error.
 */
#ifndef CLOCK_RAW_H
#define CLOCK_RAW_H

#include <stdbool.h>
#include <stddef.h>

#include "clock/sample.h"
#include "clock/types.h"

struct raw_clock;

/* hz: nominal TSC rate. NULL on ENOMEM. */
struct raw_clock *raw_clock_new(uint64_t hz);
void raw_clock_free(struct raw_clock *c);
/* 0, -EINVAL if the sample contradicts itself (ignored), -ENOMEM; samples must come in time order.
 */
int raw_clock_push(struct raw_clock *c, const struct clock_sample *sample);
/* err_ticks: the error the tick count already carries. Valid after the first push. */
struct host_time raw_clock_from_tsc(const struct raw_clock *c, struct host_tsc tsc,
				    uint64_t err_ticks);
struct host_tsc raw_clock_to_tsc(const struct raw_clock *c, struct host_ns t);
/* Point number `i` of CLOCK_MONOTONIC against the timeline, in time order: between two of them it
 * is a line to within what NTP's rate changes there. At most 1024 are kept. False past the last. */
bool raw_clock_monotonic_point(const struct raw_clock *c, size_t i, struct host_ns *t,
			       struct monotonic_ns *monotonic);
/* Wall time (CLOCK_REALTIME ns) at host time t, by the nearest sample. */
uint64_t raw_clock_realtime_ns(const struct raw_clock *c, struct host_ns t);

#endif
