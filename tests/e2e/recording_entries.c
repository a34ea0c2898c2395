/* SPDX-License-Identifier: GPL-2.0-only */
#include "tests/e2e/recording_entries.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int entry_visit(const struct recording_entry *entry, struct frame_unpacker *unpacker,
		       struct batch_decoder *decoder, const struct recording_visitor *v)
{
	const uint8_t kind = entry->frame.header.kind;
	const uint8_t *payload;
	struct batch batch;
	size_t len;
	int err;

	if (kind != FRAME_BATCH && !v->message)
		return 0;
	err = frame_unpack(unpacker, &entry->frame, &payload, &len);
	if (err)
		return err;
	if (kind != FRAME_BATCH)
		return v->message(v->context, entry->source, kind, payload, len);
	err = batch_decode(decoder, payload, len, &batch);
	return err ? err : v->batch(v->context, entry->source, &batch);
}

int recording_visit(const char *path, const struct recording_visitor *visitor)
{
	struct frame_unpacker *unpacker = frame_unpacker_new();
	struct batch_decoder *decoder = batch_decoder_new();
	struct recording_reader *reader = NULL;
	struct recording_entry entry;
	int got = 0, err = unpacker && decoder ? recording_reader_open(path, &reader) : -ENOMEM;

	while (!err && (got = recording_reader_next(reader, &entry)) > 0)
		err = entry_visit(&entry, unpacker, decoder, visitor);
	if (!err && got < 0)
		err = got;
	if (reader)
		recording_reader_close(reader);
	batch_decoder_free(decoder);
	frame_unpacker_free(unpacker);
	return err;
}

int recording_visit_argument(int argc, char **argv, const struct recording_visitor *visitor)
{
	int err;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FILE\n", argc ? argv[0] : "");
		return 2;
	}
	err = recording_visit(argv[1], visitor);
	if (err)
		fprintf(stderr, "%s: %s: %s\n", argv[0], argv[1], strerror(-err));
	return err ? 1 : 0;
}
