/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parses the command lines of all programs. Each command has one table of its options (name,
 * letter, type, destination, limits, help). Parsing, --help, the manual pages and the shell
 * completion use this table.
 *
 * An option is written `--name VALUE`, `--name=VALUE`, `-x VALUE` or `-xVALUE`; letters of flags
 * can be combined (`-bn5`). `--` ends the options, and `-` alone is an operand. A shortened name is
 * an error that names the option that was probably meant. Every command has --help (-h) and
 * --version (-V).
 *
 * An option that changes keeps working for one release, with a warning: see `replaced_by` and
 * `bare_unit`.
 */
#ifndef PROGRAM_OPTIONS_H
#define PROGRAM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_type {
	OPTION_FLAG = 1, /* bool; takes no value */
	OPTION_STRING,   /* const char *, points into argv */
	OPTION_FILE,     /* the same, a file that cannot be standard output: "-" is refused */
	OPTION_CHOICE,   /* const char *, one of the words of `value` ("text|json") */
	OPTION_NUMBER,   /* uint64_t, decimal */
	OPTION_DURATION, /* uint64_t nanoseconds, greater than zero; written with a unit */
	OPTION_SIZE,     /* uint64_t bytes; written with a unit (4M), or as bytes */
	OPTION_PERCENT,  /* uint64_t, written as a whole percentage from 0% to 100% */
	OPTION_OPERAND,  /* const char *, the next argument that is not an option */
	OPTION_LIST,     /* struct option_list, at least one value, up to the next option */
	OPTION_OPERANDS, /* struct option_list, all further operands; last in the table */
};

enum { OPTION_LIST_MAX = 1024 };

struct option_list {
	const char *items[OPTION_LIST_MAX]; /* point into argv */
	size_t n;
};

struct option_spec {
	const char *name; /* without the dashes; for an operand, its name in the usage line */
	char letter;      /* of the short form; 0: none */
	enum option_type type;
	bool required;
	size_t offset;     /* of the field in the command's own struct */
	const char *value; /* placeholder of the value in the help; NULL for flags and operands */
	const char *help;  /* one line of any length */
	uint64_t min, max; /* limits of a number, duration, size or percentage; max 0: none */
	/* A number without a unit is accepted as a number of these, with a warning. NULL: not. */
	const char *bare_unit;
	/* What to write instead of this option, such as "--format json". The option works, with a
	 * warning, and --help does not show it. NULL: the option is current. */
	const char *replaced_by;
};

/* The exit codes of all commands; `vcpuscope --help` lists them. A command whose codes differ lists
 * them in its `exits`. */
enum command_exit {
	COMMAND_OK = 0,
	COMMAND_TROUBLE = 1,
	COMMAND_USAGE = 2,
	COMMAND_UNSUPPORTED = 3, /* not permitted, or not supported by this machine */
	COMMAND_STALL = 4,       /* report --fail-on: there is such a stall */
	COMMAND_CANNOT_TELL = 5, /* report: too little was observed to say "no stall" */
};

struct command {
	const char *program;  /* NULL: vcpuscope */
	const char *name;     /* of the command; NULL: the program has only one */
	const char *summary;  /* one line, no full stop */
	const char *usage;    /* the usage line after the name; NULL: generated from the table */
	const char *examples; /* whole lines, each ends with a newline; NULL: none */
	const char *notes;    /* whole lines that follow the options; NULL: none */
	const char *exits;    /* whole lines: exit codes other than enum command_exit; NULL: none */
	const struct option_spec *options;
	size_t n_options;
	/* Runs the command; argv[0] is its name. Returns its exit code. */
	int (*run)(const struct command *self, int argc, char **argv);
};

/* What options_parse() found wrong. */
struct option_messages {
	char error[320];    /* one line */
	char warnings[512]; /* lines, each ends with a newline; "" if there are none */
};

/* Parses argv[1..argc-1] into the struct at `out`. Fields of options that are not given keep their
 * values, which are the defaults. Returns 0, or -EINVAL or -E2BIG with messages->error. */
int options_parse(const struct command *command, int argc, char **argv, void *out,
		  struct option_messages *messages);
/* Parses like options_parse() and prints the error and the warnings to stderr. Returns 0 or
 * COMMAND_USAGE. */
int options_read(const struct command *command, int argc, char **argv, void *out);
/* If the arguments contain --help or --version, prints what it asks for to stdout and returns true.
 * Other mistakes in the arguments are ignored. */
bool options_answer(const struct command *command, int argc, char **argv);
/* Returns the exit code for 0 or -errno: COMMAND_OK, COMMAND_UNSUPPORTED if it was not permitted or
 * is not supported here, else COMMAND_TROUBLE. */
int command_exit_of(int err);
/* Writes the command's full name, such as "vcpuscope record". Returns `out`. */
const char *command_title(const struct command *command, char *out, size_t out_bytes);
/* Prints the usage line, the options, the notes, the exit codes and the examples. */
void options_print_help(const struct command *command, FILE *to);
/* Prints a line of a list: a name, and from column `at` on a text that continues below itself. */
void options_print_row(const char *name, size_t at, const char *text, FILE *to);
/* Prints the command's exit codes, which it has, and a heading. */
void options_print_exits(const struct command *command, FILE *to);
/* Prints the same for make-pages (deploy/pages), which generates manual pages and shell completion:
 * one record per line, its fields separated by tabs. */
void options_dump(const struct command *command, FILE *to);

/* Writes one more record of such a dump: its kind, then its fields, up to NULL. */
void options_dump_record(const char *kind, const char *const *fields, FILE *to);

#endif
