/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The account of every vCPU over a whole recording: how long it was in which state. It balances if
 * the states sum to the time from its first to its last instant, to the nanosecond; so does every
 * incident's breakdown, and no state is negative. The report's builder checks every incident (and
 * takes the verdict from one that fails); who prints a report checks all of it.
 */
#ifndef STALL_STATE_TIMES_H
#define STALL_STATE_TIMES_H

#include "host-collector/analyze/stall/report.h"

struct state_times;

/* Subscribes to the model, which must not be fed any more once this is freed. NULL on ENOMEM. */
struct state_times *state_times_new(struct model *m);
void state_times_free(struct state_times *s);
/* After model_finish: hands over what there is as r->vcpus. 0 or -ENOMEM. */
int state_times_give(struct state_times *s, struct report *r);

/* A breakdown that does not add up proves nothing: marks the incident and takes its verdict. */
void incident_verify(struct incident *i);
/* How many vCPUs and incidents of the report do not add up; `why` describes the first. */
size_t report_imbalances(const struct report *r, char *why, size_t why_bytes);

#endif
