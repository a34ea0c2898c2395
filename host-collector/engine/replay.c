/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/engine/replay.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/engine/account.h"
#include "host-collector/util/progress.h"

typedef int (*entry_sink)(struct pipeline *p, uint32_t source, uint64_t arrival_tsc,
			  const struct frame_view *frame);

/* When to end early. stop NULL: never. */
struct limit {
	bool (*stop)(void *context);
	void *context;
};

/* Returns 0 and *info, or -errno. Sets *opened if the file was opened, so that the error, if any,
 * came later. */
static int pass(struct pipeline *p, const char *path, entry_sink sink, const char *what,
		const struct limit *limit, struct recording_info *info, bool *opened)
{
	struct recording_reader *reader;
	struct recording_entry entry;
	struct progress progress;
	int err = recording_reader_open(path, &reader);

	*opened = !err;
	if (err)
		return err;
	progress_begin(&progress, path, what, recording_reader_size(reader));
	while ((err = recording_reader_next(reader, &entry)) > 0) {
		progress_step(&progress, recording_reader_info(reader)->file_bytes);
		err = sink(p, entry.source, entry.arrival_tsc, &entry.frame);
		if (!err && limit->stop && limit->stop(limit->context))
			err = -ECANCELED;
		if (err)
			break;
	}
	progress_end(&progress);
	*info = *recording_reader_info(reader);
	recording_reader_close(reader);
	return err;
}

struct reading {
	struct pipeline *pipeline;
	const char *path;
	const struct limit *limit;
	struct recording_info *info;
	bool *opened;
	int err;
};

static void *frames_read(void *context)
{
	struct reading *r = context;

	r->err = pass(r->pipeline, r->path, pipeline_frame, "reads the events", r->limit, r->info,
		      r->opened);
	pipeline_handed_over(r->pipeline);
	return NULL;
}

/* The second pass: another thread reads the frames, and this one processes them. Returns 0 or
 * -errno. */
static int replay(struct pipeline *p, const char *path, const struct limit *limit,
		  struct recording_info *info, bool *opened)
{
	struct reading r = {p, path, limit, info, opened, 0};
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
	return replay_until(p, path, NULL, NULL, info, why, why_bytes);
}

int replay_until(struct pipeline *p, const char *path, bool (*stop)(void *context), void *context,
		 struct recording_info *info, char *why, size_t why_bytes)
{
	const struct limit limit = {stop, context};
	bool opened;
	int err = pass(p, path, pipeline_learn, "learns the clocks", &limit, info, &opened);

	if (!err)
		err = pipeline_learned(p);
	if (!err)
		err = replay(p, path, &limit, info, &opened);
	if (!err)
		err = pipeline_finish(p);
	if (err == -EBADMSG && !opened)
		snprintf(why, why_bytes,
			 "%s: not a recording of vcpuscope; `vcpuscope import` converts traces",
			 path);
	else if (err == -EPROTONOSUPPORT && !opened)
		snprintf(why, why_bytes,
			 "%s: a recording of another version; use the vcpuscope that made it",
			 path);
	else if (err == -ENOMEM)
		snprintf(why, why_bytes, "%s: out of memory", path);
	else if (err == -ECANCELED)
		snprintf(why, why_bytes, "%s: interrupted", path);
	else if (err)
		snprintf(why, why_bytes, "%s: %s: %s", path, opened ? "cannot read" : "cannot open",
			 strerror(-err));
	return err;
}

void replay_end(struct replay *r)
{
	pipeline_free(r->pipeline);
	model_free(r->model);
	*r = (struct replay){0};
}

struct distrusted {
	size_t n;
	uint32_t vms[MODEL_VMS_MAX];
};

static void distrusted_find(const struct replay *r, struct distrusted *out)
{
	struct pipeline_source s;

	out->n = 0;
	for (size_t i = 0; !pipeline_source_get(r->pipeline, i, &s); i++) {
		if (s.source != VS_SOURCE_HOST && account_untrusted(&s, r->model) &&
		    out->n < MODEL_VMS_MAX)
			out->vms[out->n++] = s.source;
	}
}

static int reading(struct replay *r, const char *path, const struct replay_reader *reader,
		   const struct distrusted *distrusted, char *why, size_t why_bytes)
{
	struct pipeline_options options = {.model = model_new()};
	int err = -ENOMEM;

	snprintf(why, why_bytes, "%s: out of memory", path);
	r->model = options.model;
	for (size_t i = 0; r->model && i < distrusted->n; i++)
		model_guest_distrust(r->model, distrusted->vms[i]);
	if (r->model)
		err = reader->open(reader->context, r->model);
	if (err)
		return err;
	r->pipeline = pipeline_new(&options);
	return r->pipeline ? replay_run(r->pipeline, path, &r->info, why, why_bytes) : -ENOMEM;
}

int replay_read(struct replay *r, const char *path, const struct replay_reader *reader, char *why,
		size_t why_bytes)
{
	struct distrusted distrusted = {0};
	int err = reading(r, path, reader, &distrusted, why, why_bytes);

	if (err)
		return err;
	distrusted_find(r, &distrusted);
	if (!distrusted.n)
		return 0;
	replay_end(r);
	reader->close(reader->context);
	return reading(r, path, reader, &distrusted, why, why_bytes);
}
