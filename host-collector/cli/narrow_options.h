/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options that narrow what a command shows of a recording: --vm, --vcpu, --task, --pid select
 * rows; --from, --to and --around select a window of time.
 */
#ifndef CLI_NARROW_OPTIONS_H
#define CLI_NARROW_OPTIONS_H

#include "host-collector/model/narrow.h"
#include "proto/program/options.h"

struct narrow_arguments {
	const char *vm, *task, *from, *to;
	uint64_t vcpu, pid, around; /* UINT64_MAX: not given */
	const char *to_name;        /* the option that sets `to` */
};

/* end: name of the option for the end of the window, "to" unless the command has another --to */
#define NARROW_ARGUMENTS(end)                                                                      \
	{                                                                                          \
		.vcpu = UINT64_MAX, .pid = UINT64_MAX, .around = UINT64_MAX, .to_name = "--" end   \
	}

/* at: offset of a struct narrow_arguments in the command's struct */
#define NARROW_OPTION_ROWS(at, end)                                                                 \
	{.name = "vm",                                                                              \
	 .type = OPTION_STRING,                                                                     \
	 .offset = (at) + offsetof(struct narrow_arguments, vm),                                    \
	 .value = "NAME",                                                                           \
	 .help = "only this VM, by name or number"},                                                \
		{.name = "vcpu",                                                                    \
		 .type = OPTION_NUMBER,                                                             \
		 .offset = (at) + offsetof(struct narrow_arguments, vcpu),                          \
		 .value = "N",                                                                      \
		 .help = "only this vCPU, and the guest CPU that it runs"},                         \
		{.name = "task",                                                                    \
		 .type = OPTION_STRING,                                                             \
		 .offset = (at) + offsetof(struct narrow_arguments, task),                          \
		 .value = "NAME",                                                                   \
		 .help = "only this task, by name or PID: a task of the guest, or the culprit on "  \
			 "the host"},                                                               \
		{.name = "pid",                                                                     \
		 .type = OPTION_NUMBER,                                                             \
		 .offset = (at) + offsetof(struct narrow_arguments, pid),                           \
		 .value = "N",                                                                      \
		 .help = "only the task with this PID",                                             \
		 .min = 1,                                                                          \
		 .max = INT32_MAX},                                                                 \
		{.name = "from",                                                                    \
		 .type = OPTION_STRING,                                                             \
		 .offset = (at) + offsetof(struct narrow_arguments, from),                          \
		 .value = "TIME",                                                                   \
		 .help = "only the time from TIME on: since the start of the recording, as +8.5s "  \
			 "or 850ms, or wall-clock time, as 10:34:57.5 or \"2026-11-22 10:34:57\""}, \
		{.name = end,                                                                       \
		 .type = OPTION_STRING,                                                             \
		 .offset = (at) + offsetof(struct narrow_arguments, to),                            \
		 .value = "TIME",                                                                   \
		 .help = "only the time before TIME, written as for --from"},                       \
	{                                                                                           \
		.name = "around", .type = OPTION_NUMBER,                                            \
		.offset = (at) + offsetof(struct narrow_arguments, around), .value = "N",           \
		.help = "only the time of stall number N of `vcpuscope report`, extended on each "  \
			"side by the length of the stall (at least 100ms, at most 1s)",             \
		.min = 1, .max = UINT32_MAX                                                         \
	}

/* The stalls that --around counts; all zero: those of `vcpuscope report` without options. */
struct narrow_stalls {
	int64_t than_ns;
	bool all;
};

/* Returns whether any of the options was given. */
bool narrow_is_given(const struct narrow_arguments *a);
/*
 * Checks the options and fills in *out, which borrows the texts. Reads the recording once if a
 * window is selected. Returns an exit code; on failure it has printed one line. command: the name
 * of the command, for this line.
 */
int narrow_read(const char *command, const struct narrow_arguments *a, const char *recording,
		const struct narrow_stalls *stalls, struct narrow *out);

#endif
