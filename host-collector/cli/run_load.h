/* SPDX-License-Identifier: GPL-2.0-only */
/* Loads runs to compare, from recordings and summaries files. */
#ifndef CLI_RUN_LOAD_H
#define CLI_RUN_LOAD_H

#include "host-collector/cli/pair_figures.h"
#include "host-collector/compare/run_summary.h"
#include "proto/program/options.h"

/* Adds the runs of all files to `set`, in the order of the files, with the figures of `pairs`. A
 * summaries file contains only the figures with which it was written; a line on standard error
 * names the missing ones. Returns 0, or -errno with one line in `why`. */
int runs_load(struct run_set *set, const struct option_list *paths,
	      const struct pair_figure_list *pairs, char *why, size_t why_bytes);

#endif
