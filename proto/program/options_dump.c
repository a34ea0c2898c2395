/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/program/options_internal.h"

/* A field: tabs and newlines as escapes, so that a record is a line. */
static void field_write(const char *text, FILE *to)
{
	fputc('\t', to);
	for (; text && *text; text++) {
		if (*text == '\n')
			fputs("\\n", to);
		else if (*text == '\t')
			fputs("\\t", to);
		else if (*text == '\\')
			fputs("\\\\", to);
		else
			fputc(*text, to);
	}
}

static void text_write(const char *kind, const char *text, FILE *to)
{
	if (!text)
		return;
	fputs(kind, to);
	field_write(text, to);
	fputc('\n', to);
}

static void row_write(const struct option_spec *spec, FILE *to)
{
	static const char *const types[] = {
		[OPTION_FLAG] = "flag",         [OPTION_STRING] = "string",
		[OPTION_FILE] = "string",       [OPTION_CHOICE] = "choice",
		[OPTION_NUMBER] = "number",     [OPTION_PERCENT] = "number",
		[OPTION_DURATION] = "duration", [OPTION_SIZE] = "size",
		[OPTION_OPERAND] = "operand",   [OPTION_LIST] = "list",
		[OPTION_OPERANDS] = "operands",
	};
	const char letter[] = {spec->letter, '\0'};

	if (spec->replaced_by)
		return;
	fputs("option", to);
	field_write(spec->name, to);
	field_write(letter, to);
	field_write(types[spec->type], to);
	field_write(spec->value, to);
	field_write(spec->required ? "required" : "", to);
	field_write(spec->help, to);
	fputc('\n', to);
}

void options_dump(const struct command *command, FILE *to)
{
	if (command->name) {
		fputs("command", to);
		field_write(command->name, to);
	} else {
		fputs("program", to);
		field_write(command->program, to);
		field_write(VCPUSCOPE_VERSION, to);
	}
	field_write(command->summary, to);
	field_write(command->usage, to);
	fputc('\n', to);
	for (size_t i = 0; i < command->n_options; i++)
		row_write(&command->options[i], to);
	row_write(&option_help, to);
	row_write(&option_version, to);
	text_write("notes", command->notes, to);
	text_write("exits", command->exits, to);
	text_write("examples", command->examples, to);
}

void options_dump_record(const char *kind, const char *const *fields, FILE *to)
{
	fputs(kind, to);
	for (; *fields; fields++)
		field_write(*fields, to);
	fputc('\n', to);
}
