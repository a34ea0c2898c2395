/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope compare`: compares runs before a change with runs after it; a gate for CI. */
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-collector/cli/commands.h"
#include "host-collector/cli/common_options.h"
#include "host-collector/cli/run_load.h"
#include "host-collector/compare/gate_text.h"
#include "proto/program/output.h"

/* The exit codes of a gate are its own: CI servers go by them. */
enum compare_exit {
	COMPARE_PASS = 0,
	COMPARE_USAGE = 1, /* also a file that cannot be read or written */
	COMPARE_REGRESSION = 2,
	COMPARE_NO_DATA = 3,
};

struct compare_arguments {
	struct option_list base, against, pairs;
	const char *gate, *format, *output;
	bool all, print_gates;
};

static const struct option_spec compare_option_table[] = {
	{.name = "BASE",
	 .type = OPTION_OPERANDS,
	 .offset = offsetof(struct compare_arguments, base),
	 .help = "recordings before the change, or summaries of them (`vcpuscope summarize`)"},
	{.name = "against",
	 .type = OPTION_LIST,
	 .offset = offsetof(struct compare_arguments, against),
	 .value = "NEW...",
	 .help = "recordings after the change, or summaries of them"},
	PAIR_FIGURES_OPTION_ROW(offsetof(struct compare_arguments, pairs)),
	{.name = "gate",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct compare_arguments, gate),
	 .value = "gates.conf",
	 .help = "the file with the gates: figures and their limits (default: see "
		 "--print-gates)"},
	{.name = "format",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct compare_arguments, format),
	 .value = "text|json|junit|tap",
	 .help = "text for people, json for programs (docs/gate.md), junit or tap for CI "
		 "servers (default text)"},
	{.name = "all",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct compare_arguments, all),
	 .help = "list also the figures that did not change"},
	OUTPUT_OPTION_ROW(offsetof(struct compare_arguments, output)),
	{.name = "print-gates",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct compare_arguments, print_gates),
	 .help = "print the default gates.conf and exit"},
};

static const struct {
	const char *name;
	int (*write)(const struct gate_result *r, const struct gate_view *view, FILE *to);
} formats[] = {
	{"text", gate_write_text},
	{"json", gate_write_json},
	{"junit", gate_write_junit},
	{"tap", gate_write_tap},
};

/* Which flame graph shows more of a figure. */
static const struct {
	const char *figure, *options;
} graphs[] = {
	{"exit*", "--kind exits"},
	{"run_delay.*", "--kind offcpu --of vcpus"},
	{"*", "--kind wall --of vcpus"},
};

/* The recording that is still there and whose value is nearest to the side's median, or NULL. */
static const char *typical_recording(const struct run_set *set, const struct gate_row *row,
				     double median)
{
	const char *found = NULL;
	double nearest = INFINITY;

	for (size_t i = 0; i < set->n; i++) {
		const struct run_summary *run = &set->runs[i];
		const struct run_figure *f = run_figure_find(run, row->figure);
		double far = f ? fabs(f->at[row->rule->statistic] - median) : (double)NAN;

		if (!(far < nearest) || access(run->recording, R_OK))
			continue;
		nearest = far;
		found = run->recording;
	}
	return found;
}

/* A word for a shell. */
static void word_write(const char *word, FILE *to)
{
	fputs(" '", to);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", to);
		else
			fputc(*word, to);
	}
	fputc('\'', to);
}

/* The command that draws what moved first, between a typical run of each side. NULL: nothing moved,
 * or there are summaries only. The caller frees it. */
static char *next_command(const struct gate_result *r, const struct run_set *base,
			  const struct run_set *new)
{
	const char *before, *after;
	char *text = NULL;
	size_t len, graph = 0;
	FILE *to;

	if (!r->first)
		return NULL;
	before = typical_recording(base, r->first, r->first->base);
	after = typical_recording(new, r->first, r->first->new);
	to = before && after ? open_memstream(&text, &len) : NULL;
	if (!to)
		return NULL;
	while (fnmatch(graphs[graph].figure, r->first->figure, 0))
		graph++;
	fprintf(to, "vcpuscope flame --diff");
	word_write(before, to);
	word_write(after, to);
	fprintf(to, " %s -o diff.svg", graphs[graph].options);
	if (fclose(to)) {
		free(text);
		return NULL;
	}
	return text;
}

static int result_write(const struct compare_arguments *a, const struct gate_result *r,
			const char *next)
{
	const struct gate_view view = {.all = a->all, .next = next};
	FILE *to;
	int err = output_open(a->output, &to), closed;

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]) && !err; i++) {
		if (!strcmp(formats[i].name, a->format))
			err = formats[i].write(r, &view, to);
	}
	closed = to ? output_close(to) : 0;
	err = err ? err : closed;
	if (err)
		fprintf(stderr, "vcpuscope compare: %s: cannot write: %s\n", output_name(a->output),
			strerror(-err));
	return err;
}

/* The pairs that the user named must be tested. */
static int rules_read(const struct compare_arguments *a, const struct pair_figure_list *pairs,
		      struct gate_rules *rules, char *why, size_t why_bytes)
{
	int err = gate_rules_read(a->gate, rules, why, why_bytes);

	for (size_t i = 0; i < pairs->n && !err; i++)
		err = gate_rules_need(rules, pairs->figures[i].text, why, why_bytes);
	return err;
}

static int compare_run(const struct command *self, int argc, char **argv)
{
	static const int exits[GATE_OUTCOME_COUNT] = {[GATE_PASS] = COMPARE_PASS,
						      [GATE_SOFT] = COMPARE_PASS,
						      [GATE_HARD] = COMPARE_REGRESSION,
						      [GATE_NO_DATA] = COMPARE_NO_DATA};
	static struct compare_arguments a; /* too large for the stack */
	static struct gate_rules rules;
	static struct pair_figure_list pairs;
	struct run_set base = {0}, new = {0};
	struct gate_result result = {0};
	char why[512] = "", *next = NULL;
	int code = COMPARE_USAGE;

	a = (struct compare_arguments){.format = "text"};
	if (options_read(self, argc, argv, &a))
		return COMPARE_USAGE;
	if (a.print_gates) {
		fputs(gate_rules_default, stdout);
		return fflush(stdout) ? COMPARE_USAGE : COMPARE_PASS;
	}
	if (!a.base.n || !a.against.n)
		snprintf(
			why, sizeof(why),
			"recordings are missing: give BASE... --against NEW...; see `vcpuscope compare --help`");
	else if (!pair_figures_parse(&a.pairs, &pairs, why, sizeof(why)) &&
		 !rules_read(&a, &pairs, &rules, why, sizeof(why)) &&
		 !runs_load(&base, &a.base, &pairs, why, sizeof(why)) &&
		 !runs_load(&new, &a.against, &pairs, why, sizeof(why)) &&
		 !gate_judge(&base, &new, &rules, &result, why, sizeof(why))) {
		next = next_command(&result, &base, &new);
		if (!result_write(&a, &result, next))
			code = exits[result.outcome];
	}
	if (*why)
		fprintf(stderr, "vcpuscope compare: %s\n", why);
	free(next);
	gate_result_fini(&result);
	run_set_fini(&base);
	run_set_fini(&new);
	return code;
}

const struct command command_compare = {
	.name = "compare",
	.summary = "report significant slowdowns between recordings; a gate for CI",
	.usage = "BASE... --against NEW... [options]",
	.options = compare_option_table,
	.n_options = sizeof(compare_option_table) / sizeof(compare_option_table[0]),
	.examples = "  vcpuscope compare base-*.vcs --against new-*.vcs\n"
		    "  vcpuscope compare base.json --against new-*.vcs --gate gates.conf --format "
		    "junit -o gate.xml\n"
		    "  vcpuscope compare base-*.vcs --against new-*.vcs \\\n"
		    "      --pair msi=host:kvm:kvm_msi_set_irq..guest:irq:irq_handler_entry\n",
	.exits = "  0  pass\n"
		 "  1  wrong usage, or a file cannot be read or written\n"
		 "  2  regression\n"
		 "  3  not enough data to tell\n",
	.run = compare_run,
};
