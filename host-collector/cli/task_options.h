/* SPDX-License-Identifier: GPL-2.0-only */
/* The options that choose tasks that belong to no VM, so that their events are recorded. */
#ifndef CLI_TASK_OPTIONS_H
#define CLI_TASK_OPTIONS_H

#include "host-collector/record/watched_tasks.h"
#include "proto/program/options.h"

struct task_arguments {
	struct option_list tids, cgroups, command;
};

/* at: offset of a struct task_arguments in the command's struct */
#define TASK_OPTION_ROWS(at)                                                                       \
	{.name = "tid",                                                                            \
	 .type = OPTION_LIST,                                                                      \
	 .offset = (at) + offsetof(struct task_arguments, tids),                                   \
	 .value = "TID",                                                                           \
	 .help = "record the -e events of this thread, too; needs no VM; may be repeated"},        \
	{                                                                                          \
		.name = "cgroup", .type = OPTION_LIST,                                             \
		.offset = (at) + offsetof(struct task_arguments, cgroups), .value = "PATH",        \
		.help = "record the -e events of all tasks in this cgroup, too: the path of a "    \
			"directory of cgroup v2; needs no VM; may be repeated"                     \
	}
/* The last row of a table. */
#define TASK_COMMAND_ROW(at)                                                                       \
	{                                                                                          \
		.name = "COMMAND", .type = OPTION_OPERANDS,                                        \
		.offset = (at) + offsetof(struct task_arguments, command),                         \
		.help = "start this command, with its arguments, record the -e events of all "     \
			"its processes, and end when it ends; needs no VM; stands after --, at "   \
			"the end"                                                                  \
	}

/* Returns whether any of them was given. */
bool task_arguments_any(const struct task_arguments *a);
/* Returns "" or the error in the arguments, for the user. argv: that of the command line. */
const char *task_arguments_check(const struct task_arguments *a, char **argv);
/* Finds the tasks; `process`: the process of the command; 0: none. Sets *out to NULL if no task was
 * chosen. Returns as watched_tasks_open(). */
int task_arguments_open(const struct task_arguments *a, pid_t process, struct watched_tasks **out,
			char *why, size_t why_bytes);

#endif
