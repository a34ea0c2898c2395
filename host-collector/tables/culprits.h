/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table `culprits`: who held the pCPUs for which vCPUs waited (tables/run_delay.h), by task,
 * process or cgroup of the host. Names, processes and cgroups are those at the end of the time that
 * the table covers.
 */
#ifndef TABLES_CULPRITS_H
#define TABLES_CULPRITS_H

#include "host-collector/tables/figures.h"
#include "host-collector/tables/run_delay.h"

enum { CULPRIT_COLUMNS = 10 };
extern const struct figures_column culprit_columns[CULPRIT_COLUMNS];
/* Fills the table from a struct run_delay; see struct figures_kind. */
int culprits_fill(void *analysis, const struct figures_view *view, struct table *t);

#endif
