/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope config check`: checks a configuration file of the daemon. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/cli/commands.h"
#include "host-collector/daemon/config.h"

struct config_arguments {
	const char *what, *file;
};

static const struct option_spec config_option_table[] = {
	{.name = "check",
	 .type = OPTION_OPERAND,
	 .required = true,
	 .offset = offsetof(struct config_arguments, what),
	 .help = "read the file as the daemon does and report the first error"},
	{.name = "FILE",
	 .type = OPTION_OPERAND,
	 .offset = offsetof(struct config_arguments, file),
	 .help = "the file to check (default " DAEMON_CONFIG_PATH ")"},
};

static int config_run(const struct command *self, int argc, char **argv)
{
	struct config_arguments a = {.file = DAEMON_CONFIG_PATH};
	struct daemon_config *config;
	char why[512];
	int err;

	if (options_read(self, argc, argv, &a))
		return COMMAND_USAGE;
	if (strcmp(a.what, "check")) {
		fprintf(stderr, "vcpuscope config: unknown verb '%s'; did you mean 'check'?\n",
			a.what);
		return COMMAND_USAGE;
	}
	config = malloc(sizeof(*config));
	if (!config)
		return COMMAND_TROUBLE;
	err = daemon_config_read(a.file, config, why, sizeof(why));
	if (err)
		fprintf(stderr, "vcpuscope config: %s\n", why);
	else
		printf("%s: good: %zu VM%s, recordings in %s, at most %llu MiB of them\n", a.file,
		       config->n_vms, config->n_vms == 1 ? "" : "s", config->directory,
		       (unsigned long long)(config->disk_budget_bytes >> 20));
	daemon_config_fini(config);
	free(config);
	return err ? COMMAND_TROUBLE : COMMAND_OK;
}

const struct command command_config = {
	.name = "config",
	.summary = "check a configuration file of the daemon",
	.usage = "check [FILE]",
	.options = config_option_table,
	.n_options = sizeof(config_option_table) / sizeof(config_option_table[0]),
	.examples = "  vcpuscope config check\n"
		    "  vcpuscope config check ./vcpuscope.conf && systemctl reload vcpuscope\n",
	.run = config_run,
};
