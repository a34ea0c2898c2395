/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs observers on a worker thread. The model's callbacks are copied into a queue of a few
 * thousand entries and called on the worker thread in the same order. Only exits_counted runs on
 * the caller's thread, when the queue is empty. Such observers ask the model only for its VMs'
 * vCPUs, guest CPUs and threads (model_observe_on_worker).
 */
#ifndef MODEL_WORKER_H
#define MODEL_WORKER_H

#include "host-collector/model/audience.h"

struct worker;

/* Creates the worker thread. Returns 0 and *out, -ENOMEM, or -EAGAIN if no thread can be created.
 */
int worker_new(struct worker **out);
/* Waits until all callbacks have run, then ends the thread. Accepts NULL. */
void worker_free(struct worker *a);
/* Adds an observer. Sets *from to the callbacks that the model must call from now on for it.
 * Returns 0 or -ENOMEM. */
int worker_observe(struct worker *a, const struct model_observer *observer,
		   struct model_observer *from);
/* Return the types of instants that the observers request, if one observes them. Borrowed. */
const struct event_set *worker_host_types(const struct worker *a);
const struct event_set *worker_guest_types(const struct worker *a);
/* Waits until all queued callbacks have run. */
void worker_await(struct worker *a);
/* Waits until all queued callbacks have run. Until worker_resume(), callbacks then run on the
 * caller's thread at once. */
void worker_pause(struct worker *a);
void worker_resume(struct worker *a);

#endif
