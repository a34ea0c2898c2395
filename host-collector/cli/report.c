/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope report`: shows the stalls in a recording and their causes, or a table. */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/scene/strip.h"
#include "host-collector/analyze/stall/builder.h"
#include "host-collector/analyze/stall/coverage.h"
#include "host-collector/analyze/stall/state_times.h"
#include "host-collector/cli/common_options.h"
#include "host-collector/engine/account.h"
#include "host-collector/cli/commands.h"
#include "host-collector/cli/fail_on.h"
#include "host-collector/cli/narrow_options.h"
#include "host-collector/cli/stalls_read.h"
#include "host-collector/engine/replay.h"
#include "host-collector/cli/report_events.h"
#include "host-collector/cli/report_page.h"
#include "host-collector/cli/shown_pairs.h"
#include "host-collector/tables/report_tables.h"
#include "host-collector/view/finding_text.h"
#include "host-collector/view/headline.h"
#include "host-collector/view/json.h"
#include "host-collector/view/text.h"
#include "proto/program/output.h"

struct report_arguments {
	const char *color;
	const char *recording, *output;
	struct report_table_request table; /* .table NULL: stalls */
	const char *fail_on_text;
	struct fail_on fail_on;
	bool all, brief;
	struct narrow_arguments narrow;
	struct narrow shown; /* from `narrow` */
	uint64_t observed_percent;
	struct report_events_arguments events;
	struct option_list pair_texts;
	struct pair_figure_list *pairs; /* from pair_texts */
};

static const struct option_spec report_option_table[] = {
	{.name = "RUN.vcs",
	 .type = OPTION_OPERAND,
	 .required = true,
	 .offset = offsetof(struct report_arguments, recording),
	 .help = "a recording made by `vcpuscope record`; - is standard input"},
	{.name = "TABLE",
	 .type = OPTION_OPERAND,
	 .offset = offsetof(struct report_arguments, table.table),
	 .help = "print a table instead of stalls: vcpu, tasks, waits, irq, exits, steal, or one of "
		 "the tables that these consist of: pcpu, culprits, halts, delays, chains, "
		 "slowest, overdue, ticks, faults, threads; or a table of the events that -e names: "
		 "events, pairs, top, dist, rate"},
	REPORT_EVENTS_OPTION_ROWS(offsetof(struct report_arguments, events)),
	{.name = "pair",
	 .type = OPTION_LIST,
	 .offset = offsetof(struct report_arguments, pair_texts),
	 .value = "NAME[KEY]=A..B",
	 .help = "also show the pairs from event A to event B (docs/pairs.md), by KEY (default vcpu, "
		 "or cpu if both are of one side), as evidence of stalls, and on the page"},
	TABLE_THAN_PER_ROWS(offsetof(struct report_arguments, table)),
	{.name = "format",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct report_arguments, table.format),
	 .value = "text|html|json|jsonl|csv",
	 .help = "text for people; html, one file for a browser (docs/views.md), not with "
		 "TABLE; json (docs/report-json.md); jsonl, an object on each line, only with events "
		 "and pairs; csv, only with TABLE (default text)"},
	TABLE_TOP_ROW(offsetof(struct report_arguments, table)),
	{.name = "all",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct report_arguments, all),
	 .help = "also list the long run intervals of a guest CPU in which nothing else had to "
		 "wait"},
	{.name = "brief",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct report_arguments, brief),
	 .help = "print one line for each stall: when, for how long, verdict, where, why"},
	{.name = "fail-on",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct report_arguments, fail_on_text),
	 .value = "stall|VERDICT[,..]",
	 .help = "end with exit code 4 if there is a stall, or one with one of these verdicts; with "
		 "5 if too little was observed, or if a stall without a verdict may be one of these"},
	{.name = "observed",
	 .type = OPTION_PERCENT,
	 .offset = offsetof(struct report_arguments, observed_percent),
	 .value = "90%",
	 .help = "say \"cannot tell\" for a vCPU that had no stall if less than this share of "
		 "its time was observed; the exit code is then 5 (default 90%)"},
	NARROW_OPTION_ROWS(offsetof(struct report_arguments, narrow), "to"),
	OUTPUT_OPTION_ROW(offsetof(struct report_arguments, output)),
	COLOR_OPTION_ROW(offsetof(struct report_arguments, color)),
};

static void __attribute__((format(printf, 2, 3))) say(const char *path, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "vcpuscope report: %s: ", path);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* Prints what is missing in the recording as a whole. */
static void gaps_say(const char *path, const struct pipeline *p, const struct model *m,
		     const struct recording_info *info)
{
	struct pipeline_source s;
	bool host = false, guest = false;

	for (size_t i = 0; !pipeline_source_get(p, i, &s); i++) {
		if (s.source == VS_SOURCE_HOST)
			host |= s.delivered > 0;
		else
			guest |= s.delivered > 0;
		if (s.source != VS_SOURCE_HOST && model_data_of(m, s.source).exits_counted)
			say(path,
			    "%s was captured at summary level: VM-exits that were only counted "
			    "count as time in the guest; the table exits shows them",
			    s.name);
		if (s.source != VS_SOURCE_HOST && model_data_of(m, s.source).handlers_counted)
			say(path,
			    "the guest of %s was captured at summary level: its short handlers, which "
			    "were only counted, count as time of what they interrupted, and the chains "
			    "of such interrupts are unmatched or incomplete",
			    s.name);
		if (s.unknown_events || s.unknown_frames)
			say(path,
			    "%s sent %llu events and %llu frames of types that this version does "
			    "not know; they are ignored. A newer vcpuscope may show them",
			    s.name, (unsigned long long)s.unknown_events,
			    (unsigned long long)s.unknown_frames);
		if (s.malformed)
			say(path, "%llu frames or events of %s are malformed; ignored",
			    (unsigned long long)s.malformed, s.name);
	}
	if (!info->closed)
		say(path, "was not closed: %s; the report covers what is complete",
		    info->cut ? "it ends within a frame" : "its end is missing");
	if (info->damaged_bytes)
		say(path, "%llu bytes are damaged; skipped",
		    (unsigned long long)info->damaged_bytes);
	if (!host)
		say(path, "it has no host events: what the vCPU threads did is unknown");
	if (!guest)
		say(path,
		    "it has no guest events: which guest task ran, and which one was denied a "
		    "CPU, is unknown");
}

/* What was requested of the recording: a report, a page that shows it, or a table. */
struct result {
	struct report *report; /* NULL if a table was requested */
	struct report_table *table;
	struct report_page *page;  /* beside the report */
	struct strips *strips;     /* beside a report as text */
	struct shown_pairs *pairs; /* beside the report */
};

static int result_write(const struct report_arguments *a, const struct result *result, FILE *to)
{
	struct text_options text = text_options_for(to, a->color);

	if (result->table)
		return report_table_write(result->table, to);
	if (result->page)
		return report_page_write(result->page, a->recording, result->report, result->pairs,
					 to);
	if (!strcmp(a->table.format, "json"))
		return json_report_write(result->report, true, to);
	text.strips = result->strips;
	if (a->brief) {
		text_brief_write(result->report, &text, to);
		return 0;
	}
	text_report_write(result->report, &text, to);
	return 0;
}

static int output_write(const struct report_arguments *a, const struct result *result)
{
	FILE *to;
	int err = output_open(a->output, &to), closed;

	if (!err) {
		err = result_write(a, result, to);
		closed = output_close(to);
		err = err ? err : closed;
	}
	if (err)
		say(output_name(a->output), "cannot write: %s", strerror(-err));
	return err ? COMMAND_TROUBLE : COMMAND_OK;
}

/* Says what is wrong. */
static bool arguments_check(struct report_arguments *a)
{
	char why[512];

	if (fail_on_parse(a->fail_on_text, &a->fail_on, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope report: %s; see `vcpuscope report --help`\n", why);
		return false;
	}
	if (pair_list_parse(&a->pair_texts, PAIR_NAME_BYTES - 1, a->pairs, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope report: %s\n", why);
		return false;
	}
	if (!a->table.table && !strcmp(a->table.format, "csv"))
		say(a->recording, "--format csv needs a TABLE; a stall does not fit on one line");
	else if (!strcmp(a->table.format, "jsonl") &&
		 (!a->table.table ||
		  (strcmp(a->table.table, "events") != 0 && strcmp(a->table.table, "pairs") != 0)))
		say(a->recording, "--format jsonl is only for events and pairs; write json");
	else if (a->table.table && !strcmp(a->table.format, "html"))
		say(a->table.table,
		    "--format html writes the whole report, which includes the tables; "
		    "omit %s",
		    a->table.table);
	else if (!a->table.table && a->table.per)
		say(a->recording, "--per needs a TABLE; stalls have no rows to split");
	else if (a->pair_texts.n && a->table.table)
		say(a->table.table, "--pair adds to a report of stalls; omit TABLE, or use pairs "
				    "-e A -e B");
	else if (a->brief && (a->table.table || strcmp(a->table.format, "text") != 0))
		say(a->recording, "--brief shows stalls as text; omit TABLE and --format");
	else if (a->fail_on_text && a->table.table)
		say(a->table.table, "--fail-on judges stalls; omit TABLE");
	else if (a->table.table && !report_events_is(a->table.table) &&
		 report_table_check(&a->table, why, sizeof(why)))
		say(a->table.table, "%s", why);
	else
		return true;
	return false;
}

/* The reading of a recording and its analyses. */
struct reading {
	const struct report_arguments *arguments;
	struct replay replay;
	struct report_builder *builder;
	struct result found;
};

static void incident_notice(void *context, const struct incident *incident)
{
	const struct result *found = context;

	if (found->page)
		report_page_notice(found->page, incident);
	if (found->strips)
		strips_incident(found->strips, incident);
	if (found->pairs)
		shown_pairs_notice(found->pairs, incident);
}

/* The width of the strips depends on where they are written. */
static int strips_open(struct reading *r, struct model *m, int64_t than_ns)
{
	FILE *to = output_is_stdout(r->arguments->output) ? stdout : NULL;

	/* A stall has at least this many grains. */
	r->found.strips = strips_new(m, text_strip_cells(to), than_ns / 128);
	return r->found.strips ? 0 : -ENOMEM;
}

static void pair_say(const char *line)
{
	fprintf(stderr, "vcpuscope report: %s\n", line);
}

static int pairs_open(struct reading *r, struct model *m, struct report_options *options)
{
	const struct report_arguments *a = r->arguments;
	const struct shown_pairs_options pairs = {
		.recording = a->recording,
		.list = a->pairs,
		.narrow = &a->shown,
		.scenes = r->found.page ? report_page_scenes(r->found.page) : NULL,
		.say = pair_say,
	};

	r->found.pairs = shown_pairs_new(m, &pairs);
	options->evidence = shown_pairs_evidence;
	options->evidence_context = r->found.pairs;
	return r->found.pairs ? 0 : -ENOMEM;
}

static int reading_open(void *context, struct model *m)
{
	struct reading *r = context;
	const struct report_arguments *a = r->arguments;
	struct report_options options = {.dmesg = account_dmesg, .context = &r->replay.pipeline};
	bool html = !strcmp(a->table.format, "html");
	bool text = !strcmp(a->table.format, "text") && !a->brief;

	if (a->table.table) { /* nobody asks for stalls */
		r->found.table = report_table_new(m, &a->table);
		return r->found.table ? 0 : -ENOMEM;
	}
	options.than_ns = a->table.than_ns ? (int64_t)a->table.than_ns : STALL_DEFAULT_NS;
	options.all = a->all;
	options.needed_percent = (unsigned)a->observed_percent;
	options.window = &a->shown;
	options.noticed = incident_notice;
	options.noticed_context = &r->found;
	if (html) {
		r->found.page = report_page_new(m);
		if (!r->found.page)
			return -ENOMEM;
	}
	if (text && strips_open(r, m, options.than_ns))
		return -ENOMEM;
	if (a->pairs->n && pairs_open(r, m, &options))
		return -ENOMEM;
	r->builder = report_builder_new(m, &options);
	if (!r->builder || (html && report_page_open(r->found.page, m,
						     report_builder_chains(r->builder), &a->shown)))
		return -ENOMEM;
	return 0;
}

static void reading_close(void *context)
{
	struct reading *r = context;

	report_free(r->found.report);
	report_table_free(r->found.table);
	shown_pairs_free(r->found.pairs);
	report_page_free(r->found.page);
	strips_free(r->found.strips);
	report_builder_free(r->builder);
	r->found = (struct result){0};
	r->builder = NULL;
}

/* Completes the report. Returns 0, or -1 without memory. */
static int stalls_finish(struct reading *r)
{
	const struct recording_info *info = &r->replay.info;

	report_builder_origin(
		r->builder,
		info->flags & VS_RECORDING_SIMULATED || pipeline_is_simulated(r->replay.pipeline),
		info->flags & VS_RECORDING_IMPORTED || pipeline_is_imported(r->replay.pipeline),
		!info->closed);
	if (!(r->found.pairs && shown_pairs_finish(r->found.pairs)) &&
	    !account_give(r->replay.pipeline, r->replay.model, info->damaged_bytes, r->builder))
		r->found.report = report_builder_finish(r->builder);
	return r->found.report ? 0 : -1;
}

/* Says what is wrong. 0 or -1. */
static int reading_run(struct reading *r)
{
	const char *path = r->arguments->recording;
	const struct replay_reader reader = {reading_open, reading_close, r};
	char why[512];

	if (replay_read(&r->replay, path, &reader, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope report: %s\n", why);
		return -1;
	}
	if (r->builder && stalls_finish(r)) {
		say(path, "out of memory");
		return -1;
	}
	if (narrow_check(&r->arguments->shown, r->replay.model, why, sizeof(why))) {
		say(path, "%s", why);
		return -1;
	}
	if (r->found.report)
		report_narrow(r->found.report, &r->arguments->shown, r->replay.model);
	return 0;
}

/* Without a stall, --brief prints no line; standard error says so to a person. */
static void headline_say(const struct report_arguments *a, const struct report *r)
{
	struct headline h;

	headline_make(r, &h);
	if (!r->n_incidents)
		say(a->recording, "%s%s", h.count, h.rest);
}

/* Writes what was found and returns the exit code. */
static int reading_show(const struct report_arguments *a, struct reading *r)
{
	struct finding wrong[STATE_TIMES_FINDINGS];
	size_t n_wrong;
	int result;

	if (r->found.table)
		report_table_finish(r->found.table);
	if (r->found.strips && strips_finish(r->found.strips)) {
		say(a->recording, "out of memory");
		return COMMAND_TROUBLE;
	}
	result = output_write(a, &r->found);
	n_wrong = r->found.report ? report_imbalances(r->found.report, wrong) : 0;
	if (n_wrong) {
		say(a->recording,
		    "%zu part%s of this report do%s not add up (the rest is right): a bug of "
		    "vcpuscope, please report it with the recording. The first: %s",
		    n_wrong, n_wrong == 1 ? "" : "s", n_wrong == 1 ? "es" : "",
		    finding_text(wrong, STATE_TIMES_FINDINGS).text);
		result = COMMAND_TROUBLE;
	}
	if (result == COMMAND_OK || n_wrong)
		gaps_say(a->recording, r->replay.pipeline, r->replay.model, &r->replay.info);
	if (result == COMMAND_OK && a->brief)
		headline_say(a, r->found.report);
	if (result == COMMAND_OK && !a->table.table)
		result = fail_on_exit(&a->fail_on, r->found.report);
	return result;
}

/* The tables of events that the user names. */
static int named_events_run(const struct report_arguments *a)
{
	const struct report_events_request request = {
		.what = a->table.table,
		.recording = a->recording,
		.format = a->table.format,
		.output = a->output,
		.top = a->table.top,
		.than_ns = a->table.than_ns,
		.events = &a->events,
		.narrow = &a->shown,
	};

	return report_events_run(&request);
}

static int report_run(const struct command *self, int argc, char **argv)
{
	static struct pair_figure_list pairs;
	struct report_arguments a = {.table = {.format = "text", .top = 20},
				     .narrow = NARROW_ARGUMENTS("to"),
				     .observed_percent = COVERAGE_NEEDED_PERCENT,
				     .pairs = &pairs};
	struct reading r = {.arguments = &a};
	struct narrow_stalls stalls;
	int result;

	if (options_read(self, argc, argv, &a))
		return COMMAND_USAGE;
	a.table.narrow = &a.shown;
	a.table.others = report_events_names;
	/* A table's --than is about its entries. */
	stalls = (struct narrow_stalls){.than_ns = a.table.table ? 0 : (int64_t)a.table.than_ns,
					.all = a.all};
	result = narrow_read(self->name, &a.narrow, a.recording, &stalls, &a.shown);
	if (result)
		return result;
	if (!arguments_check(&a))
		return COMMAND_USAGE;
	if (report_events_is(a.table.table))
		return named_events_run(&a);
	if (report_events_given(&a.events)) {
		say(a.recording,
		    "-e and its options need a TABLE: events, pairs, top, dist or rate");
		return COMMAND_USAGE;
	}
	result = COMMAND_TROUBLE;
	if (!reading_run(&r))
		result = reading_show(&a, &r);
	replay_end(&r.replay);
	reading_close(&r);
	return result;
}

const struct command command_report = {
	.name = "report",
	.summary = "find the stalls in a recording and explain their causes",
	.options = report_option_table,
	.n_options = sizeof(report_option_table) / sizeof(report_option_table[0]),
	.examples = "  vcpuscope report run.vcs\n"
		    "  vcpuscope report run.vcs --than 20ms --all\n"
		    "  vcpuscope report run.vcs --brief\n"
		    "  vcpuscope report run.vcs --fail-on stall   # exit code 4 if there is one\n"
		    "  ssh host cat run.vcs | vcpuscope report - --fail-on vm_paused,vmm_lock\n"
		    "  vcpuscope report run.vcs --observed 99%\n"
		    "  vcpuscope report run.vcs --format html -o report.html\n"
		    "  vcpuscope report run.vcs --format html -o report.html \\\n"
		    "      --pair "
		    "msi=host:kvm:kvm_msi_set_irq..guest:irq:irq_handler_entry\n"
		    "  vcpuscope report run.vcs --format json -o report.json\n"
		    "  vcpuscope report run.vcs tasks --top 10\n"
		    "  vcpuscope report run.vcs tasks --around 2 --vcpu 0\n"
		    "  vcpuscope report run.vcs vcpu --from +8.5s --to +9.5s\n"
		    "  vcpuscope report run.vcs irq --per vcpu --than 1ms\n"
		    "  vcpuscope report run.vcs vcpu --format csv\n"
		    "  vcpuscope report run.vcs exits --per vcpu --than 100us\n"
		    "  vcpuscope report run.vcs events -e 'host:kvm:kvm_msr,guest:irq:*' --top 0\n"
		    "  vcpuscope report run.vcs pairs -e host:kvm:kvm_msi_set_irq \\\n"
		    "                           -e "
		    "guest:irq:irq_handler_entry --key vcpu --than 1ms\n"
		    "  vcpuscope report run.vcs top -e kvm:kvm_exit --by "
		    "'exit_reason_str(isa,exit_reason)'\n",
	.exits =
		"  0  done; with --fail-on: no such stall, and enough was observed to say so\n"
		"  1  something went wrong\n"
		"  2  wrong usage\n"
		"  4  --fail-on: there is such a stall\n"
		"  5  cannot tell: too little was observed, or, with --fail-on, a stall without a verdict\n"
		"     may be one of these\n",
	.run = report_run,
};
