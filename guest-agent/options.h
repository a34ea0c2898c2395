/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line of vcpuscope-agent: one table row per option, from which --help is printed. */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#define AGENT_PORT_NAME "org.vcpuscope.agent.0"

struct options {
	const char *connect; /* borrowed from argv */
	unsigned int interval_ms;
	unsigned int backlog_mib;
	unsigned int ring_mib;
	unsigned int run_for_s; /* 0: until told to stop */
	bool no_kernel_log;
	bool help, version;
};

/* Fills `out` with defaults and what argv says. 0 or -EINVAL with one line in `why`. */
int options_parse(int argc, char **argv, struct options *out, char *why, size_t why_bytes);
void options_help(FILE *to);

#endif
