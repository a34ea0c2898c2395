/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/run_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/engine/replay.h"
#include "host-collector/compare/summarize.h"

/* One recording, replayed. */
static int recording_load(struct run_set *set, const char *path,
			  const struct pair_figure_list *list, char *why, size_t why_bytes)
{
	struct pipeline_options options = {.model = model_new()};
	struct run_summary *run = run_set_add(set, path);
	struct summarizer *summarizer = NULL;
	struct pair_figures *pairs = calloc(1, sizeof(*pairs));
	struct pipeline *pipeline = NULL;
	struct recording_info info;
	struct pipeline_source source;
	int err = -ENOMEM;

	if (options.model)
		summarizer = summarizer_new(options.model);
	if (summarizer)
		pipeline = pipeline_new(&options);
	if (!pipeline || !run || !pairs) {
		snprintf(why, why_bytes, "%s: out of memory", path);
		goto out;
	}
	err = pair_figures_start(pairs, options.model, path, list, why, why_bytes);
	if (err)
		goto out;
	err = replay_run(pipeline, path, &info, why, why_bytes);
	if (err)
		goto out;
	run->simulated = info.flags & VS_RECORDING_SIMULATED || pipeline_is_simulated(pipeline);
	for (size_t i = 0; !pipeline_source_get(pipeline, i, &source); i++)
		run->lost += source.missing;
	err = pair_figures_finish(pairs, summarizer);
	if (!err)
		err = summarizer_finish(summarizer, run);
	if (err)
		snprintf(why, why_bytes, "%s: out of memory", path);
out:
	pipeline_free(pipeline);
	if (pairs)
		pair_figures_fini(pairs);
	free(pairs);
	model_free(options.model);
	summarizer_free(summarizer);
	return err;
}

/* Runs from number `first` on are those of a summaries file. */
static void missing_say(const struct run_set *set, size_t first, const char *path,
			const struct pair_figure_list *pairs)
{
	for (size_t i = 0; i < pairs->n; i++) {
		const char *figure = pairs->figures[i].text;
		size_t missing = 0;

		for (size_t j = first; j < set->n; j++)
			missing += !run_figure_find(&set->runs[j], figure);
		if (missing)
			fprintf(stderr,
				"vcpuscope: %s: %zu of %zu runs do not have the figure %s; "
				"summarize their recordings with --pair\n",
				path, missing, set->n - first, figure);
	}
}

int runs_load(struct run_set *set, const struct option_list *paths,
	      const struct pair_figure_list *pairs, char *why, size_t why_bytes)
{
	size_t first;
	int err = 0;

	for (size_t i = 0; i < paths->n && !err; i++) {
		const char *path = paths->items[i];

		if (!run_set_is_file(path)) {
			err = recording_load(set, path, pairs, why, why_bytes);
			continue;
		}
		first = set->n;
		err = run_set_read(set, path, why, why_bytes);
		if (!err)
			missing_say(set, first, path, pairs);
	}
	return err;
}
