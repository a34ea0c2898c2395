/* SPDX-License-Identifier: GPL-2.0-only */
/* What the analyses behind `report TABLE` have in common: how finely they keep their items. */
#ifndef TABLES_FIGURES_OPTIONS_H
#define TABLES_FIGURES_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* NULL wherever it is asked for is all zero: one item for each VM, of any length. */
struct figures_options {
	bool per_vcpu;   /* an item for each vCPU (guest CPU), too */
	bool per_pcpu;   /* an item for each pCPU, too */
	int64_t than_ns; /* what took less does not count */
};

#endif
