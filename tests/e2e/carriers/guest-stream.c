/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints the decoded guest side of a recording: a line for each batch, event and message, in their
 * order. Leaves out the messages that belong to a session: HELLO and round trips.
 *
 *   guest-stream FILE
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/e2e/recording_entries.h"

static int batch_print(void *context, uint32_t source, const struct batch *b)
{
	(void)context;
	if (source == VS_SOURCE_HOST)
		return 0;
	printf("batch %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", b->cpu,
	       b->time_err, b->watermark, b->emitted, b->dropped_kernel, b->dropped_user);
	for (size_t i = 0; i < b->n_events; i++) {
		const struct vs_event *e = &b->events[i];

		printf("%" PRIu64 " %" PRIu32 " %u %u %d %d %" PRIx64 " %" PRIx64 "\n", e->time,
		       e->seq, e->cpu, e->type, e->pid, e->pid2, e->arg0, e->arg1);
	}
	return 0;
}

static int message_print(void *context, uint32_t source, uint8_t kind, const uint8_t *payload,
			 size_t len)
{
	(void)context;
	if (source == VS_SOURCE_HOST || (kind != FRAME_HEARTBEAT && kind != FRAME_CLOCK_SAMPLE &&
					 kind != FRAME_KERNEL_LOG && kind != FRAME_GUEST_STACK))
		return 0;
	printf("message %u ", kind);
	for (size_t i = 0; i < len; i++)
		printf("%02x", payload[i]);
	printf("\n");
	return 0;
}

int main(int argc, char **argv)
{
	const struct recording_visitor visitor = {.batch = batch_print, .message = message_print};

	return recording_visit_argument(argc, argv, &visitor);
}
