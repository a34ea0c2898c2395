/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints, for each heartbeat of the host in a recording, the CLOCK_MONOTONIC of its clock sample,
 * in ns, one per line.
 *
 *   host-beats FILE
 */
#include <stdio.h>

#include "proto/message.h"
#include "tests/e2e/recording_entries.h"

static int beat_print(void *context, uint32_t source, uint8_t kind, const uint8_t *payload,
		      size_t len)
{
	static struct message_heartbeat beat;
	int err;

	(void)context;
	if (source != VS_SOURCE_HOST || kind != FRAME_HEARTBEAT)
		return 0;
	err = message_heartbeat_unpack(payload, len, &beat);
	if (!err)
		printf("%llu\n", (unsigned long long)beat.sample.monotonic_ns);
	return err;
}

static int batch_skip(void *context, uint32_t source, const struct batch *b)
{
	(void)context;
	(void)source;
	(void)b;
	return 0;
}

int main(int argc, char **argv)
{
	const struct recording_visitor visitor = {.batch = batch_skip, .message = beat_print};

	return recording_visit_argument(argc, argv, &visitor);
}
