/* SPDX-License-Identifier: GPL-2.0-only */
/* The chains that the analysis makes of a scene's recording, against the truth. */
#ifndef MICROGUEST_IRQ_CHAINS_H
#define MICROGUEST_IRQ_CHAINS_H

#include "irq_scene.h"

/* Prints what it found of each kind. Fails the test where a run of a handler has no chain or two,
 * where a chain has no run, another source, or times that the guest's stamps and the VMM's deny. */
void irq_chains_check(const struct irq_scene *s);

#endif
