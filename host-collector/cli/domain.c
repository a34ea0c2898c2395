/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `vcpuscope attach` and `detach` add the agent's channel to a libvirt domain and remove it;
 * `vcpuscope hook` runs as libvirt's hook.
 */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host-collector/cli/commands.h"
#include "host-collector/daemon/config.h"
#include "host-collector/libvirt/hook.h"
#include "proto/sibling.h"

struct domain_arguments {
	const char *domain, *uri, *socket;
};

/* Becomes vcpuscope-libvirt; returns only if that fails. */
static int libvirt_run(const char *what, const struct domain_arguments *a)
{
	char path[PATH_MAX];
	int err = sibling_path("vcpuscope-libvirt", path, sizeof(path));

	if (!err) {
		execl(path, "vcpuscope-libvirt", what, a->uri, a->domain, a->socket, NULL);
		err = -errno;
	}
	fprintf(stderr,
		"vcpuscope %s: %s: %s; install the package vcpuscope-libvirt, or build with "
		"-DVCPUSCOPE_LIBVIRT=ON\n",
		what, path, strerror(-err));
	return COMMAND_TROUBLE;
}

static int attach_run(const struct command *self, int argc, char **argv)
{
	struct domain_arguments a = {.uri = "qemu:///system"};

	if (options_read(self, argc, argv, &a))
		return COMMAND_USAGE;
	return libvirt_run(self->name, &a);
}

#define DOMAIN_EXITS                                                                               \
	"  0  done\n"                                                                              \
	"  1  it failed, or there was nothing to change; a message says why\n"                     \
	"  2  wrong usage\n"

static const struct option_spec attach_option_table[] = {
	{.name = "DOMAIN",
	 .type = OPTION_OPERAND,
	 .required = true,
	 .offset = offsetof(struct domain_arguments, domain),
	 .help = "the name or UUID of the domain"},
	{.name = "connect",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct domain_arguments, uri),
	 .value = "URI",
	 .help = "the URI of libvirt (default qemu:///system)"},
	{.name = "socket",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct domain_arguments, socket),
	 .value = "PATH",
	 .help = "the socket on which the daemon accepts channels (default "
		 "/run/vcpuscope/agents.sock)"},
};

const struct command command_attach = {
	.name = "attach",
	.summary = "add the agent's channel to a libvirt domain, which may be running",
	.usage = "DOMAIN [options]",
	.options = attach_option_table,
	.n_options = sizeof(attach_option_table) / sizeof(attach_option_table[0]),
	.examples =
		"  sudo vcpuscope attach web1   # a virtio-serial port, connected to the daemon\n"
		"  sudo vcpuscope list          # shows the channel, and the agent once it runs in the guest\n",
	.exits = DOMAIN_EXITS,
	.run = attach_run,
};

static const struct option_spec detach_option_table[] = {
	{.name = "DOMAIN",
	 .type = OPTION_OPERAND,
	 .required = true,
	 .offset = offsetof(struct domain_arguments, domain),
	 .help = "the name or UUID of the domain"},
	{.name = "connect",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct domain_arguments, uri),
	 .value = "URI",
	 .help = "the URI of libvirt (default qemu:///system)"},
};

const struct command command_detach = {
	.name = "detach",
	.summary = "remove the agent's channel from a libvirt domain",
	.usage = "DOMAIN [options]",
	.options = detach_option_table,
	.n_options = sizeof(detach_option_table) / sizeof(detach_option_table[0]),
	.examples = "  sudo vcpuscope detach web1\n",
	.exits = DOMAIN_EXITS,
	.run = attach_run,
};

/* ---- the hook ---- */

struct hook_arguments {
	const char *domain, *operation, *sub_operation, *extra, *control;
};

static int hook_run(const struct command *self, int argc, char **argv)
{
	struct hook_arguments a = {.control = DAEMON_CONTROL_PATH};

	if (!options_read(self, argc, argv, &a))
		hook_send(a.control);
	return COMMAND_OK;
}

static const struct option_spec hook_option_table[] = {
	{.name = "DOMAIN",
	 .type = OPTION_OPERAND,
	 .offset = offsetof(struct hook_arguments, domain),
	 .help = "the domain; the arguments are those of libvirt's hooks"},
	{.name = "OPERATION",
	 .type = OPTION_OPERAND,
	 .offset = offsetof(struct hook_arguments, operation),
	 .help = "prepare, start, started, stopped, release, reconnect, migrate, ..."},
	{.name = "SUB-OPERATION",
	 .type = OPTION_OPERAND,
	 .offset = offsetof(struct hook_arguments, sub_operation),
	 .help = "begin or end"},
	{.name = "EXTRA",
	 .type = OPTION_OPERAND,
	 .offset = offsetof(struct hook_arguments, extra),
	 .help = "unused"},
	{.name = "control",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct hook_arguments, control),
	 .value = "PATH",
	 .help = "the daemon's control socket (default " DAEMON_CONTROL_PATH ")"},
};

const struct command command_hook = {
	.name = "hook",
	.summary = "notify the daemon that libvirt's domains changed",
	.usage = "DOMAIN OPERATION SUB-OPERATION EXTRA",
	.options = hook_option_table,
	.n_options = sizeof(hook_option_table) / sizeof(hook_option_table[0]),
	.examples =
		"  vcpuscope hook web1 started begin -   # like /etc/libvirt/hooks/qemu, which runs vcpuscope-hook\n",
	.exits = "  0  always: libvirt does not start a domain if its hook fails\n",
	.run = hook_run,
};
