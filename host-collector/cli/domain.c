/* SPDX-License-Identifier: GPL-2.0-only */
/* vcpuscope attach, detach: the agent's channel in a domain of libvirt; vcpuscope hook: what
 * libvirt's hook runs. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "host-collector/cli/commands.h"
#include "host-collector/daemon/config.h"
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
	fprintf(stderr, "vcpuscope %s: %s: %s; it comes with vcpuscope\n", what, path,
		strerror(-err));
	return COMMAND_TROUBLE;
}

static int attach_run(const struct command *self, int argc, char **argv)
{
	struct domain_arguments a = {.uri = "qemu:///system"};

	if (options_parse_or_say(self, argc, argv, &a))
		return COMMAND_USAGE;
	return libvirt_run(self->name, &a);
}

static const struct option_spec attach_option_table[] = {
	{"DOMAIN", OPTION_OPERAND, offsetof(struct domain_arguments, domain), NULL,
	 "its name or UUID", true},
	{"connect", OPTION_STRING, offsetof(struct domain_arguments, uri), "URI",
	 "libvirt's (default qemu:///system)", false},
	{"socket", OPTION_STRING, offsetof(struct domain_arguments, socket), "PATH",
	 "where the daemon waits for channels (default /run/vcpuscope/agents.sock)", false},
};

const struct command command_attach = {
	.name = "attach",
	.summary = "give a domain of libvirt the agent's channel, also while it runs",
	.usage = "DOMAIN [options]",
	.options = attach_option_table,
	.n_options = sizeof(attach_option_table) / sizeof(attach_option_table[0]),
	.examples =
		"  sudo vcpuscope attach web1   # a virtio-serial port, connected to the daemon\n",
	.run = attach_run,
};

static const struct option_spec detach_option_table[] = {
	{"DOMAIN", OPTION_OPERAND, offsetof(struct domain_arguments, domain), NULL,
	 "its name or UUID", true},
	{"connect", OPTION_STRING, offsetof(struct domain_arguments, uri), "URI",
	 "libvirt's (default qemu:///system)", false},
};

const struct command command_detach = {
	.name = "detach",
	.summary = "take the agent's channel from a domain of libvirt",
	.usage = "DOMAIN [options]",
	.options = detach_option_table,
	.n_options = sizeof(detach_option_table) / sizeof(detach_option_table[0]),
	.examples = "  sudo vcpuscope detach web1\n",
	.run = attach_run,
};

/* ---- the hook ---- */

enum { HOOK_MAX_MS = 40 };

struct hook_arguments {
	const char *domain, *operation, *sub_operation, *extra, *control;
};

static void on_too_late(int number)
{
	(void)number;
	_exit(0);
}

/* libvirt waits for its hook and starts no domain if it fails: whatever happens here, it is over at
 * once and well. Nothing is read: neither the domain's XML nor an answer. */
static int hook_run(const struct command *self, int argc, char **argv)
{
	static const char request[] = "{\"command\":\"rescan\"}\n";
	const struct itimerval limit = {.it_value.tv_usec = HOOK_MAX_MS * 1000};
	struct hook_arguments a = {.control = DAEMON_CONTROL_PATH};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	signal(SIGALRM, on_too_late);
	setitimer(ITIMER_REAL, &limit, NULL);
	if (options_parse_or_say(self, argc, argv, &a) ||
	    strlen(a.control) >= sizeof(address.sun_path))
		return COMMAND_OK;
	strcpy(address.sun_path, a.control);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		(void)!send(fd, request, sizeof(request) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	return COMMAND_OK;
}

static const struct option_spec hook_option_table[] = {
	{"DOMAIN", OPTION_OPERAND, offsetof(struct hook_arguments, domain), NULL,
	 "as libvirt calls its hooks: the domain,", false},
	{"OPERATION", OPTION_OPERAND, offsetof(struct hook_arguments, operation), NULL,
	 "prepare, start, started, stopped, release, reconnect, migrate, ..", false},
	{"SUB-OPERATION", OPTION_OPERAND, offsetof(struct hook_arguments, sub_operation), NULL,
	 "begin, end", false},
	{"EXTRA", OPTION_OPERAND, offsetof(struct hook_arguments, extra), NULL, "-", false},
	{"control", OPTION_STRING, offsetof(struct hook_arguments, control), "PATH",
	 "the daemon's control socket (default " DAEMON_CONTROL_PATH ")", false},
};

const struct command command_hook = {
	.name = "hook",
	.summary = "tell the daemon that libvirt's domains changed; never fails, never waits",
	.usage = "DOMAIN OPERATION SUB-OPERATION EXTRA",
	.options = hook_option_table,
	.n_options = sizeof(hook_option_table) / sizeof(hook_option_table[0]),
	.examples = "  vcpuscope hook web1 started begin -   # as /etc/libvirt/hooks/qemu does\n",
	.run = hook_run,
};
