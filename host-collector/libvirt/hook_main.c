/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vcpuscope-hook [--control PATH] [arguments of libvirt's hooks]: does the same as `vcpuscope
 * hook`, but needs only libc. Loading the libraries of vcpuscope takes 8 ms, and much longer while
 * the start of a domain uses all CPUs.
 */
#include <stddef.h>

#include "host-collector/libvirt/hook.h"
#include "host-collector/util/paths.h"
#include "proto/program/options.h"

struct hook_arguments {
	const char *control;
	struct option_list libvirt; /* what libvirt gives its hooks; unused */
};

static const struct option_spec hook_option_table[] = {
	{.name = "control",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct hook_arguments, control),
	 .value = "PATH",
	 .help = "the daemon's control socket (default " DAEMON_CONTROL_PATH ")"},
	{.name = "ARGUMENT",
	 .type = OPTION_OPERANDS,
	 .offset = offsetof(struct hook_arguments, libvirt),
	 .help = "as libvirt calls its hooks: DOMAIN OPERATION SUB-OPERATION EXTRA"},
};

static const struct command hook_command = {
	.program = "vcpuscope-hook",
	.summary = "notify the daemon that libvirt's domains changed; never fails, never waits",
	.options = hook_option_table,
	.n_options = sizeof(hook_option_table) / sizeof(hook_option_table[0]),
};

int main(int argc, char **argv)
{
	struct hook_arguments a = {.control = DAEMON_CONTROL_PATH};

	if (options_answer(&hook_command, argc, argv))
		return COMMAND_OK;
	options_read(&hook_command, argc, argv, &a); /* a mistake must not stop a domain */
	hook_send(a.control);
	return COMMAND_OK;
}
