/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/engine/internal.h"

/*
 * The agent writes its counters into a batch before the batch waits in its queue. If the queue
 * then drops older batches, their events at first look lost on the channel. Only a later batch
 * shows that the agent dropped them: then losses_correct() corrects the counts.
 */
void stream_lost(struct stream *s, int64_t begin_ns, int64_t end_ns)
{
	const struct continuity *now = &s->continuity;
	struct loss_counts *noted = &s->noted;
	uint64_t user = now->dropped_user - noted->user;
	int64_t channel = continuity_lost(now) - (int64_t)noted->channel;
	struct loss_span span = {.begin = {begin_ns != INT64_MIN ? begin_ns : end_ns},
				 .end = {end_ns}};

	if (channel < 0) {
		const uint64_t over = (uint64_t)-channel;
		const uint64_t reported =
			losses_correct(&s->losses, user < over ? user : over, LOSS_BY_USER);

		noted->user += reported;
		noted->channel -= reported;
		noted->channel -= losses_correct(&s->losses, over - reported, LOSS_NONE);
		user -= reported;
	}
	if (end_ns == INT64_MIN)
		return; /* with the next batch that has a place on the timeline */
	span.counts = (struct loss_counts){.kernel = now->dropped_kernel - noted->kernel,
					   .user = user,
					   .channel = channel > 0 ? (uint64_t)channel : 0};
	if (!span.counts.kernel && !span.counts.user && !span.counts.channel)
		return;
	noted->kernel += span.counts.kernel;
	noted->user += span.counts.user;
	noted->channel += span.counts.channel;
	losses_add(&s->losses, &span);
}
