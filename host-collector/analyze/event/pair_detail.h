/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Collects the events between and around the two events of each pair that is shown. It needs a
 * second reading of the recording, so that the first reading does not have to keep events.
 */
#ifndef EVENT_PAIR_DETAIL_H
#define EVENT_PAIR_DETAIL_H

#include "host-collector/analyze/event/pairs.h"

enum { PAIR_DETAIL_LINES_MAX = 4096 }; /* of one pair */

struct pair_detail_options {
	int64_t before_ns, after_ns; /* how long before and after the pair events are shown */
	/* Hides an event if both the previous and the next one are nearer than this. */
	int64_t hide_ns;
	/* Shows only events with the same vCPU, CPU, task or key as an event of the pair. */
	bool same_vcpu, same_cpu, same_task, same_key;
};

/* Parses "-1ms,+1ms,hide<1ms,samevcpu,samecpu,sametask,samekey", in any order. Returns 0, or
 * -EINVAL with one line in `why`. */
int pair_detail_parse(const char *text, struct pair_detail_options *out, char *why,
		      size_t why_bytes);

struct pair_detail;

struct pair_detail_line {
	struct host_ns t;
	char *text; /* as in event_text_write(), with times since the pair's begin */
	size_t choice;
};

/* Subscribes to the model of a second reading. `pairs` has been finished. All are borrowed.
 * Returns NULL on ENOMEM. */
struct pair_detail *pair_detail_new(struct model *m, const struct event_choices *choices,
				    const struct pairs *pairs,
				    const struct pair_detail_options *options);
void pair_detail_free(struct pair_detail *d); /* NULL is allowed */
/* Hides the events that hide_ns selects. Returns 0, or -ENOMEM, also if a line could not be
 * kept. */
int pair_detail_finish(struct pair_detail *d);
/* Returns line i of the pair with number `pair`, in time order; NULL past the last. */
const struct pair_detail_line *pair_detail_get(const struct pair_detail *d, size_t pair, size_t i);
/* Returns the number of the pair's events that were not kept, or are hidden. */
uint64_t pair_detail_hidden(const struct pair_detail *d, size_t pair);

#endif
