/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What this machine can do for us: one row per question, each answered by trying it. doctor prints
 * them; a row that is `needed` decides whether `record` can work here.
 */
#ifndef CLI_CHECKS_H
#define CLI_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

enum check_answer { CHECK_YES, CHECK_NO };

struct check_result {
	enum check_answer answer;
	char detail[512]; /* what was found */
	char remedy[256]; /* what to do about a no; "" if there is nothing to do */
};

struct check {
	const char *name;
	const char *purpose; /* what a yes gives */
	bool needed;         /* record cannot work without */
	void (*probe)(struct check_result *result);
};

/* The rows, in the order to show them. */
extern const struct check check_table[];
extern const size_t check_table_len;

#endif
