/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a running or halted guest waits for, as far as its exits, its interrupts and its VM's other
 * vCPUs give it away: a lock whose owner does not run, the answer to an interrupt that it sent to
 * another CPU, a device that it asks again and again, or a guest of its own.
 *
 * Each vCPU keeps the newest pieces of such times, and of those in which the host kept it from the
 * guest. What a stretch makes of them is worked out when it is told, so an event costs a look at
 * its type and no more than a few comparisons.
 */
#ifndef STALL_HINTS_H
#define STALL_HINTS_H

#include "host-collector/analyze/stall/facts.h"

struct hints; /* of one VM */

struct hints *hints_new(void); /* NULL on ENOMEM */
void hints_free(struct hints *h);
/* An event of the host's about one of the VM's vCPU threads. */
void hints_host(struct hints *h, const struct model *m, const struct host_instant *i);
/* Events of the host's are missing, whosever they were. */
void hints_lost(struct hints *h, struct host_ns t);
/* An event on the guest CPU that this vCPU runs. */
void hints_guest(struct hints *h, uint32_t vcpu, const struct guest_instant *i);
void hints_vcpu(struct hints *h, const struct vcpu_span *span);
/* Is enough told of the other vCPUs to judge what ended at `t`? */
bool hints_settled(const struct hints *h, const struct model *m, uint32_t vm, struct host_ns t);
/* How long, as far as is told, the host kept this vCPU from the guest between `begin` and `end`. */
int64_t hints_kept_ns(const struct hints *h, const struct model *m, uint32_t vm, uint32_t vcpu,
		      struct host_ns begin, struct host_ns end);
/* Fills `waits` of facts that are closed. */
void hints_fill(const struct hints *h, const struct model *m, struct stall_facts *f);

#endif
