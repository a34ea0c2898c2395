/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Folded text, a line for each stack: `root;...;leaf WEIGHT`, as flamegraph.pl, inferno and
 * speedscope read it. Weights are whole microseconds. A kernel's frame ends in `_[k]`, one of a
 * waker's stack in `_[w]`, whether kernel or not.
 */
#ifndef VIEW_FOLDED_TEXT_H
#define VIEW_FOLDED_TEXT_H

#include <stdio.h>

#include "host-collector/analyze/flame/folded.h"

/* In the set's order. What rounding takes from one line is given to a later one: the sum of the
 * lines is the total, cut to a microsecond. Stacks that come to less have no line. 0 or -errno. */
int folded_text_write(struct folded *f, FILE *to);

/*
 * Adds the lines of `from` to `out`. Weights may have a fraction. A line may have two, as before
 * and after a change (difffolded.pl): then `before` gets the first, unless it is NULL.
 *
 * The text does not hold a frame's kind. The root is a task, `[...]` and `running` annotations; of
 * a stack with a frame `[vCPU ...]` or `running`, what stands before that is the guest's and what
 * stands behind it the host's; of any other stack all is the host's.
 *
 * 0, -EBADMSG (*line is the first that is no folded text), -E2BIG (a line of more than 1 MiB),
 * -ENOMEM or another error of reading.
 */
int folded_text_read(FILE *from, struct folded *out, struct folded *before, size_t *line);

#endif
