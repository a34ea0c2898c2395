/* SPDX-License-Identifier: GPL-2.0-only */
/* Compares the chains that the analysis finds in a scene's recording with the true interrupts. */
#ifndef MICROGUEST_IRQ_CHAINS_H
#define MICROGUEST_IRQ_CHAINS_H

#include "irq_scene.h"

/* Prints the number of chains of each kind. Fails the test if a run of a handler does not have
 * exactly one chain. Fails it if a chain has no run, a wrong source, or times that contradict the
 * stamps of the guest and the VMM. */
void irq_chains_check(const struct irq_scene *s);

#endif
