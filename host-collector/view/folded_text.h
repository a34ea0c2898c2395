/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads and writes folded text, one line for each stack: `root;...;leaf WEIGHT`, the format of
 * flamegraph.pl, inferno and speedscope. Weights are whole microseconds. A kernel frame ends in
 * `_[k]`; a frame of a waker's stack ends in `_[w]`, kernel or not.
 */
#ifndef VIEW_FOLDED_TEXT_H
#define VIEW_FOLDED_TEXT_H

#include <stdio.h>

#include "host-collector/analyze/flame/folded.h"

/* Writes the stacks in the order of the set. Adds the rest of each rounding to later lines, so
 * that the sum of the lines is the total, rounded down to a microsecond. Leaves out stacks whose
 * weight rounds to 0. Returns 0 or -errno. */
int folded_text_write(struct folded *f, FILE *to);

/*
 * Adds the lines of `from` to `out`. Weights may have a fraction. A line may have two weights,
 * before and after a change (difffolded.pl). Then `before` gets the first one, unless `before` is
 * NULL.
 *
 * The text does not contain a frame's kind. The root becomes a task; `[...]` and `running` become
 * annotations. In a stack with a frame `[vCPU ...]` or `running`, the frames before it belong to
 * the guest and those after it to the host. In any other stack, all frames belong to the host.
 *
 * Returns 0, -EBADMSG (line number *line is the first that is not folded text), -E2BIG (a line of
 * more than 1 MiB), -ENOMEM or another error of reading.
 */
int folded_text_read(FILE *from, struct folded *out, struct folded *before, size_t *line);

#endif
