/* SPDX-License-Identifier: GPL-2.0-only */
/* Options that the analyses of `report TABLE` share: how they split and filter their items. */
#ifndef TABLES_FIGURES_OPTIONS_H
#define TABLES_FIGURES_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* A NULL pointer to it means all zero: one item for each VM, of any length. */
struct figures_options {
	bool per_vcpu;   /* one item for each vCPU or guest CPU */
	bool per_pcpu;   /* one item for each pCPU */
	int64_t than_ns; /* shortest length that counts */
};

#endif
