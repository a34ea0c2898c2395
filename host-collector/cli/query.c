/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope query`: SQL over a recording. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/cli/commands.h"
#include "host-collector/cli/common_options.h"
#include "host-collector/cli/query_source.h"
#include "host-collector/sql/query.h"
#include "proto/program/output.h"

struct query_arguments {
	const char *recording, *sql, *format, *output;
};

static const struct option_spec query_option_table[] = {
	{.name = "RUN.vcs",
	 .type = OPTION_OPERAND,
	 .required = true,
	 .offset = offsetof(struct query_arguments, recording),
	 .help = "a recording made by `vcpuscope record`"},
	{.name = "SQL",
	 .type = OPTION_OPERAND,
	 .offset = offsetof(struct query_arguments, sql),
	 .help = "a SELECT over the tables events, spans, incidents and recording, and over "
		 "pairs(A, B, KEY) (docs/query.md); without it, their columns are listed"},
	{.name = "format",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct query_arguments, format),
	 .value = "text|csv|json",
	 .help = "text for people; csv; json, an array of objects (default text)"},
	OUTPUT_OPTION_ROW(offsetof(struct query_arguments, output)),
};

static enum sql_format format_of(const char *format)
{
	if (!strcmp(format, "json"))
		return SQL_JSON;
	return !strcmp(format, "csv") ? SQL_CSV : SQL_TEXT;
}

static int exit_of(int err)
{
	if (err == -EINVAL)
		return COMMAND_USAGE;
	return err == -ENOTSUP ? COMMAND_UNSUPPORTED : COMMAND_TROUBLE;
}

static int query_run(const struct command *self, int argc, char **argv)
{
	struct query_arguments a = {.format = "text"};
	struct query_source source;
	char why[512] = SQL_NOT_BUILT;
	FILE *out = NULL;
	bool unknown;
	int err, closed;

	if (options_read(self, argc, argv, &a))
		return COMMAND_USAGE;
	err = output_open(a.output, &out);
	if (err) {
		fprintf(stderr, "vcpuscope query: %s: cannot write: %s\n", output_name(a.output),
			strerror(-err));
		return COMMAND_TROUBLE;
	}
	query_source_init(&source, self->name, a.recording, NULL);
	err = a.sql ? sql_query_run(&source.sql, a.sql, format_of(a.format), out, why, sizeof(why))
		    : sql_schema_write(out);
	query_source_fini(&source);
	closed = output_close(out);
	unknown = err == -EINVAL && (strstr(why, "no such table") || strstr(why, "no such column"));
	if (err)
		fprintf(stderr, "vcpuscope query: %s%s%s%s\n", why,
			unknown ? "; `vcpuscope query " : "", unknown ? a.recording : "",
			unknown ? "` lists the tables and columns" : "");
	else if (closed)
		fprintf(stderr, "vcpuscope query: %s: cannot write: %s\n", output_name(a.output),
			strerror(-closed));
	return err ? exit_of(err) : closed ? COMMAND_TROUBLE : COMMAND_OK;
}

const struct command command_query = {
	.name = "query",
	.summary = "run an SQL query over the events, spans and stalls of a recording",
	.options = query_option_table,
	.n_options = sizeof(query_option_table) / sizeof(query_option_table[0]),
	.examples = "  vcpuscope query run.vcs\n"
		    "  vcpuscope query run.vcs 'SELECT number, verdict, culprit FROM incidents'\n"
		    "  vcpuscope query run.vcs 'SELECT kind, state, sum(duration_ns) FROM spans "
		    "GROUP BY 1, 2'\n"
		    "  vcpuscope query run.vcs 'SELECT event, count(*) FROM events GROUP BY 1' "
		    "--format csv\n",
	.run = query_run,
};
