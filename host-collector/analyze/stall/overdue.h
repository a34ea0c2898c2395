/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interrupts as causes of stalls: interrupts that KVM accepted and no handler served, and ticks
 * that the host delivered late. Adds what the interrupt chains (chain.h) show about an interval to
 * its facts. A lost interrupt that no interval shows, because its guest CPU idled or ran other
 * tasks, is an incident of its own. So is an interrupt that an idle guest CPU took late although
 * its vCPU ran: the guest had its interrupts off, or its handler waited before its first event.
 */
#ifndef STALL_OVERDUE_H
#define STALL_OVERDUE_H

#include "host-collector/analyze/stall/facts.h"

struct overdue;

/* Called for an interrupt that may be an incident of its own, when it is handled; if it is lost,
 * also at the end. f->lost or f->late describes it. If lost, the facts are complete except `data`.
 * If late, the caller must check that the guest CPU idled, and add the facts of its tracks. The
 * facts are borrowed for the call. */
typedef void (*overdue_found)(void *context, struct stall_facts *f);

/* Subscribes to the model. Call it before the users of overdue_fill subscribe, so that the chains
 * have each event first. Feed the model no more after overdue_free. Returns NULL if out of memory.
 */
struct overdue *overdue_new(struct model *m, int64_t than_ns, overdue_found found, void *context);
void overdue_free(struct overdue *o);
/* Returns the chains that it uses: one group per vCPU; the limit is a quarter of than_ns, at least
 * 1 ms. Borrowed. */
struct chains *overdue_chains(const struct overdue *o);
/* Fills f->lost, f->tick_late_ns and f->tick_unexplained. Call it after facts_close(). */
void overdue_fill(const struct overdue *o, struct stall_facts *f);
/* Finishes the chains and reports interrupts that are still lost; call it after the last event. */
void overdue_finish(struct overdue *o);

#endif
