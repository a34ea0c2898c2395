/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records the VMM of irq_vmm.h. The collector's own capture records the host side. The guest side
 * is made from the guest's log, in the form in which an agent would send it. All guest stamps, also
 * those of the round trips, are times that the guest read.
 */
#ifndef MICROGUEST_IRQ_RECORDING_H
#define MICROGUEST_IRQ_RECORDING_H

#include <stddef.h>

#include "host-collector/record/host_stream.h"
#include "irq_vmm.h"

enum { IRQ_RECORDING_VM = 1 };

struct irq_recording;

/* Attaches the capture to the running VMM. Returns 0, or -errno with one line in `why`. */
int irq_recording_open(const char *path, const struct irq_vmm *v, struct irq_recording **out,
		       char *why, size_t why_bytes);
/* Writes the events of the host's capture. Call it every 20 ms or so. Returns 0 or -errno. */
int irq_recording_turn(struct irq_recording *r);
/* Call it after irq_vmm_wait(). Writes the last events of the host, the round trips, the guest side
 * and the end of the recording. Stores the statistics of the host side in *stats. Frees `r`, also
 * after an error. Returns 0 or -errno. */
int irq_recording_close(struct irq_recording *r, const struct irq_vmm *v,
			struct host_stream_stats *stats);

#endif
