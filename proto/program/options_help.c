/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "proto/program/options_internal.h"

/* The help of an option begins in column HELP_AT, below its name if that is longer than fits. */
enum { COLUMNS = 100, HELP_AT = 31 };

/* Prints words up to the last column and continues below the column `indent`, where it begins. */
static void text_fill(const char *text, size_t indent, FILE *to)
{
	size_t at = indent, len;

	for (text += strspn(text, " \n"); *text; text += len + strspn(text + len, " \n")) {
		len = strcspn(text, " \n");
		if (at > indent && at + 1 + len > COLUMNS) {
			fprintf(to, "\n%*s", (int)indent, "");
			at = indent;
		}
		at += (size_t)fprintf(to, "%s%.*s", at > indent ? " " : "", (int)len, text);
	}
	fputc('\n', to);
}

static void row_print(const struct option_spec *spec, FILE *to)
{
	char left[96], letter[8] = "    ";
	int len;

	if (spec->replaced_by)
		return;
	if (spec->letter)
		snprintf(letter, sizeof(letter), "-%c, ", spec->letter);
	len = snprintf(left, sizeof(left), "  %s%s%s%s%s", option_is_operand(spec) ? "" : letter,
		       option_is_operand(spec) ? "" : "--", spec->name, spec->value ? " " : "",
		       spec->value ? spec->value : "");
	if (len + 2 > HELP_AT)
		fprintf(to, "%s\n%*s", left, HELP_AT, "");
	else
		fprintf(to, "%-*s", HELP_AT, left);
	text_fill(spec->help, HELP_AT, to);
}

/* Lines that fit stay as they are: they may be a table. Others continue below `indent`. */
static void usage_lines_print(const char *usage, size_t indent, FILE *to)
{
	size_t at = indent;

	for (size_t len; *usage; usage += len + (usage[len] == '\n')) {
		const size_t blanks = strspn(usage, " ");
		char line[256];

		len = strcspn(usage, "\n");
		if (at + len <= COLUMNS) {
			fprintf(to, "%.*s\n", (int)len, usage);
		} else {
			snprintf(line, sizeof(line), "%.*s", (int)len, usage);
			fprintf(to, "%*s", (int)blanks, "");
			text_fill(line, at ? at : blanks + 4, to);
		}
		at = 0;
	}
}

static void usage_print(const struct command *command, size_t indent, FILE *to)
{
	if (command->usage) {
		fputc(' ', to);
		usage_lines_print(command->usage, indent, to);
		return;
	}
	for (size_t i = 0; i < command->n_options; i++) {
		const struct option_spec *spec = &command->options[i];

		if (spec->type == OPTION_OPERANDS)
			fprintf(to, spec->required ? " %s..." : " [%s...]", spec->name);
		else if (spec->type == OPTION_OPERAND)
			fprintf(to, spec->required ? " %s" : " [%s]", spec->name);
	}
	fputs(" [options]\n", to);
}

void options_print_help(const struct command *command, FILE *to)
{
	char title[64];

	command_title(command, title, sizeof(title));
	fprintf(to, "%s: ", title);
	text_fill(command->summary, strlen(title) + 2, to);
	fprintf(to, "\nusage: %s", title);
	usage_print(command, strlen("usage: ") + strlen(title) + 1, to);
	fputc('\n', to);
	for (size_t i = 0; i < command->n_options; i++)
		row_print(&command->options[i], to);
	row_print(&option_help, to);
	row_print(&option_version, to);
	if (command->notes)
		fprintf(to, "\n%s", command->notes);
	if (command->exits)
		fprintf(to, "\nexit codes:\n%s", command->exits);
	if (command->examples)
		fprintf(to, "\nexamples:\n%s", command->examples);
}
