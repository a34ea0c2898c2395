/* SPDX-License-Identifier: GPL-2.0-only */
/* What the two compilers of filters (event_filter.h, kernel_filter.h) ask of an expression. */
#ifndef CHOSEN_FILTER_PARTS_H
#define CHOSEN_FILTER_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/query/expr.h"

/* Returns whether `node` of `e` depends on a field; otherwise it is a constant. */
bool filter_has_field(const struct expr *e, const struct expr_node *node);
/* Returns the value of a constant number. */
uint64_t filter_constant(const struct expr *e, const struct expr_node *node);
/* Returns the comparison whose operands are swapped: 3 < f is f > 3. */
uint8_t filter_turned(uint8_t op);

#endif
