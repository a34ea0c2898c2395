/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `vcpuscope summarize`: writes the figures of recordings to one small file, which `vcpuscope
 * compare` accepts instead of the recordings.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/cli/commands.h"
#include "host-collector/cli/common_options.h"
#include "host-collector/cli/run_load.h"
#include "proto/program/output.h"

struct summarize_arguments {
	struct option_list recordings;
	struct option_list pairs;
	const char *output;
};

static const struct option_spec summarize_option_table[] = {
	{.name = "RUN.vcs",
	 .type = OPTION_OPERANDS,
	 .required = true,
	 .offset = offsetof(struct summarize_arguments, recordings),
	 .help = "recordings made by `vcpuscope record`, or summaries"},
	PAIR_FIGURES_OPTION_ROW(offsetof(struct summarize_arguments, pairs)),
	OUTPUT_OPTION_ROW(offsetof(struct summarize_arguments, output)),
};

static int summarize_run(const struct command *self, int argc, char **argv)
{
	static struct summarize_arguments a; /* too large for the stack */
	static struct pair_figure_list pairs;
	struct run_set set = {0};
	char why[512];
	FILE *to;
	int err, closed;

	a = (struct summarize_arguments){0};
	if (options_read(self, argc, argv, &a))
		return COMMAND_USAGE;
	if (pair_figures_parse(&a.pairs, &pairs, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope summarize: %s\n", why);
		return COMMAND_USAGE;
	}
	err = runs_load(&set, &a.recordings, &pairs, why, sizeof(why));
	if (!err) {
		err = output_open(a.output, &to);
		if (!err) {
			err = run_set_write(&set, to);
			closed = output_close(to);
			err = err ? err : closed;
		}
		if (err)
			snprintf(why, sizeof(why), "%s: cannot write: %s", output_name(a.output),
				 strerror(-err));
	}
	if (err)
		fprintf(stderr, "vcpuscope summarize: %s\n", why);
	run_set_fini(&set);
	return err ? COMMAND_TROUBLE : COMMAND_OK;
}

const struct command command_summarize = {
	.name = "summarize",
	.summary = "save the statistics of recordings as a baseline for compare",
	.options = summarize_option_table,
	.n_options = sizeof(summarize_option_table) / sizeof(summarize_option_table[0]),
	.examples = "  vcpuscope summarize base-*.vcs -o base.json\n"
		    "  vcpuscope summarize base-*.vcs -o base.json \\\n"
		    "      --pair msi=host:kvm:kvm_msi_set_irq..guest:irq:irq_handler_entry\n",
	.run = summarize_run,
};
