/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/audience.h"

#include <errno.h>
#include <stdlib.h>

/* Room for one more. 0 or -ENOMEM. */
static int audience_grow(struct audience *a)
{
	struct model_observer *bigger = realloc(a->observers, (a->n + 1) * sizeof(*bigger));

	if (!bigger)
		return -ENOMEM;
	a->observers = bigger;
	return 0;
}

int audiences_add(struct audiences *a, const struct model_observer *observer)
{
	int err = 0;

#define X(what)                                                                                    \
	if (!err && observer->what)                                                                \
		err = audience_grow(&a->what);
	MODEL_CALLBACKS(X)
#undef X
	if (err)
		return err;
#define X(what)                                                                                    \
	if (observer->what)                                                                        \
		a->what.observers[a->what.n++] = *observer;
	MODEL_CALLBACKS(X)
#undef X
	return 0;
}

void audiences_fini(struct audiences *a)
{
#define X(what) free(a->what.observers);
	MODEL_CALLBACKS(X)
#undef X
	*a = (struct audiences){0};
}
