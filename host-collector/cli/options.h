/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Options as tables: a command lists what it takes (name, type, where the value goes, help), and
 * parsing, checking and the help text all come from that one list.
 *
 * Long options only: `--name VALUE` or `--name=VALUE`. Durations are written with a unit (`250us`,
 * `100ms`, `10s`, `5m`) and stored as nanoseconds. A list takes all arguments up to the next
 * option.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_type {
	OPTION_FLAG = 1, /* bool; takes no value */
	OPTION_STRING,   /* const char *, into argv */
	OPTION_CHOICE,   /* const char *, one of the words of `value` ("text|json") */
	OPTION_NUMBER,   /* uint64_t, decimal */
	OPTION_DURATION, /* uint64_t nanoseconds, greater than zero */
	OPTION_PERCENT,  /* uint64_t, whole percent from 0 to 100; "90%" */
	OPTION_OPERAND,  /* const char *, the next argument that is no option */
	OPTION_LIST,     /* struct option_list, at least one value */
	OPTION_OPERANDS, /* struct option_list, all arguments that no other row takes; the last row
			    of operands */
};

enum { OPTION_LIST_MAX = 1024 };

struct option_list {
	const char *items[OPTION_LIST_MAX]; /* into argv */
	size_t n;
};

struct option_spec {
	const char *name; /* without the dashes; an operand: as shown in the usage line */
	enum option_type type;
	size_t offset;     /* of the field in the command's own struct */
	const char *value; /* what stands for the value in the help; NULL for flags and operands */
	const char *help;  /* one line of any length: wrap.h breaks it */
	bool required;
};

/* How a command ends: the exit codes that `vcpuscope --help` documents. */
enum command_exit {
	COMMAND_OK = 0,
	COMMAND_TROUBLE = 1,
	COMMAND_USAGE = 2,
	COMMAND_UNSUPPORTED = 3, /* not permitted, or this machine cannot do it */
	COMMAND_CANNOT_TELL = 5, /* report: too little was observed to say that there was no stall */
};

struct command {
	const char *name;
	const char *summary; /* one line, no full stop */
	const char *usage; /* what follows the name in the usage line; NULL: made from the table */
	const char *examples; /* whole lines, each ended by a newline */
	const struct option_spec *options;
	size_t n_options;
	/* argv[0] is the command's name. Returns enum command_exit. */
	int (*run)(const struct command *self, int argc, char **argv);
};

/*
 * Parses argv[1..argc-1] into the struct at `out`, whose fields keep the values they have (the
 * defaults) unless given. 0, or -EINVAL with one line in `why` that says what is wrong.
 */
int options_parse(const struct command *command, int argc, char **argv, void *out, char *why,
		  size_t why_bytes);
/* The same for a command's run(): says what is wrong on stderr. 0 or COMMAND_USAGE. */
int options_parse_or_say(const struct command *command, int argc, char **argv, void *out);
/* Usage line, options, examples. */
void options_print_help(const struct command *command, FILE *to);
/* The same for make-pages (deploy/pages), which turns it into manual pages and completion: one
 * record a line, its fields parted by tabs. */
void options_dump(const struct command *command, FILE *to);

#endif
