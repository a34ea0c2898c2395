/* SPDX-License-Identifier: GPL-2.0-only */
/* vcpuscope report RUN.vcs TABLE: figures of a whole recording instead of its incidents. */
#ifndef CLI_REPORT_TABLES_H
#define CLI_REPORT_TABLES_H

#include <stdint.h>
#include <stdio.h>

#include "host-collector/timeline/pipeline.h"

/* Is there a table of this name? */
int report_table_known(const char *name);

struct report_table;

/* Subscribes to the model before the recording is played through it. NULL on ENOMEM. */
struct report_table *report_table_new(struct model *m, const char *name);
void report_table_free(struct report_table *t);
/* After the recording: at most `top` rows (0: all), format "text", "json" or "csv". 0 or -errno. */
int report_table_write(struct report_table *t, const struct model *m, const char *format,
		       uint64_t top, FILE *out);

#endif
