/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vcpuscope-simulate runs a scenario and writes a recording and its truth file. `vcpuscope
 * simulate` runs it as a separate program, so that a daemon with rights does not contain a
 * simulator.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/cli/simulate_options.h"
#include "host-collector/simulate/simulate.h"
#include "host-collector/util/wrap.h"
#include "proto/program/suggest.h"

static int list_print(void)
{
	for (size_t i = 0; i < scenarios_count; i++)
		wrap_print(stdout, "%-30s %-8s %s\n", scenarios[i].name,
			   scenario_kind_name(scenarios[i].kind), scenarios[i].about);
	wrap_print(stdout, "\nstages for --shift:\n");
	for (int i = 0; i < PACE_STAGE_COUNT; i++)
		wrap_print(stdout, "%-39s %s\n", pace_stage_name((enum pace_stage)i),
			   pace_stage_meaning((enum pace_stage)i));
	return fflush(stdout) ? COMMAND_TROUBLE : COMMAND_OK;
}

static int usage_say(const char *what, const char *next)
{
	fprintf(stderr, "vcpuscope simulate: %s; %s\n", what, next);
	return COMMAND_USAGE;
}

static int scenario_unknown(const char *name)
{
	struct suggest s;
	char what[128];

	suggest_begin(&s, name, strlen(name));
	for (size_t i = 0; i < scenarios_count; i++)
		suggest_try(&s, scenarios[i].name);
	if (!s.best)
		return usage_say("unknown scenario", "--list shows them");
	snprintf(what, sizeof(what), "unknown scenario; did you mean '%s'?", s.best);
	return usage_say(what, "--list shows them");
}

static bool loss_parse(const char *text, double *loss)
{
	char *end;

	if (!text)
		return true;
	*loss = strtod(text, &end);
	if (end != text && *end == '%') {
		*loss /= 100;
		end++;
	}
	return end != text && !*end && *loss >= 0 && *loss <= 1;
}

int simulate_command_run(const struct command *self, int argc, char **argv)
{
	struct simulate_arguments a = {.seed = 1, .vms = 1, .vcpus = WORLD_VCPUS};
	struct simulate_options o = {0};
	char *truth, why[512];
	size_t len;
	int err;

	if (options_read(self, argc, argv, &a))
		return COMMAND_USAGE;
	if (a.list)
		return list_print();
	if (!a.scenario)
		return usage_say("the scenario is missing", "--list shows them");
	if (!a.output)
		return usage_say("the recording to write is missing", "give -o RUN.vcs");
	o.scenario = scenario_find(a.scenario);
	if (!o.scenario)
		return scenario_unknown(a.scenario);
	if (!loss_parse(a.loss, &o.loss))
		return usage_say("--loss: expected a share",
				 "from 0 to 1, such as 0.01, or from 0% to 100%");
	if (a.vms < 1 || a.vms > WORLD_VMS_MAX)
		return usage_say("--vms: expected a number of VMs", "from 1 to 16");
	if (a.vcpus < 1 || a.vcpus > WORLD_VCPUS_MAX)
		return usage_say("--vcpus: expected a number of vCPUs", "from 1 to 32");
	if (a.vcpus == 1 && scenario_needs_second(o.scenario))
		return usage_say("this scenario takes place between two vCPUs",
				 "give --vcpus 2 or more");
	if (a.shift && pace_shift(&o.pace, a.shift))
		return usage_say("--shift: expected STAGE=N%",
				 "such as exit_kvm=10%; --list shows the stages");
	if (a.protected_by) {
		o.protection = vm_protection_find(a.protected_by);
		if (o.protection == VM_PROTECTION_NONE)
			return usage_say("--protected: expected a kind of protection",
					 "sev, sev-es, sev-snp, tdx or software");
	}
	o.for_ns = (int64_t)a.for_ns;
	o.jobs = a.jobs;
	len = strlen(a.output) + sizeof(".truth.json");
	truth = malloc(len);
	if (!truth) {
		fprintf(stderr, "vcpuscope simulate: out of memory\n");
		return COMMAND_TROUBLE;
	}
	snprintf(truth, len, "%s.truth.json", a.output);
	o.seed = a.seed;
	o.n_vms = (uint32_t)a.vms;
	o.n_vcpus = (uint32_t)a.vcpus;
	o.recording = a.output;
	o.truth = truth;
	err = simulate_run(&o, why, sizeof(why));
	if (err)
		fprintf(stderr, "vcpuscope simulate: %s\n", why);
	free(truth);
	return err ? COMMAND_TROUBLE : COMMAND_OK;
}

int main(int argc, char **argv)
{
	if (options_answer(&command_simulate, argc, argv))
		return COMMAND_OK;
	return command_simulate.run(&command_simulate, argc, argv);
}
