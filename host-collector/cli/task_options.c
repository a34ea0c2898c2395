/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/task_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/program/value.h"

bool task_arguments_any(const struct task_arguments *a)
{
	return a->tids.n || a->cgroups.n || a->command.n;
}

/* 0: no thread id */
static pid_t tid_of(const char *text)
{
	uint64_t tid;

	return number_parse(text, &tid) || tid > INT32_MAX ? 0 : (pid_t)tid;
}

const char *task_arguments_check(const struct task_arguments *a, char **argv)
{
	for (size_t i = 0; i < a->tids.n; i++) {
		if (!tid_of(a->tids.items[i]))
			return "--tid: expected a thread ID";
	}
	if (!a->command.n)
		return "";
	if (a->command.n == OPTION_LIST_MAX)
		return "the command has too many arguments"; /* a NULL must end them */
	/* A word that was forgotten to be an option's value must not be run. */
	while (*argv && *argv != a->command.items[0])
		argv++;
	return *argv && !strcmp(argv[-1], "--") ? "" : "a command stands after --, at the end";
}

int task_arguments_open(const struct task_arguments *a, pid_t process, struct watched_tasks **out,
			char *why, size_t why_bytes)
{
	struct watched_tasks_options options = {.n_threads = a->tids.n,
						.cgroups = a->cgroups.items,
						.n_cgroups = a->cgroups.n,
						.process = process};
	pid_t *tids;
	int err;

	*out = NULL;
	if (!task_arguments_any(a))
		return 0;
	tids = calloc(a->tids.n + 1, sizeof(*tids));
	if (!tids) {
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	for (size_t i = 0; i < a->tids.n; i++)
		tids[i] = tid_of(a->tids.items[i]);
	options.threads = tids;
	err = watched_tasks_open(&options, out, why, why_bytes);
	free(tids);
	return err;
}
