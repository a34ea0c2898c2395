/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds what a running or halted guest waits for, from its exits, its interrupts and the VM's other
 * vCPUs: a lock whose owner does not run, the answer to an IPI, a device that it polls, or a nested
 * guest.
 *
 * For each vCPU, the newest times of these kinds, and the newest times in which the host kept the
 * vCPU from the guest, are kept in bounded memory. They are evaluated when an interval is reported,
 * so an event costs only a few comparisons.
 */
#ifndef STALL_HINTS_H
#define STALL_HINTS_H

#include "host-collector/analyze/stall/facts.h"

struct hints; /* of one VM */

struct hints *hints_new(void); /* returns NULL if out of memory */
void hints_free(struct hints *h);
/* Takes a host event about one of the VM's vCPU threads. */
void hints_host(struct hints *h, const struct model *m, const struct host_instant *i);
/* Returns the types that hints_host() needs. */
struct event_set hints_host_types(void);
/* Takes a LOST event of the host: events that are missing may concern any VM. */
void hints_lost(struct hints *h, const struct model *m, const struct host_instant *i);
/* Takes an event of a guest CPU whose vCPU is known, also LOST. */
void hints_guest(struct hints *h, const struct model *m, const struct guest_instant *i);
/* Completes the hints that wait for further events; call it after the last event. */
void hints_finish(struct hints *h);
/* Takes a span of one of the VM's vCPUs. */
void hints_vcpu(struct hints *h, const struct vcpu_span *span);
/* Returns true if the model has delivered enough spans of the VM's vCPUs to judge an interval that
 * ended at `t`. */
bool hints_settled(const struct hints *h, const struct model *m, uint32_t vm, struct host_ns t);
/* Returns for how long the host kept the vCPU from the guest between `begin` and `end`, in ns, as
 * far as spans were delivered. */
int64_t hints_kept_ns(const struct hints *h, const struct model *m, uint32_t vm, uint32_t vcpu,
		      struct host_ns begin, struct host_ns end);
/* Fills f->waits, f->events and f->hits. Call it after facts_close(). */
void hints_fill(const struct hints *h, const struct model *m, struct stall_facts *f);

#endif
