/* SPDX-License-Identifier: GPL-2.0-only */
/* Who is told what: for each callback of struct model_observer those that have it. */
#ifndef MODEL_AUDIENCE_H
#define MODEL_AUDIENCE_H

#include "host-collector/model/model.h"

/* The observers that have one of the callbacks, in the order of their addition. */
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

/* Copied. 0 or -ENOMEM. */
int audiences_add(struct audiences *a, const struct model_observer *observer);
void audiences_fini(struct audiences *a);

#define TELL(audiences, callback, ...)                                                             \
	do {                                                                                       \
		const struct audience *a_ = &(audiences)->callback;                                \
		for (size_t i_ = 0; i_ < a_->n; i_++)                                              \
			a_->observers[i_].callback(a_->observers[i_].context, __VA_ARGS__);        \
	} while (0)

#endif
