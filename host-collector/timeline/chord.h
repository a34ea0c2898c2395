/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Corrects the times of guest events in a drain during which the VMM paused the VM.
 *
 * A pause stops the clock that stamps a guest's events, but not the guest's TSC. The agent samples
 * both clocks before and after each drain and converts stamps with a straight line between the two
 * samples (clock/capture.h), the chord. If the VM was paused between the samples, this line spreads
 * the events over the pause. Each batch names the two samples (chord_begin, chord_end). If the
 * pause is known exactly, chord_straighten() moves each stamp back to the side of the pause on
 * which the event happened.
 */
#ifndef TIMELINE_CHORD_H
#define TIMELINE_CHORD_H

#include <stdbool.h>

#include "host-collector/timeline/vm_clock.h"
#include "proto/codec.h"

/* Corrects the stamps of a batch and reduces its time_err. Returns false and changes nothing in
 * these cases: the pause is not between the two samples; the pause contradicts the batch's
 * time_err; a stamp may be on either side of the pause; the pause is less than 4 times as long as
 * the rest of the drain. In the last case, the clock may have been set back instead, while events
 * continued. */
bool chord_straighten(struct batch *b, const struct vm_clock_pause *pause);

#endif
