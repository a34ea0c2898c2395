/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/simulate_options.h"

#include <stddef.h>

static const struct option_spec simulate_option_table[] = {
	{.name = "SCENARIO",
	 .type = OPTION_OPERAND,
	 .offset = offsetof(struct simulate_arguments, scenario),
	 .help = "what is to happen; see --list"},
	{.name = "seed",
	 .type = OPTION_NUMBER,
	 .offset = offsetof(struct simulate_arguments, seed),
	 .value = "N",
	 .help = "the same seed gives the same run (default 1)"},
	{.name = "loss",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct simulate_arguments, loss),
	 .value = "P",
	 .help = "share of the events that get lost: 0 to 1, or 0% to 100% (default 0)"},
	{.name = "for",
	 .type = OPTION_DURATION,
	 .offset = offsetof(struct simulate_arguments, for_ns),
	 .value = "10s",
	 .help = "how long the run lasts at least (default: as its scenario needs)"},
	{.name = "shift",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct simulate_arguments, shift),
	 .value = "STAGE=N%",
	 .help = "make one stage N % slower; --list names the stages"},
	{.name = "output",
	 .letter = 'o',
	 .type = OPTION_FILE,
	 .offset = offsetof(struct simulate_arguments, output),
	 .value = "RUN.vcs",
	 .help = "the recording; the truth goes to RUN.vcs.truth.json"},
	{.name = "list",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct simulate_arguments, list),
	 .help = "name the scenarios and stages, and exit"},
};

const struct command command_simulate = {
	.name = "simulate",
	.summary = "make a recording of a stall whose cause is known",
	.usage = "SCENARIO [options] -o RUN.vcs | --list",
	.options = simulate_option_table,
	.n_options = sizeof(simulate_option_table) / sizeof(simulate_option_table[0]),
	.examples = "  vcpuscope simulate --list\n"
		    "  vcpuscope simulate vmm_lock --seed 7 --loss 0.01 -o run.vcs\n"
		    "  vcpuscope simulate decoy.steady --for 10s --shift exit_kvm=10% -o slow.vcs\n"
		    "  vcpuscope report run.vcs\n",
	.run = simulate_command_run,
};
