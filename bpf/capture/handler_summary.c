/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/capture/handler_summary.h"

#include <stdbool.h>

#include "proto/event_fields.h"

enum { NESTED_MAX = 16 }; /* deeper than any kernel nests */

static const struct rule {
	uint16_t exit; /* 0: no handler's entry */
	uint16_t class;
} rules[VS_EVENT_TYPE_LIMIT] = {
	[VS_EVENT_IRQ_ENTRY] = {VS_EVENT_IRQ_EXIT, EVENT_CLASS_IRQS},
	[VS_EVENT_SOFTIRQ_ENTRY] = {VS_EVENT_SOFTIRQ_EXIT, EVENT_CLASS_SOFTIRQS},
	[VS_EVENT_VECTOR_ENTRY] = {VS_EVENT_VECTOR_EXIT, EVENT_CLASS_VECTORS},
};

static bool may_be_aggregated(const struct vs_event *e)
{
	return e->type < VS_EVENT_TYPE_LIMIT && rules[e->type].exit &&
	       (e->type != VS_EVENT_VECTOR_ENTRY ||
		ev_vector_entry_number(e) == VS_VECTOR_RESCHEDULE);
}

static void count(struct handler_summary *s, struct vs_event *entry, struct vs_event *exit,
		  uint64_t ns)
{
	struct message_aggregated *u = &s->aggregated[rules[entry->type].class];

	u->count++;
	u->total_ns += ns;
	if (ns > u->max_ns)
		u->max_ns = ns;
	entry->type = exit->type = VS_EVENT_NONE;
}

void handler_summary_mark(struct handler_summary *s, struct vs_event *events, size_t n)
{
	struct vs_event *open[NESTED_MAX]; /* entries after which no other event was emitted */
	size_t n_open = 0;

	for (size_t i = 0; i < n && s->over_ns; i++) {
		struct vs_event *e = &events[i], *entry;

		/* The lost events may have been of any kind. */
		if (i && e->seq != events[i - 1].seq + 1)
			n_open = 0;
		entry = n_open ? open[n_open - 1] : NULL;
		if (entry && e->type == rules[entry->type].exit &&
		    ev_handler_number(e) == ev_handler_number(entry)) {
			const uint64_t ns = e->time > entry->time ? e->time - entry->time : 0;

			if (ns < s->over_ns) {
				count(s, entry, e, ns);
				n_open--;
				continue;
			}
		}
		if (!may_be_aggregated(e) || n_open == NESTED_MAX)
			n_open = 0;
		else
			open[n_open++] = e;
	}
}
