/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A recording of the interrupting VMM (irq_vmm.h): the host's half by the collector's own capture;
 * the guest's half out of the guest's own log, as an agent would send it. In that half, and in the
 * round trips between both, every stamp is one that the guest read.
 */
#ifndef MICROGUEST_IRQ_RECORDING_H
#define MICROGUEST_IRQ_RECORDING_H

#include <stddef.h>

#include "host-collector/record/host_stream.h"
#include "irq_vmm.h"

enum { IRQ_RECORDING_VM = 1 };

struct irq_recording;

/* Attaches to the VMM, which must run. 0 or -errno with one line in `why`. */
int irq_recording_open(const char *path, const struct irq_vmm *v, struct irq_recording **out,
		       char *why, size_t why_bytes);
/* Every few ten ms: writes what the host's capture saw. 0 or -errno. */
int irq_recording_turn(struct irq_recording *r);
/* After the VMM's play: a last turn, the round trips, the guest's half, the end; *stats: the
 * host's half. Frees in any case. 0 or -errno. */
int irq_recording_close(struct irq_recording *r, const struct irq_vmm *v,
			struct host_stream_stats *stats);

#endif
