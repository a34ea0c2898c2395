/* SPDX-License-Identifier: GPL-2.0-only */
/* Builds the sentences about pairs that the daemon watches (analyze/event/pair_watch.h). They are
 * unescaped: keys and names of events come from guests. */
#ifndef VIEW_PAIR_TEXT_H
#define VIEW_PAIR_TEXT_H

#include "host-collector/analyze/event/pair_watch.h"

/* Write a sentence and return `out`. Longer sentences are cut. The first says that a pair took at
 * least the duration of its definition, the second why a pair is not counted. */
const char *pair_over_text(const struct pair_definition *d, const struct pair *pair, char *out,
			   size_t out_bytes);
const char *pair_uncounted_text(const struct pair_definition *d, const struct pair_unknown *why,
				char *out, size_t out_bytes);

#endif
