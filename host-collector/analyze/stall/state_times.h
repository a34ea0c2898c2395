/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures how long each vCPU was in each state over the whole recording.
 *
 * Invariant: the states of a vCPU sum exactly to the time from its first to its last instant, the
 * breakdown of an incident sums exactly to its length, and no time is negative. The report builder
 * checks each incident and removes the verdict of one that fails. The program that prints a report
 * checks the whole report.
 */
#ifndef STALL_STATE_TIMES_H
#define STALL_STATE_TIMES_H

#include "host-collector/analyze/stall/report.h"

enum { STATE_TIMES_FINDINGS = 2 };

struct state_times;

/* Subscribes to the model. Feed the model no more after state_times_free. Returns NULL if out of
 * memory.
 */
struct state_times *state_times_new(struct model *m);
void state_times_free(struct state_times *s);
/* Sets r->vcpus, which the report then owns; call it after model_finish. Returns 0 or -ENOMEM. */
int state_times_give(struct state_times *s, struct report *r);

/* Checks the incident's breakdown. If it does not add up, marks the incident as inconsistent and
 * removes its verdict. */
void incident_verify(struct incident *i);
/* Returns the number of vCPUs and incidents that break the invariant. `first`, of
 * STATE_TIMES_FINDINGS elements, gets the findings about the first one: in which vCPU or incident,
 * and what does not add up. It is unchanged if there is none. */
size_t report_imbalances(const struct report *r, struct finding *first);

#endif
