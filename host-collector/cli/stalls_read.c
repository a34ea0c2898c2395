/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/stalls_read.h"

#include <errno.h>
#include <stdio.h>

#include "host-collector/analyze/stall/builder.h"
#include "host-collector/analyze/stall/coverage.h"
#include "host-collector/engine/account.h"
#include "host-collector/engine/replay.h"

struct reading {
	struct replay replay;
	struct report_options options;
	struct report_builder *builder;
};

static int reading_open(void *context, struct model *m)
{
	struct reading *r = context;

	r->builder = report_builder_new(m, &r->options);
	return r->builder ? 0 : -ENOMEM;
}

static void reading_close(void *context)
{
	struct reading *r = context;

	report_builder_free(r->builder);
	r->builder = NULL;
}

struct report *stalls_read(const char *command, const char *recording, int64_t than_ns, bool all)
{
	struct reading r = {.options = {.than_ns = than_ns ? than_ns : STALL_DEFAULT_NS,
					.all = all,
					.needed_percent = COVERAGE_NEEDED_PERCENT}};
	const struct replay_reader reader = {reading_open, reading_close, &r};
	struct report *report = NULL;
	char why[512];

	if (replay_read(&r.replay, recording, &reader, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope %s: %s\n", command, why);
	} else {
		if (!account_give(r.replay.pipeline, r.replay.model, r.replay.info.damaged_bytes,
				  r.builder))
			report = report_builder_finish(r.builder);
		if (!report)
			fprintf(stderr, "vcpuscope %s: %s: out of memory\n", command, recording);
	}
	replay_end(&r.replay);
	reading_close(&r);
	return report;
}
