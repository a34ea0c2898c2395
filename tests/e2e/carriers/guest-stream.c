/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints what a recording holds of its guest, decoded: a line for each batch, event and message,
 * in their order, without what a session makes itself (greetings, round trips). usage: guest-stream
 * FILE
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/codec.h"
#include "proto/recording.h"

static void batch_print(const struct batch *b)
{
	printf("batch %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", b->cpu,
	       b->time_err, b->watermark, b->emitted, b->dropped_kernel, b->dropped_user);
	for (size_t i = 0; i < b->n_events; i++) {
		const struct vs_event *e = &b->events[i];

		printf("%" PRIu64 " %" PRIu32 " %u %u %d %d %" PRIx64 " %" PRIx64 "\n", e->time,
		       e->seq, e->cpu, e->type, e->pid, e->pid2, e->arg0, e->arg1);
	}
}

static int entry_print(const struct recording_entry *entry, struct frame_unpacker *unpacker,
		       struct batch_decoder *decoder)
{
	const uint8_t kind = entry->frame.header.kind;
	const uint8_t *payload;
	struct batch batch;
	size_t bytes;
	int error;

	if (entry->source == VS_SOURCE_HOST)
		return 0;
	error = frame_unpack(unpacker, &entry->frame, &payload, &bytes);
	if (!error && kind == FRAME_BATCH) {
		error = batch_decode(decoder, payload, bytes, &batch);
		if (!error)
			batch_print(&batch);
	} else if (!error && (kind == FRAME_HEARTBEAT || kind == FRAME_CLOCK_SAMPLE ||
			      kind == FRAME_KERNEL_LOG || kind == FRAME_GUEST_STACK)) {
		printf("message %u ", kind);
		for (size_t i = 0; i < bytes; i++)
			printf("%02x", payload[i]);
		printf("\n");
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
		fprintf(stderr, "guest-stream: %s\n", strerror(-error));
	if (reader)
		recording_reader_close(reader);
	batch_decoder_free(decoder);
	frame_unpacker_free(unpacker);
	return error ? 1 : 0;
}
