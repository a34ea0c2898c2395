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

#include "host-collector/cli/commands.h"
#include "host-collector/cli/narrow_options.h"
#include "host-collector/cli/query_source.h"
#include "host-collector/engine/replay.h"
#include "host-collector/export/csv.h"
#include "host-collector/export/folded_export.h"
#include "host-collector/export/pair_slices.h"
#include "host-collector/export/perfetto.h"
#include "host-collector/sql/query.h"
#include "host-collector/util/escape.h"
#include "proto/program/output.h"
#include "proto/query/described.h"

struct export_arguments {
	const char *recording, *to, *output, *key;
	struct option_list events;
	struct narrow_arguments narrow;
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
	 .value = "perfetto|csv|folded|sqlite",
	 .help = "perfetto: a trace for ui.perfetto.dev; csv: one line for each span of each "
		 "CPU; folded: where the time of each guest task went, as folded stacks "
		 "(`flame` has more options); sqlite: the tables of `query`, as a database"},
	{.name = "event",
	 .letter = 'e',
	 .type = OPTION_LIST,
	 .offset = offsetof(struct export_arguments, events),
	 .value = "EVENT,...",
	 .help = "perfetto: with -e A -e B, also the pairs from an event A to an event B with the "
		 "same key, as slices (docs/pairs.md)"},
	{.name = "key",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct export_arguments, key),
	 .value = "EXPR",
	 .help = "the value that the events of a pair have in common (default vcpu, or cpu if all "
		 "are of one side)"},
	NARROW_OPTION_ROWS(offsetof(struct export_arguments, narrow), "until"),
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
	void *(*open)(struct model *m, const struct pipeline *const *pipeline,
		      const struct narrow *narrow, const struct event_choices *pairs, FILE *out);
	/* After model_finish. 0 or -errno. */
	int (*finish)(void *x);
	void (*close)(void *x);
	/* What the reader should know of the result, on stderr. May be NULL. */
	void (*report)(const void *x, const struct model *m, const char *path);
	bool by_task; /* its rows can be selected by task */
};

/* ---- perfetto ---- */

static void *perfetto_open(struct model *m, const struct pipeline *const *pipeline,
			   const struct narrow *narrow, const struct event_choices *pairs,
			   FILE *out)
{
	return perfetto_new(m, pipeline, narrow, pairs, out);
}

static int perfetto_end(void *x)
{
	return perfetto_finish(x);
}

static void perfetto_close(void *x)
{
	perfetto_free(x);
}

static void perfetto_report(const void *x, const struct model *m, const char *path)
{
	uint32_t vms[MODEL_VMS_MAX];
	size_t n = model_vms(m, vms, MODEL_VMS_MAX);
	struct perfetto_summary s;
	struct perfetto_cpu c;

	perfetto_summarise(x, &s);
	fprintf(stderr,
		"vcpuscope export: %s: %.1f MB, %" PRIu64 " guest events, %" PRIu64 " arrows\n",
		path, (double)s.bytes / 1e6, s.guest_events, s.flows);
	if (s.contradicted)
		fprintf(stderr,
			"vcpuscope export: %s: %" PRIu64
			" handlers have no arrow: their interrupts were delivered later, by more than "
			"the clocks' error\n",
			path, s.contradicted);
	if (s.pairs || s.pairs_left_out)
		fprintf(stderr,
			"vcpuscope export: %s: %" PRIu64 " pairs; %" PRIu64
			" are left out, because more than %d overlap\n",
			path, s.pairs, s.pairs_left_out, PAIR_LANES_MAX);
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
}

/* ---- csv ---- */

