/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope export`: converts a recording for other tools. Each format is a row of `formats`. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host-collector/analyze/stall/describe.h"
#include "host-collector/cli/commands.h"
#include "host-collector/engine/replay.h"
#include "host-collector/export/csv.h"
#include "host-collector/export/folded_export.h"
#include "host-collector/export/perfetto.h"
#include "host-collector/util/escape.h"
#include "proto/program/output.h"

struct export_arguments {
	const char *recording, *to, *output;
};

static const struct option_spec export_option_table[] = {
	{.name = "RUN.vcs",
	 .type = OPTION_OPERAND,
	 .required = true,
	 .offset = offsetof(struct export_arguments, recording),
	 .help = "the recording to export"},
	{.name = "to",
	 .type = OPTION_CHOICE,
	 .required = true,
	 .offset = offsetof(struct export_arguments, to),
	 .value = "perfetto|csv|folded",
	 .help = "perfetto: a trace for ui.perfetto.dev; csv: one line for each span of each "
		 "CPU; folded: where the time of each guest task went, as folded stacks "
		 "(`flame` has more options)"},
	{.name = "output",
	 .letter = 'o',
	 .type = OPTION_STRING,
	 .required = true,
	 .offset = offsetof(struct export_arguments, output),
	 .value = "FILE",
	 .help = "the file to write; - is standard output"},
};

struct export_format {
	const char *name;
	/* Subscribes to the model; *pipeline is known before the first event. NULL on ENOMEM. */
	void *(*open)(struct model *m, const struct pipeline *const *pipeline, FILE *out);
	/* After model_finish. 0 or -errno. */
	int (*finish)(void *x);
	void (*close)(void *x);
	/* What the reader should know of the result, on stderr. May be NULL. */
	void (*tell)(const void *x, const struct model *m, const char *path);
};

/* ---- perfetto ---- */

static void *perfetto_open(struct model *m, const struct pipeline *const *pipeline, FILE *out)
{
	return perfetto_new(m, pipeline, out);
}

static int perfetto_end(void *x)
{
	return perfetto_finish(x);
}

static void perfetto_close(void *x)
{
	perfetto_free(x);
}

static void perfetto_tell(const void *x, const struct model *m, const char *path)
{
	uint32_t vms[MODEL_VMS_MAX];
	size_t n = model_vms(m, vms, MODEL_VMS_MAX);
	struct perfetto_summary s;
	struct perfetto_cpu c;

	perfetto_summarise(x, &s);
	fprintf(stderr,
		"vcpuscope export: %s: %.1f MB, %" PRIu64 " guest events, %" PRIu64 " arrows\n",
		path, (double)s.bytes / 1e6, s.guest_events, s.flows);
	for (size_t i = 0; i < n && i < MODEL_VMS_MAX; i++) {
		fprintf(stderr, "vcpuscope export: machine %" PRIu32 " is VM %.60s:", vms[i],
			escape(model_vm_name(m, vms[i])).text);
		for (size_t k = 0; perfetto_cpu_get(x, k, &c); k++) {
			if (c.vm == vms[i])
				fprintf(stderr, " CPU %u runs in thread %" PRId32 ";", c.cpu,
					c.tid);
		}
		fputc('\n', stderr);
	}
	if (s.moved_beyond)
		fprintf(stderr,
			"vcpuscope export: %s: %" PRIu64
			" guest events lay outside their vCPU's time in the guest by more than "
			"the clocks' error, by up to %s, and were moved there\n",
			path, s.moved_beyond, duration_text((int64_t)s.worst_ns).text);
	if (s.uncovered)
		fprintf(stderr,
			"vcpuscope export: %s: %" PRIu64
			" guest events lie before or after the host's capture; left out\n",
			path, s.uncovered);
}

/* ---- csv ---- */

static void *csv_open(struct model *m, const struct pipeline *const *pipeline, FILE *out)
{
	(void)pipeline;
	return csv_export_new(m, out);
}

static int csv_end(void *x)
{
	return csv_export_finish(x);
}

static void csv_close(void *x)
{
	csv_export_free(x);
}

/* ---- folded ---- */

static void *folded_open(struct model *m, const struct pipeline *const *pipeline, FILE *out)
{
	(void)pipeline;
	return folded_export_new(m, out);
}

static int folded_end(void *x)
{
	return folded_export_finish(x);
}

static void folded_close(void *x)
{
	folded_export_free(x);
}

static const struct export_format formats[] = {
	{"perfetto", perfetto_open, perfetto_end, perfetto_close, perfetto_tell},
	{"csv", csv_open, csv_end, csv_close, NULL},
	{"folded", folded_open, folded_end, folded_close, NULL},
};

static const struct export_format *format_find(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	}
	return NULL;
}

/* Half a trace misleads; what is no file, such as /dev/stdout, stays. */
static void output_remove(const char *path)
{
	struct stat st;

	if (!stat(path, &st) && S_ISREG(st.st_mode))
		unlink(path);
}

static int export_run(const struct command *self, int argc, char **argv)
{
	struct export_arguments a = {0};
	struct pipeline_options pipeline_options = {0};
	const struct export_format *format;
	const struct pipeline *borrowed = NULL;
	struct pipeline *pipeline = NULL;
	struct model *model = NULL;
	struct recording_info info;
	char why[512] = "out of memory";
	int err, closed, result = COMMAND_TROUBLE;
	void *x = NULL;
	FILE *out;

	if (options_read(self, argc, argv, &a))
		return COMMAND_USAGE;
	format = format_find(a.to);
	err = output_open(a.output, &out);
	if (err) {
		fprintf(stderr, "vcpuscope export: %s: cannot write: %s\n", a.output,
			strerror(-err));
		return COMMAND_TROUBLE;
	}
	model = model_new();
	if (model)
		x = format->open(model, &borrowed, out);
	pipeline_options.model = model;
	if (x)
		pipeline = pipeline_new(&pipeline_options);
	borrowed = pipeline;
	if (!pipeline || replay_run(pipeline, a.recording, &info, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope export: %s\n", why);
		goto out;
	}
	err = format->finish(x);
	closed = output_close(out);
	err = err ? err : closed;
	out = NULL;
	if (err) {
		fprintf(stderr, "vcpuscope export: %s: cannot write: %s\n", output_name(a.output),
			strerror(-err));
		goto out;
	}
	if (format->tell)
		format->tell(x, model, output_name(a.output));
	result = COMMAND_OK;
out:
	if (out)
		output_close(out);
	if (result != COMMAND_OK && !output_is_stdout(a.output))
		output_remove(a.output);
	pipeline_free(pipeline);
	model_free(model);
	if (x)
		format->close(x);
	return result;
}

const struct command command_export = {
	.name = "export",
	.summary = "convert a recording for other tools",
	.options = export_option_table,
	.n_options = sizeof(export_option_table) / sizeof(export_option_table[0]),
	.examples = "  vcpuscope export run.vcs --to perfetto -o run.pftrace\n"
		    "  vcpuscope export run.vcs --to csv -o run.csv\n"
		    "  vcpuscope export run.vcs --to folded -o run.folded\n",
	.run = export_run,
};
