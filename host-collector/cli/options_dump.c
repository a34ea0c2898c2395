/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/options.h"

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

void options_dump(const struct command *command, FILE *to)
{
	static const char *const types[] = {
		[OPTION_FLAG] = "flag",         [OPTION_STRING] = "string",
		[OPTION_CHOICE] = "choice",     [OPTION_NUMBER] = "number",
		[OPTION_PERCENT] = "number",    [OPTION_DURATION] = "duration",
		[OPTION_OPERAND] = "operand",   [OPTION_LIST] = "list",
		[OPTION_OPERANDS] = "operands",
	};

	fputs("command", to);
	field_write(command->name, to);
	field_write(command->summary, to);
	field_write(command->usage, to);
	fputc('\n', to);
	for (size_t i = 0; i < command->n_options; i++) {
		const struct option_spec *spec = &command->options[i];

		fputs("option", to);
		field_write(spec->name, to);
		field_write(types[spec->type], to);
		field_write(spec->value, to);
		field_write(spec->required ? "required" : "", to);
		field_write(spec->help, to);
		fputc('\n', to);
	}
	fputs("examples", to);
	field_write(command->examples, to);
	fputc('\n', to);
}
