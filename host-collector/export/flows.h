/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Draws arrows (Perfetto calls them flows) from the source of an interrupt, through its injection,
 * to the guest's handler, based on the chains of analyze/chain/chain.h. A chain is closed about a
 * second after its handler, so the handler's slice is held back for FLOW_HOLD_NS of the recording's
 * time.
 *
 * The guest's stamp of a handler may precede its injection by the clocks' error. The handler keeps
 * its time. A step of the arrow with a later stamp is drawn at the handler's time; its argument
 * `later_by_ns` is what to add to get the stamp.
 */
#ifndef EXPORT_FLOWS_H
#define EXPORT_FLOWS_H

#include "host-collector/analyze/chain/chain.h"
#include "host-collector/export/boottime.h"
#include "host-collector/export/tasks.h"

#define FLOW_HOLD_NS 2500000000ll
enum { FLOWS_MAX = 65536 };

struct flows {
	struct trace_file *file;
	struct tasks *tasks;
	struct boottime *boottime;
	const struct model *model;
	struct lru index; /* by VM, guest CPU and begin of the handler */
	struct flow *items;
	uint32_t injects[256], accepts[256], gsis[256], sources[CHAIN_SOURCE_COUNT][256];
	uint64_t drawn;
	uint64_t contradicted; /* delivered after the handler beyond the clocks' error: not drawn */
};

int flows_init(struct flows *x); /* set the borrowed members first. Returns 0 or -ENOMEM */
void flows_fini(struct flows *x);
/* Stores a closed chain. For chain_options.closed. */
void flows_chain(void *flows, const struct chain *c);
/* Writes the steps of the arrow to the handler that began at `handler` on guest CPU `cpu`. `t` is
 * the same time in ns of CLOCK_BOOTTIME. Returns the number of the arrow, for trace_flow() of the
 * handler's slice, or 0 if there is no arrow. */
uint64_t flows_to(struct flows *x, uint32_t vm, uint16_t cpu, struct host_ns handler, uint64_t t);

#endif
