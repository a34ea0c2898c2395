/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The data of the interrupt tests: a recording of the VMM of irq_vmm.h, the events of its host
 * side, and the true data of each interrupt. A test program makes the scene once.
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
	struct irq_vmm vmm; /* no longer raises interrupts; its logs stay valid */
	const char *path;   /* of the recording */
	struct host_stream_stats stats;
	size_t n_host;
	struct irq_host_event *host; /* sorted by time */
	/* All interrupts, sorted by vCPU and run. For IPIs and timers, `before` is the earliest
	 * possible time. */
	size_t n_raised;
	struct irq_raised *raised;
};

/* Raises at least `count` interrupts and records them to `path`, which is borrowed. Fails the test
 * on an error. */
void irq_scene_make(struct irq_scene *s, const char *path, uint32_t count);
void irq_scene_free(struct irq_scene *s);
/* Returns the run of the handler of an interrupt. */
const struct irq_guest_entry *irq_scene_run(const struct irq_scene *s, const struct irq_raised *r);
/* Converts a guest's stamp to host TSC, by the TSC offset that KVM reports. */
uint64_t irq_scene_host_tsc(const struct irq_scene *s, uint32_t vcpu, uint64_t guest);

#endif
