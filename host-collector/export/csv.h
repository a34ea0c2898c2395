/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes a recording's spans as CSV, one line each, in the order of their ends: the states of vCPUs
 * (`vcpu`), the states of guest CPUs as the guest's kernel reports them (`guest_cpu`), and
 * interrupts and softirqs from entry to exit (`interrupt`). docs/export.md describes the columns.
 */
#ifndef EXPORT_CSV_H
#define EXPORT_CSV_H

#include <stdio.h>

#include "host-collector/model/narrow.h"

struct csv_export;

/* Subscribes to the model. The caller must not feed the model after csv_export_free(). `out` and
 * `narrow` are borrowed. Returns NULL on ENOMEM. */
struct csv_export *csv_export_new(struct model *m, const struct narrow *narrow, FILE *out);
void csv_export_free(struct csv_export *x);
/* Ends the export; call it after model_finish(). Returns 0, or -errno of the file. */
int csv_export_finish(struct csv_export *x);

#endif
