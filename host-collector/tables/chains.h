/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tables `chains`, `delays`, `slowest` and `overdue`: interrupts from their source to their
 * handler. The analysis is analyze/chain/chain.h.
 */
#ifndef TABLES_CHAINS_H
#define TABLES_CHAINS_H

#include "host-collector/analyze/chain/chain.h"
#include "host-collector/tables/analysis.h"

/* Its instances are struct chains. Without per_vcpu, chains of all vCPUs of a VM are merged. */
extern const struct analysis chains_analysis;

#endif
