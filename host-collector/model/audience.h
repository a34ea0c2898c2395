/* SPDX-License-Identifier: GPL-2.0-only */
/* Lists of observers, one for each callback of struct model_observer. */
#ifndef MODEL_AUDIENCE_H
#define MODEL_AUDIENCE_H

#include "host-collector/model/model.h"

/* The observers that have one of the callbacks, in the order in which they were added. */
struct audience {
	size_t n;
	struct model_observer *observers;
};

#define MODEL_CALLBACKS(X)                                                                         \
	X(vcpu_span)                                                                               \
	X(guest_span)                                                                              \
	X(guest_instant)                                                                           \
	X(guest_interrupt)                                                                         \
	X(host_instant)                                                                            \
	X(guest_steal)                                                                             \
	X(guest_clock)                                                                             \
	X(exits_counted)                                                                           \
	X(advance)

struct audiences {
#define X(callback) struct audience callback;
	MODEL_CALLBACKS(X)
#undef X
};

/* Adds a copy of the observer. Returns 0 or -ENOMEM. */
int audiences_add(struct audiences *a, const struct model_observer *observer);
void audiences_fini(struct audiences *a);

#define EMIT(audiences, callback, ...)                                                             \
	do {                                                                                       \
		const struct audience *a_ = &(audiences)->callback;                                \
		for (size_t i_ = 0; i_ < a_->n; i_++)                                              \
			a_->observers[i_].callback(a_->observers[i_].context, __VA_ARGS__);        \
	} while (0)

#endif
