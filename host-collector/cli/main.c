/* SPDX-License-Identifier: GPL-2.0-only */
/* vcpuscope: finds the command in the table and runs it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host-collector/cli/commands.h"
#include "host-collector/decode/worker.h"
#include "host-collector/record/unwind.h"
#include "bpf/isolation/opener.h"

static const struct command *const commands[] = {
	&command_record,  &command_report,   &command_watch,   &command_top,
	&command_flame,   &command_clock,    &command_compare, &command_summarize,
	&command_metrics, &command_simulate, &command_import,  &command_export,
	&command_doctor,  &command_daemon,   &command_ctl,     &command_snapshot,
	&command_list,    &command_attach,   &command_detach,  &command_hook,
	&command_config,
};
enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void help_print(FILE *to)
{
	fprintf(to, "vcpuscope " VCPUSCOPE_VERSION ": why did this guest stall?\n\n"
		    "usage: vcpuscope COMMAND [options]\n\n");
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	fprintf(to,
		"\n"
		"`vcpuscope COMMAND --help` shows its options and examples.\n"
		"`vcpuscope --version` prints the version.\n\n"
		"exit codes: 0 done; 1 something went wrong; 2 wrong usage; 3 not permitted, or this\n"
		"machine cannot do it (`vcpuscope doctor` says what is missing); 5 report: too little\n"
		"was observed to say that a vCPU had no stall. compare has codes of its own.\n");
}

/* For deploy/pages/make-pages; hidden, because it is of use to nobody else. */
static void options_dump_all(FILE *to)
{
	fprintf(to, "program\tvcpuscope\t" VCPUSCOPE_VERSION "\twhy did this guest stall?\n");
	for (size_t i = 0; i < N_COMMANDS; i++)
		options_dump(commands[i], to);
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (worker_is_meant(argc, argv))
		_exit(worker_main());
	if (opener_is_meant(argc, argv))
		_exit(opener_main(&unwind_body));
	if (!strcmp(name, "--version")) {
		puts("vcpuscope " VCPUSCOPE_VERSION);
		return COMMAND_OK;
	}
	if (!strcmp(name, "--dump-options")) {
		options_dump_all(stdout);
		return COMMAND_OK;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		help_print(stdout);
		return COMMAND_OK;
	}
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (strcmp(name, commands[i]->name))
			continue;
		if (wants_help(argc - 1, argv + 1)) {
			options_print_help(commands[i], stdout);
			return COMMAND_OK;
		}
		return commands[i]->run(commands[i], argc - 1, argv + 1);
	}
	if (*name)
		fprintf(stderr, "vcpuscope: %s: no such command; see `vcpuscope --help`\n", name);
	else
		help_print(stderr);
	return COMMAND_USAGE;
}
