/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints what a recording holds of the host's events, one per line and as stored, for tests that
 * compare them with another tracer's: time (TSC), its error, type, CPU, pid, pid2, arg0, arg1. The
 * first line is the TSC's frequency. usage: vcs-events FILE
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/codec.h"
#include "proto/message.h"
#include "proto/recording.h"

static void batch_print(const struct batch *b)
{
	for (size_t i = 0; i < b->n_events; i++) {
		const struct vs_event *e = &b->events[i];

		printf("%" PRIu64 " %" PRIu64 " %u %u %d %d %" PRIu64 " %" PRIu64 "\n", e->time,
		       b->time_err, e->type, e->cpu, e->pid, e->pid2, e->arg0, e->arg1);
	}
}

static int entry_print(const struct recording_entry *entry, struct frame_unpacker *unpacker,
		       struct batch_decoder *decoder)
{
	static struct message_hello hello;
	struct batch batch;
	const uint8_t *payload;
	size_t bytes;
	int error;

	if (entry->source != VS_SOURCE_HOST)
		return 0;
	error = frame_unpack(unpacker, &entry->frame, &payload, &bytes);
	if (!error && entry->frame.header.kind == FRAME_HELLO) {
		error = message_hello_unpack(payload, bytes, &hello);
		if (!error)
			printf("%" PRIu64 "\n", hello.clock_hz);
	} else if (!error && entry->frame.header.kind == FRAME_BATCH) {
		error = batch_decode(decoder, payload, bytes, &batch);
		if (!error)
			batch_print(&batch);
	}
	return error;
}

int main(int argc, char **argv)
{
	struct frame_unpacker *unpacker = frame_unpacker_new();
	struct batch_decoder *decoder = batch_decoder_new();
	struct recording_reader *reader = NULL;
	struct recording_entry entry;
	int error = argc == 2 && unpacker && decoder ? recording_reader_open(argv[1], &reader) : -1;

	while (!error && recording_reader_next(reader, &entry) > 0)
		error = entry_print(&entry, unpacker, decoder);
	if (error)
		fprintf(stderr, "vcs-events: %s\n", strerror(-error));
	if (reader)
		recording_reader_close(reader);
	batch_decoder_free(decoder);
	frame_unpacker_free(unpacker);
	return error ? 1 : 0;
}
