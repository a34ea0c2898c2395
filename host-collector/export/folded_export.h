/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes a recording as folded stacks, like `vcpuscope flame --kind wall`: all time of each guest
 * task with what its vCPU did at that time, or of the vCPU threads if the recording has no guest.
 */
#ifndef EXPORT_FOLDED_EXPORT_H
#define EXPORT_FOLDED_EXPORT_H

#include <stdio.h>

#include "host-collector/model/narrow.h"

struct folded_export;

/* Subscribes to the model. The caller must not feed the model after folded_export_free(). `out`
 * and `narrow` are borrowed. Returns NULL on ENOMEM. */
struct folded_export *folded_export_new(struct model *m, const struct narrow *narrow, FILE *out);
void folded_export_free(struct folded_export *x);
/* Writes the stacks; call it after model_finish(). Returns 0 or -errno. */
int folded_export_finish(struct folded_export *x);

#endif
