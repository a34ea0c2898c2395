/* SPDX-License-Identifier: GPL-2.0-only */
/* Shows the stalls of a report in a Perfetto trace: one track for each VM, with a row for each of
 * its guest CPUs. A slice has the name of the verdict; its arguments hold what the report says
 * about the stall. */
#ifndef EXPORT_STALL_ROWS_H
#define EXPORT_STALL_ROWS_H

#include "host-collector/engine/pipeline.h"
#include "host-collector/export/boottime.h"
#include "host-collector/export/trace_file.h"
#include "host-collector/model/narrow.h"

struct stall_rows;

/* Subscribes to the model, with the report's default threshold. *pipeline feeds the model.
 * All pointers are borrowed. Returns NULL on ENOMEM. */
struct stall_rows *stall_rows_new(struct model *m, const struct pipeline *const *pipeline);
void stall_rows_free(struct stall_rows *x);
/* Returns the interrupt chains that the verdicts use. Borrowed. stall_rows_finish() finishes them.
 */
struct chains *stall_rows_chains(const struct stall_rows *x);
/* Judges the stalls; call it once, after model_finish(). Returns 0 or -ENOMEM. */
int stall_rows_finish(struct stall_rows *x);
/* Writes the stalls, cut to the window of `narrow`. Only after stall_rows_finish(). */
void stall_rows_write(const struct stall_rows *x, const struct narrow *narrow, struct trace_file *f,
		      struct boottime *boottime);

#endif
