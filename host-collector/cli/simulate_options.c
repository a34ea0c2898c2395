/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/simulate_options.h"

#include <stddef.h>

static const struct option_spec simulate_option_table[] = {
	{.name = "SCENARIO",
	 .type = OPTION_OPERAND,
	 .offset = offsetof(struct simulate_arguments, scenario),
	 .help = "the scenario to simulate; --list shows them"},
	{.name = "seed",
	 .type = OPTION_NUMBER,
	 .offset = offsetof(struct simulate_arguments, seed),
	 .value = "N",
	 .help = "the seed of the random numbers; equal seeds give equal runs (default 1)"},
	{.name = "loss",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct simulate_arguments, loss),
	 .value = "P",
	 .help = "the share of events to lose: 0 to 1, or 0% to 100% (default 0)"},
	{.name = "for",
	 .type = OPTION_DURATION,
	 .offset = offsetof(struct simulate_arguments, for_ns),
	 .value = "10s",
	 .help = "the minimum length of the run (default: what the scenario needs)"},
	{.name = "vms",
	 .type = OPTION_NUMBER,
	 .offset = offsetof(struct simulate_arguments, vms),
	 .value = "N",
	 .help = "the number of VMs, 1 to 16 (default 1); the stall happens in the first one, "
		 "named 'simulated'; the others have no fault"},
	{.name = "vcpus",
	 .type = OPTION_NUMBER,
	 .offset = offsetof(struct simulate_arguments, vcpus),
	 .value = "N",
	 .help = "the number of vCPUs of each VM, 1 to 32 (default 2)"},
	{.name = "shift",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct simulate_arguments, shift),
	 .value = "STAGE=N%",
	 .help = "make one stage N % slower; --list shows the stages"},
	{.name = "protected",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct simulate_arguments, protected_by),
	 .value = "sev|sev-es|sev-snp|tdx|software",
	 .help = "protect the guests from the host; the recording contains the TSC offset that KVM "
		 "shows, but with sev-snp and tdx the guest's TSC has another one"},
	{.name = "jobs",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct simulate_arguments, jobs),
	 .help = "also write chosen events, like those of `record -e`: jobs:job_issue on the host, "
		 "jobs:job_done in the guest, with the fields job and slot; the truth file contains "
		 "the jobs"},
	{.name = "output",
	 .letter = 'o',
	 .type = OPTION_FILE,
	 .offset = offsetof(struct simulate_arguments, output),
	 .value = "RUN.vcs",
	 .help = "the recording to write; its truth file is RUN.vcs.truth.json"},
	{.name = "list",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct simulate_arguments, list),
	 .help = "list the scenarios and stages and exit"},
};

const struct command command_simulate = {
	.name = "simulate",
	.summary = "simulate a stall of known cause and write a recording of it",
	.usage = "SCENARIO [options] -o RUN.vcs | --list",
	.options = simulate_option_table,
	.n_options = sizeof(simulate_option_table) / sizeof(simulate_option_table[0]),
	.examples = "  vcpuscope simulate --list\n"
		    "  vcpuscope simulate vmm_lock --seed 7 --loss 0.01 -o run.vcs\n"
		    "  vcpuscope simulate decoy.steady --for 10s --shift exit_kvm=10% -o slow.vcs\n"
		    "  vcpuscope simulate vcpu_not_scheduled.crowd --vms 8 --vcpus 16 -o big.vcs\n"
		    "  vcpuscope report run.vcs\n",
	.run = simulate_command_run,
};
