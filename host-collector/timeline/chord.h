/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A VMM's pause stops the clock that stamps a guest's events, not its TSC. The agent, which samples
 * both at every drain, maps the stamps in between by a straight line (clock/capture.h), so it
 * spreads those of the drain that spans a pause over the pause. It tells between which two samples
 * (batch.chord_begin, chord_end). Where the pause is known exactly, every stamp goes back to the
 * side where it belongs.
 */
#ifndef TIMELINE_CHORD_H
#define TIMELINE_CHORD_H

#include <stdbool.h>

#include "host-collector/timeline/vm_clock.h"
#include "proto/codec.h"

/* Puts the batch's stamps right and narrows its time_err. false, and nothing is changed, if the
 * batch contradicts the pause, or some stamp may lie on either side, or the pause is not much
 * longer than the rest of the drain: then the clock may have been set back instead, while events
 * went on. */
bool chord_straighten(struct batch *b, const struct vm_clock_pause *pause);

#endif
