/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds out which vCPU an event of an interrupt's way is about, and what raised the interrupt: the
 * accept's source is the nearest earlier one of the same thread on the same pCPU. The kernel's
 * injection tracepoints name no VM; an accept by a task that belongs to none is given to the only
 * VM that has such a vCPU, as uncertain, or to none.
 */
#ifndef CHAIN_CHAIN_ROUTE_H
#define CHAIN_CHAIN_ROUTE_H

#include "host-collector/analyze/chain/chain_vcpu.h"

struct chain_route;

/* Subscribes to the model. NULL on ENOMEM. */
struct chain_route *chain_route_new(struct model *m, int64_t limit_ns,
				    const struct chain_sink *sink);
void chain_route_free(struct chain_route *r);
uint64_t chain_route_handlers_alone(const struct chain_route *r);
/* Closes what is open. */
void chain_route_finish(struct chain_route *r);

#endif
