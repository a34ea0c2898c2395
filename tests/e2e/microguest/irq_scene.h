/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of interrupts look at: a recording of the interrupting VMM (irq_vmm.h), the events
 * in its host's half, and the truth about each interrupt. Made once.
 */
#ifndef MICROGUEST_IRQ_SCENE_H
#define MICROGUEST_IRQ_SCENE_H

#include <stddef.h>
#include <stdint.h>

#include "irq_recording.h"
#include "proto/event.h"

enum { IRQ_SCENE_INTERRUPTS = 1000, IRQ_SCENE_INTERRUPTS_FULL = 5000 };

struct irq_host_event {
	struct vs_event event; /* time: host TSC... */
	uint64_t err;          /* ... and its bound, ticks */
};

struct irq_scene {
	struct irq_vmm vmm; /* idle, its logs stay */
	const char *path;   /* of the recording */
	struct host_stream_stats stats;
	size_t n_host;
	struct irq_host_event *host; /* by time */
	/* The truth by vCPU and run; `before` of IPIs and timers: the earliest they can be. */
	size_t n_raised;
	struct irq_raised *raised;
};

/* Raises at least `count` interrupts and records them to `path` (borrowed); fails the test if that
 * cannot be done. */
void irq_scene_make(struct irq_scene *s, const char *path, uint32_t count);
void irq_scene_free(struct irq_scene *s);
/* The handler's run of an interrupt. */
const struct irq_guest_entry *irq_scene_run(const struct irq_scene *s, const struct irq_raised *r);
/* Host TSC at a guest's stamp, by KVM's own word on the offset. */
uint64_t irq_scene_host_tsc(const struct irq_scene *s, uint32_t vcpu, uint64_t guest);

#endif
