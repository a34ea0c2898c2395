/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The account of every vCPU over a whole recording: how long it was in which state. It balances if
 * the states sum to the time from its first to its last instant, to the nanosecond; so does every
 * incident's breakdown. Whoever makes a report asks, so that a report that does not add up is never
 * believed.
 */
#ifndef ANALYZE_STATE_TIMES_H
#define ANALYZE_STATE_TIMES_H

#include "host-collector/analyze/report.h"

struct state_times;

/* Subscribes to the model, which must not be fed any more once this is freed. NULL on ENOMEM. */
struct state_times *state_times_new(struct model *m);
void state_times_free(struct state_times *s);
/* After model_finish: hands over what there is as r->vcpus. 0 or -ENOMEM. */
int state_times_give(struct state_times *s, struct report *r);

/* Does everything in the report add up? If not, says what does not. */
bool report_balances(const struct report *r, char *why, size_t why_bytes);

#endif
