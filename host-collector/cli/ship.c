/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope ship`: delivers what the daemon put into its outbox. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock/sample.h"
#include "host-collector/cli/commands.h"
#include "host-collector/daemon/config.h"
#include "host-collector/fleet/shipper.h"

enum { LOOK_US = 500000 };

struct ship_arguments {
	const char *config, *outbox, *command, *user;
	bool once, verbose;
};

static const struct option_spec ship_option_table[] = {
	{.name = "config",
	 .type = OPTION_FILE,
	 .offset = offsetof(struct ship_arguments, config),
	 .value = "FILE",
	 .help = "the daemon's configuration (default " DAEMON_CONFIG_PATH ")"},
	{.name = "outbox",
	 .type = OPTION_FILE,
	 .offset = offsetof(struct ship_arguments, outbox),
	 .value = "DIR",
	 .help = "the outbox (default: the one of the configuration)"},
	{.name = "command",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct ship_arguments, command),
	 .value = "COMMAND",
	 .help = "the command, instead of `ship` in the configuration"},
	{.name = "user",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct ship_arguments, user),
	 .value = "USER",
	 .help = "as root: become this user, instead of `ship_user` in the configuration"},
	{.name = "once",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct ship_arguments, once),
	 .help = "deliver the complete files and end; exit code 1 if a delivery failed"},
	{.name = "verbose",
	 .letter = 'v',
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct ship_arguments, verbose),
	 .help = "show what the command prints; it may contain secrets"},
};

static volatile sig_atomic_t ends;

static void on_signal(int number)
{
	(void)number;
	ends = 1;
}

static void on_say(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "vcpuscope ship: %s\n", line);
}

/* Gives up root's rights for good. Returns 0 or -errno with one line in `why`. */
static int user_become(const char *name, char *why, size_t why_bytes)
{
	const struct passwd *user = geteuid() ? NULL : getpwnam(name);

	if (geteuid())
		return 0;
	if (!user || !user->pw_uid) {
		snprintf(why, why_bytes,
			 "there is no user %s, or it is root: create one (useradd --system %s), or "
			 "set ship_user",
			 name, name);
		return -ENOENT;
	}
	if (setgroups(0, NULL) || setgid(user->pw_gid) || setuid(user->pw_uid)) {
		snprintf(why, why_bytes, "cannot become %s: %s", name, strerror(errno));
		return -EPERM;
	}
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

static int config_get(const struct ship_arguments *a, struct daemon_config *config, char *outbox,
		      size_t outbox_bytes)
{
	const char *path = a->config;
	char why[512];

	daemon_config_default(config);
	if (!path && !access(DAEMON_CONFIG_PATH, F_OK))
		path = DAEMON_CONFIG_PATH;
	if (path && daemon_config_read(path, config, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope ship: %s\n", why);
		return -EINVAL;
	}
	if (a->command)
		snprintf(config->ship, sizeof(config->ship), "%s", a->command);
	if (a->user)
		snprintf(config->ship_user, sizeof(config->ship_user), "%s", a->user);
	snprintf(outbox, outbox_bytes, "%s%s", a->outbox ? a->outbox : config->directory,
		 a->outbox ? "" : "/outbox");
	if (config->ship[0])
		return 0;
	fprintf(stderr, "vcpuscope ship: no command: set ship in the configuration, or give "
			"--command\n");
	return -EINVAL;
}

static int all_ship(struct shipper *s, bool once)
{
	while (!ends) {
		if (shipper_turn(s, clock_monotonic_ms()))
			continue;
		if (once)
			return shipper_waiting(s) ? COMMAND_TROUBLE : COMMAND_OK;
		usleep(LOOK_US);
	}
	return COMMAND_OK;
}

static int ship_run(const struct command *self, int argc, char **argv)
{
	static struct daemon_config config; /* too large for the stack */
	struct ship_arguments a = {0};
	struct shipper_options options = {.say = on_say};
	const struct sigaction action = {.sa_handler = on_signal};
	char outbox[DAEMON_PATH_MAX + 16], why[512];
	struct shipper *s = NULL;
	int err;

	if (options_read(self, argc, argv, &a))
		return COMMAND_USAGE;
	if (config_get(&a, &config, outbox, sizeof(outbox))) {
		daemon_config_fini(&config);
		return COMMAND_USAGE;
	}
	options.outbox = outbox;
	options.command = config.ship;
	options.timeout_ms = config.ship_timeout_ns / 1000000;
	options.verbose = a.verbose;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	err = shipper_open(&options, &s, why, sizeof(why));
	if (!err)
		err = user_become(config.ship_user, why, sizeof(why));
	if (err)
		fprintf(stderr, "vcpuscope ship: %s\n", why);
	else
		err = all_ship(s, a.once);
	shipper_close(s);
	daemon_config_fini(&config);
	return err < 0 ? command_exit_of(err) : err;
}

const struct command command_ship = {
	.name = "ship",
	.summary = "deliver the daemon's records to a central engine",
	.options = ship_option_table,
	.n_options = sizeof(ship_option_table) / sizeof(ship_option_table[0]),
	.notes =
		"The command gets the file as its last argument, and runs in the outbox, without a\n"
		"shell. Exit code 0 means delivered; otherwise it is tried again.\n",
	.examples = "  vcpuscope ship --once --command '/usr/bin/rclone copy --immutable'\n"
		    "  vcpuscope ship                     # what vcpuscope-ship.service runs\n",
	.run = ship_run,
};
