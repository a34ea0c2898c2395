/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs observers on a worker thread. The model's callbacks are copied into a queue of a few
 * thousand entries and called on the worker thread in the same order. Only exits_counted runs on
 * the caller's thread, when the queue is empty. Such observers ask the model only for its VMs'
 * vCPUs, guest CPUs and threads (model_observe_apart).
 */
#ifndef MODEL_APART_H
#define MODEL_APART_H

#include "host-collector/model/audience.h"

struct apart;

/* Creates the worker thread. Returns 0 and *out, -ENOMEM, or -EAGAIN if no thread can be created.
 */
int apart_new(struct apart **out);
/* Waits until all callbacks have run, then ends the thread. Accepts NULL. */
void apart_free(struct apart *a);
/* Adds an observer. Sets *from to the callbacks that the model must call from now on for it.
 * Returns 0 or -ENOMEM. */
int apart_observe(struct apart *a, const struct model_observer *observer,
		  struct model_observer *from);
/* Waits until all queued callbacks have run. */
void apart_await(struct apart *a);
/* Waits until all queued callbacks have run. Until apart_resume(), callbacks then run on the
 * caller's thread at once. */
void apart_pause(struct apart *a);
void apart_resume(struct apart *a);

#endif
