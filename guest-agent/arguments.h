/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line of vcpuscope-agent. */
#ifndef AGENT_ARGUMENTS_H
#define AGENT_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/program/options.h"

struct arguments {
	const char *connect; /* borrowed from argv */
	const char *backend; /* borrowed from argv, too */
	const char *psk;     /* borrowed from argv, too; NULL: none */
	const char *policy;  /* borrowed from argv, too; NULL: the default file, if it exists */
	uint64_t interval_ns;
	uint64_t backlog_bytes;
	uint64_t ring_bytes;
	uint64_t run_for_ns; /* 0: until a signal stops the agent */
	uint64_t sample_hz;  /* 0: no stacks */
	uint64_t max_sample_hz;
	uint64_t handlers_over_ns; /* 0: no handler is aggregated */
	uint64_t max_cpu_percent;  /* percent of one CPU */
	uint64_t max_memory_bytes;
	bool no_host_config, no_kernel_log, no_realtime, insecure_plain_tcp;
	bool doctor; /* print what works here, and end */
};

/* Describes the agent as a command without a name, with the table of its options. */
extern const struct command agent_command;

/* Sets the defaults that --help documents. */
void arguments_default(struct arguments *out);

#endif
