/* SPDX-License-Identifier: GPL-2.0-only */
/* Inspects an expression for the two compilers of filters (event_filter.h, kernel_filter.h). */
#ifndef CHOSEN_FILTER_PARTS_H
#define CHOSEN_FILTER_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/query/expr.h"

/* Returns whether `node` of `e` depends on a field; otherwise it is a constant. */
bool filter_has_field(const struct expr *e, const struct expr_node *node);
/* Returns the value of a constant number. */
uint64_t filter_constant(const struct expr *e, const struct expr_node *node);
/* Finds the constant side and the other side of a binary operation. *op: on entry the operation of
 * `node`. If the constant stands first, *op becomes the same comparison with the sides exchanged (3
 * < f becomes f > 3). Returns false if both sides depend on a field. The nodes are borrowed from
 * `e`. */
bool filter_sides(const struct expr *e, const struct expr_node *node, uint8_t *op,
		  const struct expr_node **field, const struct expr_node **constant);

#endif
