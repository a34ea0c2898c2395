/* SPDX-License-Identifier: GPL-2.0-only */
/* vcpuscope compare: several runs before a change against several after it; a gate for CI. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/cli/commands.h"
#include "host-collector/cli/run_load.h"
#include "host-collector/view/gate.h"

/* The exit codes of a gate are its own: CI servers go by them. */
enum compare_exit {
	COMPARE_PASS = 0,
	COMPARE_USAGE = 1, /* also a file that cannot be read or written */
	COMPARE_REGRESSION = 2,
	COMPARE_NO_DATA = 3,
};

struct compare_arguments {
	struct option_list base, against;
	const char *gate, *format, *output;
	bool all, print_gates;
};

static const struct option_spec compare_option_table[] = {
	{"BASE", OPTION_OPERANDS, offsetof(struct compare_arguments, base), NULL,
	 "recordings before the change, or their summaries (`vcpuscope summarize`)", false},
	{"against", OPTION_LIST, offsetof(struct compare_arguments, against), "NEW...",
	 "recordings after the change, or their summaries", false},
	{"gate", OPTION_STRING, offsetof(struct compare_arguments, gate), "gates.conf",
	 "what to watch and what to let pass (default: --print-gates shows it)", false},
	{"format", OPTION_CHOICE, offsetof(struct compare_arguments, format), "text|json|junit|tap",
	 "for people, for programs (docs/gate.md), for CI servers", false},
	{"all", OPTION_FLAG, offsetof(struct compare_arguments, all), NULL,
	 "figures that did not move, too", false},
	{"output", OPTION_STRING, offsetof(struct compare_arguments, output), "FILE",
	 "write there instead of to standard output (-o)", false},
	{"print-gates", OPTION_FLAG, offsetof(struct compare_arguments, print_gates), NULL,
	 "print the default gates.conf and exit", false},
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

static int result_write(const struct compare_arguments *a, const struct gate_result *r)
{
	const struct gate_view view = {.all = a->all};
	FILE *to = a->output ? fopen(a->output, "w") : stdout;
	int err = to ? 0 : -errno;

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]) && !err; i++) {
		if (!strcmp(formats[i].name, a->format))
			err = formats[i].write(r, &view, to);
	}
	if (to && (fflush(to) || (to != stdout && fclose(to))) && !err)
		err = -errno;
	if (err)
		fprintf(stderr, "vcpuscope compare: %s: cannot write: %s\n",
			a->output ? a->output : "standard output", strerror(-err));
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
	struct run_set base = {0}, new = {0};
	struct gate_result result = {0};
	char why[512] = "";
	int code = COMPARE_USAGE;

	a = (struct compare_arguments){.format = "text"};
	if (options_parse_or_say(self, argc, argv, &a))
		return COMPARE_USAGE;
	if (a.print_gates) {
		fputs(gate_rules_default, stdout);
		return fflush(stdout) ? COMPARE_USAGE : COMPARE_PASS;
	}
	if (!a.base.n || !a.against.n)
		snprintf(why, sizeof(why),
			 "want recordings of both sides: BASE... --against NEW...");
	else if (!gate_rules_read(a.gate, &rules, why, sizeof(why)) &&
		 !runs_load(&base, &a.base, why, sizeof(why)) &&
		 !runs_load(&new, &a.against, why, sizeof(why)) &&
		 !gate_judge(&base, &new, &rules, &result, why, sizeof(why)) &&
		 !result_write(&a, &result))
		code = exits[result.outcome];
	if (*why)
		fprintf(stderr, "vcpuscope compare: %s\n", why);
	gate_result_fini(&result);
	run_set_fini(&base);
	run_set_fini(&new);
	return code;
}

const struct command command_compare = {
	.name = "compare",
	.summary = "hold runs against runs: what got slower, and is that chance? a gate for CI",
	.usage = "BASE... --against NEW... [options]",
	.options = compare_option_table,
	.n_options = sizeof(compare_option_table) / sizeof(compare_option_table[0]),
	.examples = "  vcpuscope compare base-*.vcs --against new-*.vcs\n"
		    "  vcpuscope compare base.json --against new-*.vcs --gate gates.conf --format "
		    "junit -o gate.xml\n"
		    "exit codes: 0 pass; 1 wrong usage, or a file cannot be read; 2 regression;\n"
		    "3 not enough data to tell.\n",
	.run = compare_run,
};