static void *csv_open(struct model *m, const struct pipeline *const *pipeline,
		      const struct narrow *narrow, const struct event_choices *pairs, FILE *out)
{
	(void)pipeline;
	(void)pairs;
	return csv_export_new(m, narrow, out);
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

static void *folded_open(struct model *m, const struct pipeline *const *pipeline,
			 const struct narrow *narrow, const struct event_choices *pairs, FILE *out)
{
	(void)pipeline;
	(void)pairs;
	return folded_export_new(m, narrow, out);
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
	{"perfetto", perfetto_open, perfetto_end, perfetto_close, perfetto_report, false},
	{"csv", csv_open, csv_end, csv_close, NULL, true},
	{"folded", folded_open, folded_end, folded_close, NULL, true},
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

/* Replays the recording into the format. Returns an exit code; says what is wrong. */
static int recording_export(const struct export_arguments *a, const struct export_format *format,
			    const struct narrow *narrow, const struct event_choices *pairs,
			    FILE **out)
{
	struct pipeline_options options = {.model = model_new()};
	const struct pipeline *borrowed = NULL;
	struct pipeline *pipeline = NULL;
	struct recording_info info;
	char why[512] = "out of memory";
	int err, closed, result = COMMAND_TROUBLE;
	void *x =
		options.model ? format->open(options.model, &borrowed, narrow, pairs, *out) : NULL;

	if (x)
		pipeline = pipeline_new(&options);
	borrowed = pipeline;
	if (!pipeline || replay_run(pipeline, a->recording, &info, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope export: %s\n", why);
		goto out;
	}
	if (narrow_check(narrow, options.model, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope export: %s: %s\n", a->recording, why);
		goto out;
	}
	err = format->finish(x);
	closed = output_close(*out);
	err = err ? err : closed;
	*out = NULL;
	if (err) {
		fprintf(stderr, "vcpuscope export: %s: cannot write: %s\n", output_name(a->output),
			strerror(-err));
		goto out;
	}
	if (format->report)
		format->report(x, options.model, output_name(a->output));
	result = COMMAND_OK;
out:
	pipeline_free(pipeline);
	model_free(options.model);
	if (x)
		format->close(x);
	return result;
}

/* Reads -e and --key. Returns an exit code; says what is wrong. */
static int pairs_choose(const struct export_arguments *a, struct event_choices *choices)
{
	struct expr_error error = {0};
	const char *key;
	int err = event_choices_init(choices);

	if (!err)
		err = described_read(a->recording, choices->schemas);
	for (size_t i = 0; !err && i < a->events.n; i++) {
		err = event_choices_add(choices, a->events.items[i], &error);
		if (err == -EINVAL || err == -ENOENT)
			expr_error_print(&error, "vcpuscope export: -e", a->events.items[i],
					 stderr);
	}
	if (!err) {
		key = a->key ? a->key : event_choices_cross(choices) ? "vcpu" : "cpu";
		err = event_choices_key(choices, key, &error);
		if (err == -EINVAL)
			expr_error_print(&error, "vcpuscope export: --key", key, stderr);
	}
	if (!err && (!choices->n || !pairs_stages(choices, false))) {
		fputs("vcpuscope export: pairs need -e A -e B, or one -e with the attribute role\n",
		      stderr);
		err = -EINVAL;
	}
	return !err ? COMMAND_OK : err == -ENOMEM ? COMMAND_TROUBLE : COMMAND_USAGE;
}

/* The database is written by SQLite, which reads the recording as often as it has tables. */
static int database_export(const struct export_arguments *a, const struct narrow *narrow)
{
	struct query_source source;
	char part[4096], why[512];
	int err;

	if (output_is_stdout(a->output)) {
		fprintf(stderr,
			"vcpuscope export: a database cannot go to standard output; give -o "
			"FILE\n");
		return COMMAND_USAGE;
	}
	if ((size_t)snprintf(part, sizeof(part), "%s.part", a->output) >= sizeof(part))
		return COMMAND_USAGE;
	unlink(part);
	query_source_init(&source, "export", a->recording, narrow);
	err = sql_database_write(&source.sql, part, why, sizeof(why));
	query_source_fini(&source);
	if (!err && rename(part, a->output)) {
		err = -errno;
		snprintf(why, sizeof(why), "%s: cannot write: %s", a->output, strerror(errno));
	}
	if (!err)
		return COMMAND_OK;
	unlink(part);
	fprintf(stderr, "vcpuscope export: %s\n", why);
	return err == -ENOTSUP ? COMMAND_UNSUPPORTED : COMMAND_TROUBLE;
}

static int export_run(const struct command *self, int argc, char **argv)
{
	struct export_arguments a = {.narrow = NARROW_ARGUMENTS("until")};
	const struct export_format *format;
	struct event_choices choices = {.n = 0};
	struct narrow narrow;
	int err, result;
	FILE *out = NULL;

	if (options_read(self, argc, argv, &a))
		return COMMAND_USAGE;
	format = format_find(a.to);
	if (format && !format->by_task && (a.narrow.task || a.narrow.pid != UINT64_MAX)) {
		fprintf(stderr,
			"vcpuscope export: --to %s shows all tasks of a CPU; omit --task and "
			"--pid, or use --to csv or folded\n",
			a.to);
		return COMMAND_USAGE;
	}
	if ((a.events.n || a.key) && strcmp(a.to, "perfetto") != 0) {
		fputs("vcpuscope export: -e and --key are options of --to perfetto\n", stderr);
		return COMMAND_USAGE;
	}
	result = narrow_read(self->name, &a.narrow, a.recording, NULL, &narrow);
	if (result)
		return result;
	if (!format)
		return database_export(&a, &narrow);
	if (a.events.n || a.key)
		result = pairs_choose(&a, &choices);
	if (result != COMMAND_OK)
		goto out;
	err = output_open(a.output, &out);
	if (err) {
		fprintf(stderr, "vcpuscope export: %s: cannot write: %s\n", a.output,
			strerror(-err));
		result = COMMAND_TROUBLE;
		goto out;
	}
	result = recording_export(&a, format, &narrow, a.events.n ? &choices : NULL, &out);
	if (out)
		output_close(out);
	if (result != COMMAND_OK && !output_is_stdout(a.output))
		output_remove(a.output);
out:
	event_choices_fini(&choices);
	return result;
}

const struct command command_export = {
	.name = "export",
	.summary = "convert a recording for other tools",
	.options = export_option_table,
	.n_options = sizeof(export_option_table) / sizeof(export_option_table[0]),
	.examples = "  vcpuscope export run.vcs --to perfetto -o run.pftrace\n"
		    "  vcpuscope export run.vcs --to perfetto --around 2 -o stall2.pftrace\n"
		    "  vcpuscope export run.vcs --to perfetto -e host:kvm:kvm_msi_set_irq -e "
		    "guest:irq:irq_handler_entry -o run.pftrace\n"
		    "  vcpuscope export run.vcs --to csv -o run.csv\n"
		    "  vcpuscope export run.vcs --to folded -o run.folded\n"
		    "  vcpuscope export run.vcs --to sqlite -o run.db\n",
	.run = export_run,
};
