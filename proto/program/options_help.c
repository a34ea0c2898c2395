/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "proto/program/columns.h"
#include "proto/program/options_internal.h"

/* The help of an option begins in column HELP_AT, below its name if that is longer than fits. A
 * command that is too long continues so far to the right of its begin. */
enum { HELP_AT = 31, EXAMPLE_INDENT = 4, EXAMPLE_INDENTED = 8 };

/* Prints words up to the last column and continues below the column `indent`, where it begins. */
static void text_fill(const char *text, size_t indent, FILE *to)
{
	const size_t columns = text_columns(to);
	size_t at = indent, len;

	for (text += strspn(text, " \n"); *text; text += len + strspn(text + len, " \n")) {
		len = strcspn(text, " \n");
		if (at > indent && at + 1 + len > columns) {
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

/* Where the second field of a line begins, behind two blanks or more; `otherwise` if it has none.
 */
static size_t second_field(const char *line, size_t len, size_t otherwise)
{
	for (size_t i = strspn(line, " "); i + 1 < len; i++) {
		if (line[i] == ' ' && line[i + 1] == ' ')
			return i + strspn(line + i, " ");
	}
	return otherwise;
}

/* The length of a row of a list with the lines that continue it below its second field. */
static size_t row_len(const char *row, size_t len, size_t field)
{
	while (field && row[len] == '\n' && strspn(row + len + 1, " ") == field)
		len += 1 + strcspn(row + len + 1, "\n");
	return len;
}

/* Lines that fit stay as they are: they may be a table. Others continue below `indent`. */
static void usage_lines_print(const char *usage, size_t indent, FILE *to)
{
	size_t at = indent;

	for (size_t len; *usage; usage += len + (usage[len] == '\n')) {
		const size_t blanks = strspn(usage, " ");
		char line[512];

		len = strcspn(usage, "\n");
		if (at + len <= text_columns(to)) {
			fprintf(to, "%.*s\n", (int)len, usage);
		} else {
			const size_t field = at ? 0 : second_field(usage, len, blanks);

			len = row_len(usage, len, field > blanks ? field : 0);
			snprintf(line, sizeof(line), "%.*s", (int)len, usage);
			fprintf(to, "%.*s", (int)field, usage);
			text_fill(line + field, at ? at : field > blanks ? field : blanks + 4, to);
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

/* Lines that fit stay as they are. A paragraph with one that does not is filled anew; a row of a
 * list, which begins with a blank, continues below its second field. */
static void notes_print(const char *notes, FILE *to)
{
	const size_t columns = text_columns(to);
	char text[4096];

	while (*notes) {
		const bool row = *notes == ' ';
		size_t len = strcspn(notes, "\n"), widest = len, blanks = strspn(notes, " ");

		while (!row && notes[len] == '\n' && notes[len + 1] &&
		       !strchr(" \n", notes[len + 1])) {
			const size_t next = strcspn(notes + len + 1, "\n");

			widest = next > widest ? next : widest;
			len += 1 + next;
		}
		if (widest <= columns || len >= sizeof(text)) {
			fprintf(to, "%.*s\n", (int)len, notes);
		} else {
			snprintf(text, sizeof(text), "%.*s", (int)len, notes);
			if (row) {
				const size_t field = second_field(notes, len, blanks);

				len = row_len(notes, len, field > blanks ? field : 0);
				snprintf(text, sizeof(text), "%.*s", (int)len, notes);
				fprintf(to, "%.*s", (int)field, notes);
				text_fill(text + field, field, to);
			} else {
				text_fill(text, 0, to);
			}
		}
		notes += len + (notes[len] == '\n');
	}
}

/* The last blank outside of quotes at which a line of at most `room` columns may end, not between
 * an option and its value; 0: none. */
static size_t break_at(const char *line, size_t len, size_t room)
{
	size_t found = 0, word = 0;
	char quote = '\0';

	for (size_t i = strspn(line, " "); i < len && i <= room; i++) {
		if (quote ? line[i] == quote : line[i] == '\'' || line[i] == '"') {
			quote = quote ? '\0' : line[i];
		} else if (!quote && line[i] == ' ') {
			if (line[word] != '-' || (i + 1 < len && line[i + 1] == '-'))
				found = i;
			word = i + 1;
		}
	}
	return found;
}

/* A command that is too long continues behind a backslash; its comment stands above it. */
static void example_print(const char *line, size_t len, FILE *to)
{
	const size_t columns = text_columns(to), blanks = strspn(line, " ");
	const char *comment = len > columns ? memmem(line, len, " # ", 3) : NULL;
	size_t indent = blanks;

	if (comment) {
		fprintf(to, "%*s%.*s\n", (int)blanks, "", (int)(line + len - comment - 1),
			comment + 1);
		len = (size_t)(comment - line);
	}
	while (len && line[len - 1] == ' ')
		len--;
	line += blanks;
	len -= blanks;
	while (indent + len > columns) {
		const size_t at = break_at(line, len, columns - indent - 2);

		if (!at)
			break;
		fprintf(to, "%*s%.*s \\\n", (int)indent, "", (int)at, line);
		line += at + 1;
		len -= at + 1;
		indent = blanks + (blanks < EXAMPLE_INDENTED ? EXAMPLE_INDENT : 0);
	}
	fprintf(to, "%*s%.*s\n", (int)indent, "", (int)len, line);
}

static void examples_print(const char *examples, FILE *to)
{
	for (size_t len; *examples; examples += len + (examples[len] == '\n')) {
		len = strcspn(examples, "\n");
		example_print(examples, len, to);
	}
}

void options_print_row(const char *name, size_t at, const char *text, FILE *to)
{
	fprintf(to, "  %-*s ", (int)at - 3, name);
	text_fill(text, at, to);
}

void options_print_exits(const struct command *command, FILE *to)
{
	fputs("\nexit codes:\n", to);
	notes_print(command->exits, to);
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
	if (command->notes) {
		fputc('\n', to);
		notes_print(command->notes, to);
	}
	if (command->exits)
		options_print_exits(command, to);
	if (command->examples) {
		fputs("\nexamples:\n", to);
		examples_print(command->examples, to);
	}
}
