/* SPDX-License-Identifier: GPL-2.0-only */
/* Implements `vcpuscope clock eval`: computes all clocks of one instant from given parameters. */
#ifndef CLOCK_EVAL_H
#define CLOCK_EVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/pvclock.h"
#include "clock/tsc_scaling.h"
#include "clock/types.h"

/* The clock parameters of one vCPU. */
struct clock_params {
	struct tsc_scaling scaling;
	bool has_pvclock;
	struct pvclock pvclock;
};

enum clock_eval_from {
	CLOCK_EVAL_HOST_TSC = 1,
	CLOCK_EVAL_GUEST_TSC,
	CLOCK_EVAL_KVMCLOCK,
};

/* Which host TSC to use if several give the requested value. */
enum clock_eval_inverse { CLOCK_EVAL_FIRST = 0, CLOCK_EVAL_LAST };

struct clock_eval_request {
	struct clock_params params;
	enum clock_eval_from from;
	enum clock_eval_inverse inverse;
	uint64_t value;
};

struct clock_eval_result {
	struct host_tsc host;
	struct guest_tsc guest;
	bool has_kvmclock;
	struct kvmclock_ns kvmclock;
	/* Number of host ticks after `host` at which the clock still reads the value; 0: only at
	 * `host`. */
	uint64_t span_ticks;
	/* The clock never reads the value. The result is the first instant at which it reads more.
	 */
	bool stepped_over;
};

/* Returns 0, -EINVAL (parameters out of range, or kvmclock requested without pvclock) or -ERANGE
 * (beyond 2^64). */
int clock_eval(const struct clock_eval_request *request, struct clock_eval_result *out);

/*
 * Each of these parses a text with decimal or hexadecimal (0x) numbers, and returns 0 or -EINVAL.
 * An offset is between -2^63 and 2^64-1. A scaling is RATIO/FRAC. A pvclock has the fields
 * tsc_timestamp=N, system_time=N, mul=N, shift=N and optionally flags=N. Commas without blanks
 * separate its fields, in any order.
 */
int clock_eval_parse_u64(const char *text, uint64_t *out);
int clock_eval_parse_offset(const char *text, uint64_t *out);
int clock_eval_parse_scaling(const char *text, struct tsc_scaling *out);
int clock_eval_parse_pvclock(const char *text, struct pvclock *out);

#endif
