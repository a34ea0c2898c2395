/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the vCPU of each interrupt event and the source of each accept. The source is the nearest
 * earlier source event of the same thread on the same pCPU. KVM's tracepoints carry an APIC id but
 * no VM: the VM is that of the task that emitted the event. If that task belongs to no VM, the
 * accept goes, as uncertain, to the only VM that has a vCPU with this APIC id; if several have one,
 * it is ignored.
 */
#ifndef CHAIN_CHAIN_ROUTE_H
#define CHAIN_CHAIN_ROUTE_H

#include "host-collector/analyze/chain/chain_vcpu.h"

struct chain_route;

/* Subscribes to the model. Feed the model no more after chain_route_free. Returns NULL if out of
 * memory. */
struct chain_route *chain_route_new(struct model *m);
/* Adds a listener, before the first event. Copies the sink. limit_ns: as in struct chain_listener.
 * Returns 0, or -ENOSPC: there are CHAIN_LISTENERS_MAX. */
int chain_route_listen(struct chain_route *r, int64_t limit_ns, const struct chain_sink *sink);
void chain_route_free(struct chain_route *r);
/* As chains_handlers_alone. */
uint64_t chain_route_handlers_alone(const struct chain_route *r);
/* Reports raised interrupts that nothing accepted, then closes the open chains. */
void chain_route_finish(struct chain_route *r);

#endif
