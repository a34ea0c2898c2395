/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/run_load.h"

#include <errno.h>
#include <string.h>

#include "host-collector/engine/replay.h"
#include "host-collector/compare/summarize.h"

/* One recording, replayed. */
static int recording_load(struct run_set *set, const char *path, char *why, size_t why_bytes)
{
	struct pipeline_options options = {.model = model_new()};
	struct run_summary *run = run_set_add(set, path);
	struct summarizer *summarizer = NULL;
	struct pipeline *pipeline = NULL;
	struct recording_info info;
	struct pipeline_source source;
	int err = -ENOMEM;

	if (options.model)
		summarizer = summarizer_new(options.model);
	if (summarizer)
		pipeline = pipeline_new(&options);
	if (!pipeline || !run) {
		snprintf(why, why_bytes, "%s: out of memory", path);
		goto out;
	}
	err = replay_run(pipeline, path, &info, why, why_bytes);
	if (err)
		goto out;
	run->simulated = info.flags & VS_RECORDING_SIMULATED || pipeline_is_simulated(pipeline);
	for (size_t i = 0; !pipeline_source_get(pipeline, i, &source); i++)
		run->lost += source.missing;
	err = summarizer_finish(summarizer, run);
	if (err)
		snprintf(why, why_bytes, "%s: out of memory", path);
out:
	pipeline_free(pipeline);
	model_free(options.model);
	summarizer_free(summarizer);
	return err;
}

int runs_load(struct run_set *set, const struct option_list *paths, char *why, size_t why_bytes)
{
	int err = 0;

	for (size_t i = 0; i < paths->n && !err; i++) {
		const char *path = paths->items[i];

		err = run_set_is_file(path) ? run_set_read(set, path, why, why_bytes)
					    : recording_load(set, path, why, why_bytes);
	}
	return err;
}
