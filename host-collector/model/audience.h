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
		const struct model_observer *o_ = (audiences)->callback.observers;                 \
		for (size_t n_ = (audiences)->callback.n; n_; n_--, o_++)                          \
			o_->callback(o_->context, __VA_ARGS__);                                    \
	} while (0)

#endif
