/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/query/described.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/frame.h"
#include "proto/recording.h"

/* One frame of descriptions. */
static int described_add(const struct recording_entry *entry, struct frame_unpacker *unpacker,
			 struct message_user_events *m, struct event_schemas *schemas)
{
	const uint8_t *payload;
	size_t len;
	int err = frame_unpack(unpacker, &entry->frame, &payload, &len);

	if (err == -ENOMEM)
		return err;
	if (err || message_user_events_unpack(payload, len, m))
		return 0;
	for (size_t i = 0; !err && i < m->n; i++)
		err = event_schemas_describe(schemas, entry->source, &m->events[i]);
	return err;
}

int described_read(const char *path, struct event_schemas *schemas)
{
	struct message_user_events *m = calloc(1, sizeof(*m));
	struct frame_unpacker *unpacker = frame_unpacker_new();
	struct recording_reader *reader = NULL;
	struct recording_entry entry;
	int err = m && unpacker ? 0 : -ENOMEM;

	if (!err && !recording_reader_open(path, &reader)) {
		while (!err && recording_reader_next(reader, &entry) > 0) {
			if (entry.frame.header.kind == FRAME_USER_EVENTS)
				err = described_add(&entry, unpacker, m, schemas);
		}
		recording_reader_close(reader);
	}
	frame_unpacker_free(unpacker);
	free(m);
	return err;
}
