/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parses a command's options. Each command has one table of its options (name, type, destination,
 * help); parsing, checks and the help text use this table.
 *
 * Options are long: `--name VALUE` or `--name=VALUE`; -o, -i, -b and -n are short for --output,
 * --interval, --batch and --count. A duration has a unit (`250us`, `100ms`, `10s`, `5m`) and is
 * stored in nanoseconds. A list takes all arguments up to the next that starts with `-`. `--` ends
 * the options.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_type {
	OPTION_FLAG = 1, /* bool; takes no value */
	OPTION_STRING,   /* const char *, points into argv */
	OPTION_CHOICE,   /* const char *, one of the words of `value` ("text|json") */
	OPTION_NUMBER,   /* uint64_t, decimal */
	OPTION_DURATION, /* uint64_t nanoseconds, greater than zero */
	OPTION_PERCENT,  /* uint64_t, written as a whole percentage from 0% to 100% */
	OPTION_OPERAND,  /* const char *, the next argument that is not an option */
	OPTION_LIST,     /* struct option_list, at least one value */
	OPTION_OPERANDS, /* struct option_list, all further operands; last in the table */
};

enum { OPTION_LIST_MAX = 1024 };

struct option_list {
	const char *items[OPTION_LIST_MAX]; /* point into argv */
	size_t n;
};

struct option_spec {
	const char *name; /* without the dashes; for an operand, its name in the usage line */
	enum option_type type;
	size_t offset;     /* of the field in the command's own struct */
	const char *value; /* placeholder of the value in the help; NULL for flags and operands */
	const char *help;  /* one line of any length; util/wrap.h breaks it */
	bool required;
};

/* The exit codes that `vcpuscope --help` documents. */
enum command_exit {
	COMMAND_OK = 0,
	COMMAND_TROUBLE = 1,
	COMMAND_USAGE = 2,
	COMMAND_UNSUPPORTED = 3, /* not permitted, or not supported by this machine */
	COMMAND_CANNOT_TELL = 5, /* report: too little was observed to say "no stall" */
};

struct command {
	const char *name;
	const char *summary;  /* one line, no full stop */
	const char *usage;    /* the usage line after the name; NULL: generated from the table */
	const char *examples; /* whole lines, each ends with a newline */
	const struct option_spec *options;
	size_t n_options;
	/* Runs the command; argv[0] is its name. Returns enum command_exit. */
	int (*run)(const struct command *self, int argc, char **argv);
};

/* Parses argv[1..argc-1] into the struct at `out`. Fields of options that are not given keep their
 * values, which are the defaults. Returns 0, or -EINVAL or -E2BIG with one line in `why`. */
int options_parse(const struct command *command, int argc, char **argv, void *out, char *why,
		  size_t why_bytes);
/* Parses like options_parse() and reports an error on stderr. Returns 0 or COMMAND_USAGE. */
int options_parse_or_say(const struct command *command, int argc, char **argv, void *out);
/* Prints the usage line, the options and the examples. */
void options_print_help(const struct command *command, FILE *to);
/* Prints the same for make-pages (deploy/pages), which generates manual pages and shell completion:
 * one record per line, its fields separated by tabs. */
void options_dump(const struct command *command, FILE *to);

#endif
