/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints the host's events of a recording, one per line, for tests that compare them with those of
 * another tracer: time (TSC), its error, type, CPU, pid, pid2, arg0, arg1. The first line is the
 * frequency of the TSC.
 *
 *   vcs-events FILE
 */
#include <inttypes.h>
#include <stdio.h>

#include "proto/message.h"
#include "tests/e2e/recording_entries.h"

static int batch_print(void *context, uint32_t source, const struct batch *b)
{
	(void)context;
	for (size_t i = 0; source == VS_SOURCE_HOST && i < b->n_events; i++) {
		const struct vs_event *e = &b->events[i];

		printf("%" PRIu64 " %" PRIu64 " %u %u %d %d %" PRIu64 " %" PRIu64 "\n", e->time,
		       b->time_err, e->type, e->cpu, e->pid, e->pid2, e->arg0, e->arg1);
	}
	return 0;
}

static int message_print(void *context, uint32_t source, uint8_t kind, const uint8_t *payload,
			 size_t len)
{
	static struct message_hello hello;
	int err;

	(void)context;
	if (source != VS_SOURCE_HOST || kind != FRAME_HELLO)
		return 0;
	err = message_hello_unpack(payload, len, &hello);
	if (!err)
		printf("%" PRIu64 "\n", hello.clock_hz);
	return err;
}

int main(int argc, char **argv)
{
	const struct recording_visitor visitor = {.batch = batch_print, .message = message_print};

	return recording_visit_argument(argc, argv, &visitor);
}
