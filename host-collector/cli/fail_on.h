/* SPDX-License-Identifier: GPL-2.0-only */
/* Implements --fail-on: the stalls at which `report` ends with COMMAND_STALL. */
#ifndef CLI_FAIL_ON_H
#define CLI_FAIL_ON_H

#include "host-collector/analyze/stall/report.h"
#include "proto/program/options.h"

struct fail_on {
	bool any;          /* any stall */
	uint32_t verdicts; /* bits per enum verdict */
};

/* Parses "stall" or names of verdicts, separated by commas. NULL selects no stall. Returns 0, or
 * -EINVAL and one line in `why`. */
int fail_on_parse(const char *text, struct fail_on *out, char *why, size_t why_bytes);
/* Returns COMMAND_STALL if the report has such a stall; COMMAND_CANNOT_TELL if there may have been
 * one that was not observed, or if a stall without a verdict may be one; else COMMAND_OK. */
enum command_exit fail_on_exit(const struct fail_on *f, const struct report *r);

#endif
