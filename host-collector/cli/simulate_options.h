/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of `vcpuscope simulate`: vcpuscope shows them and starts vcpuscope-simulate, which
 * obeys them. No daemon with rights carries a simulator.
 */
#ifndef CLI_SIMULATE_OPTIONS_H
#define CLI_SIMULATE_OPTIONS_H

#include "host-collector/cli/options.h"

struct simulate_arguments {
	const char *scenario, *loss, *shift, *output;
	uint64_t seed, for_ns;
	bool list;
};

extern const struct command command_simulate;
/* Its run(): of vcpuscope it becomes the other program (simulate.c), of that it makes the recording
 * (simulate/main.c). */
int simulate_command_run(const struct command *self, int argc, char **argv);

#endif
