/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Passes the spans and events within a window of time to observers (model_observe_within). Spans
 * and interrupts are cut to the window. Single events are passed on from the begin of the recording
 * to the end of the window, so that an analysis knows what is in progress when the window begins.
 * At that time `opened` makes the analysis forget what it has counted. So an item that consists of
 * several events counts if it ends inside the window.
 */
#ifndef MODEL_WINDOW_H
#define MODEL_WINDOW_H

#include "host-collector/model/audience.h"
#include "host-collector/model/narrow.h"

struct window {
	struct narrow time;           /* only from and until */
	void (*opened)(void *opener); /* NULL: none */
	void *opener;
	bool open, over;
	struct audiences audiences;
	struct window *next; /* the model's list */
};

/* Adds an observer. *through: the observer to add to the model in its place; it may have no
 * callback. Returns 0 or -ENOMEM. */
int window_observe(struct window *w, const struct model_observer *observer,
		   struct model_observer *through);
void window_free(struct window *w); /* accepts NULL; does not free `next` */

#endif
