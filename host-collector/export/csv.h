/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A recording's spans as CSV, one line each, in the order in which they end: what every vCPU did
 * (`vcpu`), what every guest CPU did by its own kernel's account (`guest_cpu`), and every interrupt
 * and softirq from entry to exit (`interrupt`). docs/export.md has the columns.
 */
#ifndef EXPORT_CSV_H
#define EXPORT_CSV_H

#include <stdio.h>

#include "host-collector/model/model.h"

struct csv_export;

/* Subscribes to the model, which must not be fed any more once this is freed. NULL on ENOMEM. */
struct csv_export *csv_export_new(struct model *m, FILE *out);
void csv_export_free(struct csv_export *x);
/* After model_finish. 0 or -errno of the file. */
int csv_export_finish(struct csv_export *x);

#endif
