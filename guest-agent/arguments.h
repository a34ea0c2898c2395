/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line of vcpuscope-agent: one table row per option, from which --help is printed. */
#ifndef AGENT_ARGUMENTS_H
#define AGENT_ARGUMENTS_H

#include <stdbool.h>
#include <stdio.h>

struct arguments {
	const char *connect; /* borrowed from argv */
	const char *backend; /* so is this */
	const char *psk;     /* and this; NULL: none */
	unsigned int interval_ms;
	unsigned int backlog_mib;
	unsigned int ring_mib;
	unsigned int run_for_s; /* 0: until told to stop */
	unsigned int sample_hz; /* 0: no stacks */
	unsigned int max_sample_hz;
	unsigned int handlers_over_us; /* 0: every handler is told */
	unsigned int max_cpu;          /* percent of one CPU */
	unsigned int max_memory;       /* MiB */
	bool no_host_config, no_kernel_log, no_realtime, insecure_plain_tcp;
	bool help, version;
};

/* Fills `out` with defaults and what argv says. 0 or -EINVAL with one line in `why`. */
int arguments_parse(int argc, char **argv, struct arguments *out, char *why, size_t why_bytes);
void arguments_help(FILE *to);
/* The same for deploy/pages/make-pages; the form is that of options_dump of the collector. */
void arguments_dump(FILE *to);

#endif
