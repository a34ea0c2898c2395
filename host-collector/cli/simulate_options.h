/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of `vcpuscope simulate`. vcpuscope shows their help and executes vcpuscope-simulate,
 * which parses them: the program that runs with rights does not contain the simulator.
 */
#ifndef CLI_SIMULATE_OPTIONS_H
#define CLI_SIMULATE_OPTIONS_H

#include "proto/program/options.h"

struct simulate_arguments {
	const char *scenario, *loss, *shift, *output, *protected_by;
	uint64_t seed, for_ns, vms, vcpus;
	bool list, jobs;
};

extern const struct command command_simulate;
/* The command's run(). In vcpuscope it executes vcpuscope-simulate (simulate.c); in
 * vcpuscope-simulate it makes the recording (simulate/main.c). */
int simulate_command_run(const struct command *self, int argc, char **argv);

#endif
