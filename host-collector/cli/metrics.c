/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope metrics`: writes the counters of a recording in the text format of Prometheus. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/analyze/stall/builder.h"
#include "host-collector/cli/commands.h"
#include "host-collector/cli/common_options.h"
#include "host-collector/metrics/metrics_page.h"
#include "host-collector/engine/replay.h"
#include "proto/program/output.h"

struct metrics_arguments {
	const char *recording, *output;
	uint64_t than_ns;
	bool host;
};

static const struct option_spec metrics_option_table[] = {
	{.name = "RUN.vcs",
	 .type = OPTION_OPERAND,
	 .required = true,
	 .offset = offsetof(struct metrics_arguments, recording),
	 .help = "a recording made by `vcpuscope record`"},
	{.name = "than",
	 .type = OPTION_DURATION,
	 .offset = offsetof(struct metrics_arguments, than_ns),
	 .value = "100ms",
	 .help = "count stalls of at least this length (default 100ms)"},
	{.name = "host",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct metrics_arguments, host),
	 .help = "print the sums of all VMs with finer buckets, as the daemon does"},
	OUTPUT_OPTION_ROW(offsetof(struct metrics_arguments, output)),
};

static void on_incident(void *context, const struct report *report)
{
	for (size_t i = 0; i < report->n_incidents; i++)
		metrics_incident(context, &report->incidents[i]);
}

static int output_write(const struct metrics_arguments *a, const struct metrics *x,
			const struct pipeline *p)
{
	const struct metrics_part part = {.metrics = x, .pipeline = p};
	const struct metrics_page_options options = {.vms = !a->host, .sums = a->host};
	int err;

	if (!output_is_stdout(a->output)) {
		err = metrics_page_save(&part, 1, &options, a->output);
	} else {
		err = metrics_page_write(&part, 1, &options, stdout);
		if (!err)
			err = output_close(stdout);
	}
	if (err)
		fprintf(stderr, "vcpuscope metrics: %s: cannot write: %s\n", output_name(a->output),
			strerror(-err));
	return err;
}

/* One reading's analyses. */
struct counting {
	int64_t than_ns;
	struct metrics *metrics;
	struct report_builder *builder;
};

static int counting_open(void *context, struct model *m)
{
	struct counting *c = context;
	struct report_options options = {.incident = on_incident, .than_ns = c->than_ns};

	options.context = c->metrics = metrics_new(m, NULL);
	if (c->metrics)
		c->builder = report_builder_new(m, &options);
	return c->builder ? 0 : -ENOMEM;
}

static void counting_close(void *context)
{
	struct counting *c = context;

	report_builder_free(c->builder);
	metrics_free(c->metrics);
	c->builder = NULL;
	c->metrics = NULL;
}

static int metrics_run(const struct command *self, int argc, char **argv)
{
	struct metrics_arguments a = {.than_ns = STALL_DEFAULT_NS};
	struct counting c = {0};
	const struct replay_reader reader = {counting_open, counting_close, &c};
	struct replay replay = {0};
	char why[512];
	int result = COMMAND_TROUBLE;

	if (options_read(self, argc, argv, &a))
		return COMMAND_USAGE;
	c.than_ns = (int64_t)a.than_ns;
	if (replay_read(&replay, a.recording, &reader, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope metrics: %s\n", why);
	} else {
		report_free(report_builder_finish(c.builder));
		metrics_finish(c.metrics);
		if (!output_write(&a, c.metrics, replay.pipeline))
			result = COMMAND_OK;
	}
	replay_end(&replay);
	counting_close(&c);
	return result;
}

const struct command command_metrics = {
	.name = "metrics",
	.summary = "print a recording's counters in the Prometheus text format",
	.options = metrics_option_table,
	.n_options = sizeof(metrics_option_table) / sizeof(metrics_option_table[0]),
	.examples = "  vcpuscope metrics run.vcs\n"
		    "  vcpuscope metrics run.vcs --host\n"
		    "  vcpuscope metrics run.vcs -o /var/lib/prometheus/node-exporter/run.prom\n",
	.run = metrics_run,
};
