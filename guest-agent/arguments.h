/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line of vcpuscope-agent. A table has one row per option; --help prints this table. */
#ifndef AGENT_ARGUMENTS_H
#define AGENT_ARGUMENTS_H

#include <stdbool.h>
#include <stdio.h>

struct arguments {
	const char *connect; /* borrowed from argv */
	const char *backend; /* borrowed from argv, too */
	const char *psk;     /* borrowed from argv, too; NULL: none */
	unsigned int interval_ms;
	unsigned int backlog_mib;
	unsigned int ring_mib;
	unsigned int run_for_s; /* 0: until a signal stops the agent */
	unsigned int sample_hz; /* 0: no stacks */
	unsigned int max_sample_hz;
	unsigned int handlers_over_us; /* 0: no handler is aggregated */
	unsigned int max_cpu;          /* percent of one CPU */
	unsigned int max_memory;       /* MiB */
	bool no_host_config, no_kernel_log, no_realtime, insecure_plain_tcp;
	bool help, version;
};

/* Fills `out` with the defaults and the options of argv. Returns 0, or -EINVAL and one line in
 * `why`. */
int arguments_parse(int argc, char **argv, struct arguments *out, char *why, size_t why_bytes);
void arguments_help(FILE *to);
/* Prints the table for deploy/pages/make-pages, in the format of the collector's options_dump(). */
void arguments_dump(FILE *to);

#endif
