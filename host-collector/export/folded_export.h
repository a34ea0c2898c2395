/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A recording as folded stacks, as `vcpuscope flame --kind wall` has them: all time of every guest
 * task, through the boundary; of the vCPUs' threads if it has no guest.
 */
#ifndef EXPORT_FOLDED_EXPORT_H
#define EXPORT_FOLDED_EXPORT_H

#include <stdio.h>

#include "host-collector/model/model.h"

struct folded_export;

/* Subscribes to the model, which must not be fed any more once this is freed. NULL on ENOMEM. */
struct folded_export *folded_export_new(struct model *m, FILE *out);
void folded_export_free(struct folded_export *x);
/* After model_finish. 0 or -errno. */
int folded_export_finish(struct folded_export *x);

#endif
