/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lists the checks of `vcpuscope doctor`: one row for each capability of this machine. A check
 * tries the operation that needs the capability. `record` does not work on a machine where a check
 * with `needed` fails.
 */
#ifndef CLI_CHECKS_H
#define CLI_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

enum check_answer { CHECK_YES, CHECK_NO };

struct check_result {
	enum check_answer answer;
	char detail[512]; /* what the check found */
	/* What is lost and what still works: without the capability, or, if the answer is yes,
	 * without the parts of it that this machine lacks; "" if unknown or nothing. */
	char without[1024];
	char remedy[256]; /* what to do about CHECK_NO; "" if nothing helps */
	bool no_names;    /* set by the caller: `detail` must not have names of VMs and programs */
};

struct check {
	const char *name;
	const char *purpose; /* what the capability is needed for */
	bool needed;         /* whether `record` fails without it */
	void (*probe)(struct check_result *result);
};

/* The checks, in the order of the output. */
extern const struct check check_table[];
extern const size_t check_table_len;

#endif
