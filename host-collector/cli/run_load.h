/* SPDX-License-Identifier: GPL-2.0-only */
/* Loads runs to compare, from recordings and summaries files. */
#ifndef CLI_RUN_LOAD_H
#define CLI_RUN_LOAD_H

#include "proto/program/options.h"
#include "host-collector/compare/run_summary.h"

/* Adds the runs of all files to `set`, in the order of the files. Returns 0, or -errno with one
 * line in `why`. */
int runs_load(struct run_set *set, const struct option_list *paths, char *why, size_t why_bytes);

#endif
