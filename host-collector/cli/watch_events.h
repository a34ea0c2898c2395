/* SPDX-License-Identifier: GPL-2.0-only */
/* `watch -e`: prints the hits of chosen events of both sides as they happen, a line each. */
#ifndef CLI_WATCH_EVENTS_H
#define CLI_WATCH_EVENTS_H

#include <stdbool.h>
#include <stdio.h>

#include "host-collector/cli/event_options.h"
#include "host-collector/model/model.h"

struct watch_events;

/* Subscribes to the model. json: one object for each hit instead of text. hidden: events whose hits
 * are not printed; borrowed, may be filled in until the first hit. Returns NULL on ENOMEM. */
struct watch_events *watch_events_new(struct model *m, bool json, const struct event_texts *hidden,
				      FILE *out);
void watch_events_free(struct watch_events *w); /* NULL is allowed */
/* Prints the hits that still wait for records. Call it after the last event. */
void watch_events_finish(struct watch_events *w);
/* Returns the number of hits since the last call. */
uint64_t watch_events_printed(struct watch_events *w);

#endif
