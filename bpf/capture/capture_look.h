/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looks: at each tick of a timer on each CPU, the capture evaluates a condition. If it is true, the
 * capture takes the stack of the task that runs there: of any task in a guest, of a followed thread
 * on a host. The condition uses numbers of the current task, and how many hits tracepoints had on
 * that CPU since the previous tick. All hits of a tracepoint count, also those that do not become
 * events. After a late tick, the capture skips a tick that comes less than 7/8 of the period later.
 *
 * A host's sink receives the stacks as VS_STACK_LOOK, with the time since the previous tick as
 * wait_ns. A guest's stacks are TASK_STACK events of that role.
 */
#ifndef CAPTURE_CAPTURE_LOOK_H
#define CAPTURE_CAPTURE_LOOK_H

#include "bpf/capture/capture.h"
#include "bpf/prog/look_shared.h"

enum {
	CAPTURE_LOOK_PERIOD_MIN_NS = 1000000,
	CAPTURE_LOOK_PERIOD_MAX_NS = 1000000000,
};

struct capture_look {
	uint64_t period_ns; /* 0: no looks */
	size_t n_counts;
	struct {
		char system[48], name[64]; /* of a tracepoint */
	} counts[VS_LOOK_COUNTS];
	size_t n_tests; /* 0: the condition is always true */
	uint32_t first_test;
	struct vs_user_test tests[VS_USER_TESTS_MAX];
};

/* Begins looks, or changes or ends those that are in progress. A guest capture needs sample_hz or
 * sample_hz_max, a host capture `stacks`. Returns 0; -ENOTSUP: the backend, this kernel or the
 * options do not allow it; -ENOENT: this kernel does not have a tracepoint; or another -errno.
 * After an error there are no looks, and `why` has one line, or is "". */
int capture_look_set(struct capture *c, const struct capture_look *look, char *why,
		     size_t why_bytes);
/* Returns the number of hits counted so far. Each costs its CPU about VS_LOOK_HIT_COST_NS. */
uint64_t capture_look_hits(const struct capture *c);
enum { VS_LOOK_HIT_COST_NS = 100 };

#endif
