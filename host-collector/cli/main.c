/* SPDX-License-Identifier: GPL-2.0-only */
/* vcpuscope: finds the command in the table and runs it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host-collector/cli/commands.h"
#include "host-collector/cli/names_dump.h"
#include "host-collector/decode/worker.h"
#include "host-collector/record/unwind.h"
#include "bpf/isolation/opener.h"
#include "proto/program/suggest.h"

/* In the order of --help and of the manual page, the most used ones first in each group. */
static const struct {
	const char *group; /* begins here; NULL: the group continues */
	const struct command *command;
} rows[] = {
	{"find out why a VM stalls", &command_record},
	{NULL, &command_report},
	{NULL, &command_watch},
	{NULL, &command_top},
	{"look closer at a recording", &command_flame},
	{NULL, &command_query},
	{NULL, &command_export},
	{NULL, &command_import},
	{NULL, &command_events},
	{NULL, &command_clock},
	{NULL, &command_metrics},
	{"watch all VMs of a host", &command_daemon},
	{NULL, &command_list},
	{NULL, &command_ctl},
	{NULL, &command_snapshot},
	{NULL, &command_incidents},
	{NULL, &command_ship},
	{"test for regressions (CI)", &command_compare},
	{NULL, &command_summarize},
	{NULL, &command_simulate},
	{"set up, and report a fault", &command_doctor},
	{NULL, &command_attach},
	{NULL, &command_detach},
	{NULL, &command_config},
	{NULL, &command_hook},
	{NULL, &command_bugreport},
};
enum { N_COMMANDS = sizeof(rows) / sizeof(rows[0]) };

static const struct command itself = {
	.program = "vcpuscope",
	.summary = "why did this guest stall?",
	.exits = "  0  done\n"
		 "  1  something went wrong\n"
		 "  2  wrong usage\n"
		 "  3  not permitted, or this machine cannot do it (`vcpuscope doctor` shows why)\n"
		 "  4  report --fail-on: there is such a stall\n"
		 "  5  report: cannot tell: too little was observed, or --fail-on: no verdict\n"
		 "  compare has its own codes: see `vcpuscope compare --help`\n",
};

enum { SUMMARY_AT = 13 };

static void help_print(FILE *to)
{
	fprintf(to, "vcpuscope " VCPUSCOPE_VERSION ": why did this guest stall?\n\n"
		    "usage: vcpuscope COMMAND [options]\n");
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (rows[i].group)
			fprintf(to, "\n%s:\n", rows[i].group);
		options_print_row(rows[i].command->name, SUMMARY_AT, rows[i].command->summary, to);
	}
	fputs("\n"
	      "`vcpuscope COMMAND --help` shows its options and examples.\n"
	      "`vcpuscope --version` prints the version.\n",
	      to);
	options_print_exits(&itself, to);
}

/* For deploy/pages/make-pages; hidden, because it is of use to nobody else. */
static void options_dump_all(FILE *to)
{
	options_dump(&itself, to);
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (rows[i].group)
			options_dump_record("group", (const char *[]){rows[i].group, NULL}, to);
		options_dump(rows[i].command, to);
	}
	names_dump(to);
}

/* NULL: no command has this name. */
static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (!strcmp(name, rows[i].command->name))
			return rows[i].command;
	}
	return NULL;
}

static int command_unknown(const char *name)
{
	struct suggest s;

	suggest_begin(&s, name, strlen(name));
	for (size_t i = 0; i < N_COMMANDS; i++)
		suggest_try(&s, rows[i].command->name);
	fprintf(stderr, "vcpuscope: unknown command '%s'; ", name);
	if (s.best)
		fprintf(stderr, "did you mean '%s'?\n", s.best);
	else
		fputs("see `vcpuscope --help`\n", stderr);
	return COMMAND_USAGE;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct command *command = command_find(name);

	if (worker_is_meant(argc, argv))
		_exit(worker_main());
	if (opener_is_meant(argc, argv))
		_exit(opener_main(&unwind_body));
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		puts("vcpuscope " VCPUSCOPE_VERSION);
		return COMMAND_OK;
	}
	if (!strcmp(name, "--dump-options")) {
		options_dump_all(stdout);
		return COMMAND_OK;
	}
	if (!strcmp(name, "help") && argc > 2) {
		command = command_find(argv[2]);
		if (!command)
			return command_unknown(argv[2]);
		options_print_help(command, stdout);
		return COMMAND_OK;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		help_print(stdout);
		return COMMAND_OK;
	}
	if (command && options_answer(command, argc - 1, argv + 1))
		return COMMAND_OK;
	if (command)
		return command->run(command, argc - 1, argv + 1);
	if (*name)
		return command_unknown(name);
	help_print(stderr);
	return COMMAND_USAGE;
}
