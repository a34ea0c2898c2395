/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope daemon`: watches many VMs; `vcpuscope ctl` controls it. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "host-collector/cli/commands.h"
#include "host-collector/cli/descriptors.h"
#include "host-collector/cli/detach.h"
#include "host-collector/daemon/daemon.h"
#include "host-collector/daemon/notify.h"
#include "host-collector/daemon/vitals.h"
#include "host-collector/util/escape.h"
#include "proto/log_writer.h"
#include "proto/program/main_loop.h"

enum { LOG_FLUSH_MS = 2000 };

struct daemon_arguments {
	const char *config, *control, *directory;
};

static const struct option_spec daemon_option_table[] = {
	{.name = "config",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct daemon_arguments, config),
	 .value = "FILE",
	 .help = "the configuration file (default " DAEMON_CONFIG_PATH ", if it exists)"},
	{.name = "control",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct daemon_arguments, control),
	 .value = "PATH",
	 .help = "the control socket (default: the key control of the configuration)"},
	{.name = "directory",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct daemon_arguments, directory),
	 .value = "PATH",
	 .help = "the directory of the recordings (default: the key directory of the "
		 "configuration)"},
};

struct daemon_run {
	struct daemon_arguments arguments;
	struct daemon_config config;
	struct vm_daemon *daemon;
	struct log_writer *log;
	struct main_loop loop;
};

static void on_say(void *context, const char *line)
{
	struct daemon_run *r = context;

	log_writer_line(r->log, "%s", escape(line).text);
}

static void on_ready(void *context)
{
	(void)context;
	notify_send("READY=1");
}

static void on_hangup(void *context, int number)
{
	struct daemon_run *r = context;
	char why[512] = "";

	(void)number;
	notify_send("RELOADING=1");
	if (vm_daemon_reload(r->daemon, why, sizeof(why)))
		log_writer_line(r->log, "vcpuscope daemon: not reloaded: %s", why);
	else
		log_writer_line(r->log, "reloaded %s", r->arguments.config);
	notify_send("READY=1");
}

static void on_watchdog(void *context)
{
	(void)context;
	notify_send("WATCHDOG=1");
}

/* Fills r->config. 0 or an exit code. */
static int config_load(struct daemon_run *r)
{
	struct daemon_arguments *a = &r->arguments;
	char why[512];

	if (!a->config && !access(DAEMON_CONFIG_PATH, F_OK))
		a->config = DAEMON_CONFIG_PATH;
	daemon_config_default(&r->config);
	if (a->config && daemon_config_read(a->config, &r->config, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope daemon: %s\n", why);
		return COMMAND_USAGE;
	}
	if (a->control)
		snprintf(r->config.control, sizeof(r->config.control), "%s", a->control);
	if (a->directory)
		snprintf(r->config.directory, sizeof(r->config.directory), "%s", a->directory);
	return 0;
}

static int handles_open(struct daemon_run *r)
{
	const uint64_t watchdog_ms = notify_watchdog_ms();
	int err = main_loop_stop_on_signals(&r->loop);

	if (!err)
		err = main_loop_on_signal(&r->loop, SIGHUP, on_hangup);
	if (!err && watchdog_ms)
		err = main_loop_every(&r->loop, watchdog_ms, watchdog_ms, on_watchdog);
	return err;
}

static int daemon_loop(struct daemon_run *r)
{
	const struct vm_daemon_options options = {.config_path = r->arguments.config,
						  .config = &r->config,
						  .say = on_say,
						  .ready = on_ready,
						  .context = r};
	struct detach detach;
	char why[512];
	int err = vm_daemon_open(&r->loop.uv, &options, &r->daemon, why, sizeof(why));

	if (err) {
		log_writer_line(r->log, "vcpuscope daemon: %s", why);
		main_loop_close(&r->loop);
		return command_exit_of(err);
	}
	err = handles_open(r);
	if (err)
		log_writer_line(r->log, "vcpuscope daemon: %s", strerror(-err));
	else
		log_writer_line(r->log, "listening on %s; %zu VMs configured", r->config.control,
				r->config.n_vms);
	if (!err)
		main_loop_run(&r->loop);
	notify_send("STOPPING=1");
	detach_begin(&detach);
	vm_daemon_close(r->daemon);
	main_loop_close(&r->loop);
	if (!detach_end(&detach, DETACH_WAIT_MS))
		fprintf(stderr, DETACH_GOES_ON);
	return command_exit_of(err);
}

static int daemon_run(const struct command *self, int argc, char **argv)
{
	struct daemon_run *r = calloc(1, sizeof(*r));
	int result, err;

	if (!r)
		return COMMAND_TROUBLE;
	memory_lean();
	descriptors_allow();
	result = options_read(self, argc, argv, &r->arguments) ? COMMAND_USAGE : config_load(r);
	if (result)
		goto out;
	err = main_loop_open(&r->loop, r, NULL);
	if (err) {
		fprintf(stderr, "vcpuscope daemon: %s\n", strerror(-err));
		result = COMMAND_TROUBLE;
		goto out;
	}
	log_writer_new(STDERR_FILENO, &r->log); /* without, lines are written at once */
	result = daemon_loop(r);
	log_writer_free(r->log, LOG_FLUSH_MS);
out:
	daemon_config_fini(&r->config);
	free(r);
	return result;
}

const struct command command_daemon = {
	.name = "daemon",
	.summary = "watch all VMs of this host; `vcpuscope ctl` controls it",
	.usage = "[options]",
	.options = daemon_option_table,
	.n_options = sizeof(daemon_option_table) / sizeof(daemon_option_table[0]),
	.examples =
		"  sudo vcpuscope daemon                # with " DAEMON_CONFIG_PATH "\n"
		"  sudo vcpuscope daemon --config ./vcpuscope.conf --control /tmp/vcpuscope.sock\n"
		"  sudo vcpuscope ctl attach web1 qmp=/run/web1.qmp channel=/run/web1.sock\n",
	.run = daemon_run,
};
