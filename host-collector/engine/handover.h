/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Passes a model's events from the reader, the thread that reads a recording, to the taker, the
 * thread that runs the model and its observers. So both work in parallel.
 *
 * The model belongs to the taker. Only from the return of handover_settle() to the reader's next
 * push may the reader use it: the taker has then processed everything and waits. So the model gets
 * all input in the same order as with one thread. Memory is bounded (about 1 MiB): a reader that is
 * ahead waits.
 */
#ifndef ENGINE_HANDOVER_H
#define ENGINE_HANDOVER_H

#include "host-collector/model/model.h"

struct handover;

struct handover *handover_new(struct model *m); /* `m` is borrowed; NULL on ENOMEM */
/* Call it when neither thread uses `h` any more. Accepts NULL. */
void handover_free(struct handover *h);

/* Input of the model other than events. There is much of it, so the reader does not wait until the
 * model has it. */
struct handover_fact {
	enum handover_kind {
		HANDOVER_ADVANCE,  /* model_advance() */
		HANDOVER_STEAL,    /* model_guest_steal() */
		HANDOVER_CLOCK,    /* model_guest_clock() */
		HANDOVER_WATCHDOG, /* model_guest_watchdog() */
	} kind;
	union {
		struct host_ns now;
		struct guest_steal steal;
		struct guest_clock_reading clock;
		struct {
			uint32_t vm, seconds;
		} watchdog;
	};
};

/* Gives a fact to the model. Returns 0, or -errno of the model's function. */
int handover_fact_give(struct model *m, const struct handover_fact *fact);

/* The reader calls these instead of model_push() and handover_fact_give(). */
void handover_push(struct handover *h, const struct timeline_event *events, size_t n);
/* An error is ignored: it concerns a VM that the model does not know. */
void handover_fact(struct handover *h, const struct handover_fact *fact);
/* Waits until the taker has processed everything that was pushed. */
void handover_settle(struct handover *h);
/* Settles, and declares that nothing more follows. Returns 0, or -ENOMEM if the model returned
 * that. */
int handover_end(struct handover *h);

/* The taker calls this. Runs the model until handover_end(). */
void handover_take(struct handover *h);

#endif
