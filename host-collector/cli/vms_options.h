/* SPDX-License-Identifier: GPL-2.0-only */
/* The options that select the VMs of one recording, and the channels to their agents. */
#ifndef CLI_VMS_OPTIONS_H
#define CLI_VMS_OPTIONS_H

#include "host-collector/cli/channel_options.h"
#include "host-collector/cli/feed.h"

struct vms_arguments {
	struct option_list vms, pids, channels; /* vms or pids; channels in the same order */
	const char *qmp, *control;
};

/* at: offset of a struct vms_arguments in the command's struct */
#define VMS_OPTION_ROWS(at)                                                                        \
	{.name = "pid",                                                                            \
	 .letter = 'p',                                                                            \
	 .type = OPTION_LIST,                                                                      \
	 .offset = (at) + offsetof(struct vms_arguments, pids),                                    \
	 .value = "N",                                                                             \
	 .help = FEED_PID_HELP "; may be repeated for several VMs"},                               \
		{.name = "qmp",                                                                    \
		 .type = OPTION_STRING,                                                            \
		 .offset = (at) + offsetof(struct vms_arguments, qmp),                             \
		 .value = "PATH",                                                                  \
		 .help = FEED_QMP_HELP},                                                           \
		{.name = "vm",                                                                     \
		 .type = OPTION_LIST,                                                              \
		 .offset = (at) + offsetof(struct vms_arguments, vms),                             \
		 .value = "NAME",                                                                  \
		 .help = FEED_VM_HELP "; may be repeated for several VMs"},                        \
		{.name = "control",                                                                \
		 .type = OPTION_STRING,                                                            \
		 .offset = (at) + offsetof(struct vms_arguments, control),                         \
		 .value = "PATH",                                                                  \
		 .help = FEED_CONTROL_HELP},                                                       \
	{                                                                                          \
		.name = "channel", .type = OPTION_LIST,                                            \
		.offset = (at) + offsetof(struct vms_arguments, channels), .value = "ADDRESS",     \
		.help = CHANNEL_HELP "; with several VMs, give one for each, in their order; "     \
				     "`none`: the VM has no agent"                                 \
	}

/* Returns the number of VMs that the arguments select, 0 if they name none. */
size_t vms_arguments_count(const struct vms_arguments *a);
/* Returns "" or the error in the arguments, for the user. */
const char *vms_arguments_check(const struct vms_arguments *a, bool no_guest);
/* Returns the channel of VM number `index`, from 0; NULL: it has none. */
const char *vms_arguments_channel(const struct vms_arguments *a, size_t index);
/* Finds the VMs, of which there are at most FEED_VMS_MAX, and fills in a place for each. Returns 0
 * or -errno with one line in `why`: as feed_find(), and -EINVAL if two arguments select the same
 * VM, or if several VMs are selected and the daemon watches one of them. */
int vms_arguments_find(const struct vms_arguments *a, struct feed_place *places, char *why,
		       size_t why_bytes);

#endif
