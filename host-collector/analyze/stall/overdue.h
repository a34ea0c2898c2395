/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interrupts as causes of stalls: those that KVM accepted and no handler took, and timer ticks that
 * the host brought late. What the chains of interrupts (chain.h) know of a stretch goes into its
 * facts. A lost interrupt that no stretch shows, because its guest CPU idled or did something else
 * meanwhile, is an incident of its own.
 */
#ifndef STALL_OVERDUE_H
#define STALL_OVERDUE_H

#include "host-collector/analyze/stall/facts.h"

struct overdue;

/* A lost interrupt that stands alone, once it is handled after all, or at the end. Facts complete
 * but for `data`. */
typedef void (*overdue_found)(void *context, struct stall_facts *f);

/* Subscribes to the model; before whoever asks it of stretches, so that it knows more. NULL on
 * ENOMEM. */
struct overdue *overdue_new(struct model *m, int64_t than_ns, overdue_found found, void *context);
void overdue_free(struct overdue *o);
/* What it goes by: per vCPU, late is a quarter of than_ns. Borrowed. */
struct chains *overdue_chains(const struct overdue *o);
/* What is known of a stretch that is closed. */
void overdue_fill(const struct overdue *o, struct stall_facts *f);
/* After the last event. */
void overdue_finish(struct overdue *o);

#endif
