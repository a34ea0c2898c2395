/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A model's events on their way from the thread that reads a recording to the one that works on
 * what it says, so that both go on at once. The reader pushes; the taker runs the model, and with
 * it all its observers.
 *
 * The model is the taker's, but between handover_settle() and the reader's next push it is the
 * reader's: all that was pushed has been taken, and the taker waits. So the model is told
 * everything in the order in which one thread alone would tell it. What is on its way is bounded
 * (about 1 MiB): a reader that is ahead waits.
 */
#ifndef ENGINE_HANDOVER_H
#define ENGINE_HANDOVER_H

#include "host-collector/model/model.h"

struct handover;

struct handover *handover_new(struct model *m); /* borrowed; NULL on ENOMEM */
/* Once neither thread uses it. NULL is allowed. */
void handover_free(struct handover *h);

/* The reader's: model_push and model_advance, later. */
void handover_push(struct handover *h, const struct timeline_event *event);
void handover_advance(struct handover *h, struct host_ns now);
/* Until all that was pushed has been taken. */
void handover_settle(struct handover *h);
/* Settles; nothing more follows. 0, or -ENOMEM if the model was out of memory for something. */
int handover_end(struct handover *h);

/* The taker's: until the end. */
void handover_take(struct handover *h);

#endif
