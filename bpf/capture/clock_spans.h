/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps the spans between the newest clock samples, for stamps that are older than the newest span.
 * A span does not change after the first stamp was converted with it. So equal stamps of two CPUs
 * get the same time, and times have the order of their stamps, even if a sample is inexact. */
#ifndef CAPTURE_CLOCK_SPANS_H
#define CAPTURE_CLOCK_SPANS_H

#include "clock/sample.h"

enum { CLOCK_SPANS = 64 };

struct clock_spans {
	struct capture_clock clock;              /* up to the newest sample */
	struct capture_clock spans[CLOCK_SPANS]; /* state of `clock` when each span was new */
	size_t n; /* number of spans so far; the newest CLOCK_SPANS are kept */
};

/* Begins with one sample. Owns no memory. */
void clock_spans_init(struct clock_spans *s, const struct clock_sample *first);
/* Like capture_clock_push() and capture_clock_extend(). */
void clock_spans_push(struct clock_spans *s, const struct clock_sample *sample);
void clock_spans_extend(struct clock_spans *s, const struct clock_sample *sample);
/* Returns the span that contains a time of CLOCK_MONOTONIC, or the nearest that is kept. Borrowed
 * until the next sample. */
const struct capture_clock *clock_spans_at(const struct clock_spans *s, uint64_t monotonic_ns);

#endif
