/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/engine/replay.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef int (*entry_sink)(struct pipeline *p, uint32_t source, uint64_t arrival_tsc,
			  const struct frame_view *frame);

/* 0 and *info, or -errno. *opened: the error, if any, is not that of opening. */
static int pass(struct pipeline *p, const char *path, entry_sink sink, struct recording_info *info,
		bool *opened)
{
	struct recording_reader *reader;
	struct recording_entry entry;
	int err = recording_reader_open(path, &reader);

	*opened = !err;
	if (err)
		return err;
	while ((err = recording_reader_next(reader, &entry)) > 0) {
		err = sink(p, entry.source, entry.arrival_tsc, &entry.frame);
		if (err)
			break;
	}
	*info = *recording_reader_info(reader);
	recording_reader_close(reader);
	return err;
}

struct reading {
	struct pipeline *pipeline;
	const char *path;
	struct recording_info *info;
	bool *opened;
	int err;
};

static void *frames_read(void *context)
{
	struct reading *r = context;

	r->err = pass(r->pipeline, r->path, pipeline_frame, r->info, r->opened);
	pipeline_handed_over(r->pipeline);
	return NULL;
}

/* The second pass: what a thread of its own reads is worked on here. 0 or -errno. */
static int replay(struct pipeline *p, const char *path, struct recording_info *info, bool *opened)
{
	struct reading r = {p, path, info, opened, 0};
	pthread_t reader;
	int err = pipeline_hand_over(p);

	if (err)
		return err;
	err = -pthread_create(&reader, NULL, frames_read, &r);
	if (err)
		return err;
	pipeline_take(p);
	pthread_join(reader, NULL);
	return r.err;
}

int replay_run(struct pipeline *p, const char *path, struct recording_info *info, char *why,
	       size_t why_bytes)
{
	bool opened;
	int err = pass(p, path, pipeline_learn, info, &opened);

	if (!err)
		err = pipeline_learned(p);
	if (!err)
		err = replay(p, path, info, &opened);
	if (!err)
		err = pipeline_finish(p);
	if (err == -EBADMSG && !opened)
		snprintf(why, why_bytes, "%s: is no recording of vcpuscope", path);
	else if (err == -EPROTONOSUPPORT && !opened)
		snprintf(why, why_bytes,
			 "%s: a recording of another version; use the vcpuscope that made it",
			 path);
	else if (err == -ENOMEM)
		snprintf(why, why_bytes, "%s: out of memory", path);
	else if (err)
		snprintf(why, why_bytes, "%s: %s: %s", path, opened ? "cannot read" : "cannot open",
			 strerror(-err));
	return err;
}
