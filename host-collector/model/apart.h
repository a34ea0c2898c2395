/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Observers that are told by a thread of their own: what the model tells is copied, a few thousand
 * of it at most, and told again there, in the same order. For observers that ask the model nothing
 * but how its VMs are made (model_observe_apart).
 */
#ifndef MODEL_APART_H
#define MODEL_APART_H

#include "host-collector/model/audience.h"

struct apart;

/* 0 and *out, -ENOMEM, -EAGAIN (no thread to be had). */
int apart_new(struct apart **out);
/* Once all has been told; ends the thread. NULL is allowed. */
void apart_free(struct apart *a);
/* Adds an observer; *from: what the model has to tell from now on for its sake. 0 or -ENOMEM. */
int apart_observe(struct apart *a, const struct model_observer *observer,
		  struct model_observer *from);
/* Until all has been told: the thread waits for more. */
void apart_await(struct apart *a);
/* Until all has been told; from then on, until apart_resume(), the thread waits and the observers
 * are told at once. */
void apart_pause(struct apart *a);
void apart_resume(struct apart *a);

#endif
