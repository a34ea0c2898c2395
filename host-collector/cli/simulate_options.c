/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/simulate_options.h"

#include <stddef.h>

static const struct option_spec simulate_option_table[] = {
	{"SCENARIO", OPTION_OPERAND, offsetof(struct simulate_arguments, scenario), NULL,
	 "what is to happen; see --list", false},
	{"seed", OPTION_NUMBER, offsetof(struct simulate_arguments, seed), "N",
	 "the same seed gives the same run (default 1)", false},
	{"loss", OPTION_STRING, offsetof(struct simulate_arguments, loss), "P",
	 "share of the events that get lost: 0 to 1, or 0% to 100% (default 0)", false},
	{"for", OPTION_DURATION, offsetof(struct simulate_arguments, for_ns), "10s",
	 "how long the run lasts at least (default: as its scenario needs)", false},
	{"shift", OPTION_STRING, offsetof(struct simulate_arguments, shift), "STAGE=N%",
	 "make one stage N % slower; --list names the stages", false},
	{"output", OPTION_STRING, offsetof(struct simulate_arguments, output), "RUN.vcs",
	 "the recording (-o); the truth goes to RUN.vcs.truth.json", false},
	{"list", OPTION_FLAG, offsetof(struct simulate_arguments, list), NULL,
	 "name the scenarios and stages, and exit", false},
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
