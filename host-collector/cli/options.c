/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/util/duration.h"
#include "host-collector/util/wrap.h"

static int number_parse(const char *text, uint64_t *value)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return errno || *end ? -EINVAL : 0;
}

/* Is `word` one of the |-separated words of `choices`? */
static bool choice_has(const char *choices, const char *word)
{
	size_t len = strlen(word);

	for (const char *c = choices; c; c = strchr(c, '|')) {
		c += *c == '|';
		if (len && !strncmp(c, word, len) && (c[len] == '|' || !c[len]))
			return true;
	}
	return false;
}

static bool is_operand(const struct option_spec *spec)
{
	return spec->type == OPTION_OPERAND || spec->type == OPTION_OPERANDS;
}

static int list_add(const struct option_spec *spec, struct option_list *list, const char *text,
		    char *why, size_t why_bytes)
{
	if (list->n == OPTION_LIST_MAX) {
		snprintf(why, why_bytes, "%s%s: more than %d", is_operand(spec) ? "" : "--",
			 spec->name, OPTION_LIST_MAX);
		return -E2BIG;
	}
	list->items[list->n++] = text;
	return 0;
}

/* "90%". 0 or -EINVAL. */
static int percent_parse(const char *text, uint64_t *percent)
{
	size_t len = strlen(text);
	char digits[4];

	if (len < 2 || len > 4 || text[len - 1] != '%')
		return -EINVAL;
	snprintf(digits, sizeof(digits), "%.*s", (int)(len - 1), text);
	return number_parse(digits, percent) || *percent > 100 ? -EINVAL : 0;
}

static int value_store(const struct option_spec *spec, const char *text, void *out, char *why,
		       size_t why_bytes)
{
	void *field = (char *)out + spec->offset;
	uint64_t number;

	switch (spec->type) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_CHOICE:
		if (!choice_has(spec->value, text)) {
			snprintf(why, why_bytes, "--%s %s: want one of %s", spec->name, text,
				 spec->value);
			return -EINVAL;
		}
		*(const char **)field = text;
		return 0;
	case OPTION_STRING:
	case OPTION_OPERAND:
	case OPTION_LIST:
	case OPTION_OPERANDS:
		if (!*text) {
			snprintf(why, why_bytes, "%s%s: is empty", is_operand(spec) ? "" : "--",
				 spec->name);
			return -EINVAL;
		}
		if (spec->type == OPTION_LIST || spec->type == OPTION_OPERANDS)
			return list_add(spec, field, text, why, why_bytes);
		*(const char **)field = text;
		return 0;
	case OPTION_NUMBER:
		if (number_parse(text, &number)) {
			snprintf(why, why_bytes, "--%s %s: want a whole number", spec->name, text);
			return -EINVAL;
		}
		*(uint64_t *)field = number;
		return 0;
	case OPTION_PERCENT:
		if (percent_parse(text, &number)) {
			snprintf(why, why_bytes, "--%s %s: want a percentage such as 90%%",
				 spec->name, text);
			return -EINVAL;
		}
		*(uint64_t *)field = number;
		return 0;
	case OPTION_DURATION:
		if (duration_parse(text, &number)) {
			snprintf(why, why_bytes,
				 "--%s %s: want a duration with its unit, such as 100ms, 10s, 5m",
				 spec->name, text);
			return -EINVAL;
		}
		*(uint64_t *)field = number;
		return 0;
	}
	return -EINVAL;
}

static size_t option_find(const struct command *command, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < command->n_options; i++) {
		const struct option_spec *spec = &command->options[i];

		if (!is_operand(spec) && strlen(spec->name) == len &&
		    !strncmp(spec->name, name, len))
			break;
	}
	return i;
}

static size_t operand_next(const struct command *command, size_t from)
{
	while (from < command->n_options && !is_operand(&command->options[from]))
		from++;
	return from;
}

/* A bit per row of the table: was it given? */
#define OPTIONS_MAX 64

int options_parse(const struct command *command, int argc, char **argv, void *out, char *why,
		  size_t why_bytes)
{
	uint64_t given = 0;
	size_t operand = operand_next(command, 0);
	bool only_operands = false;
	int err;

	if (command->n_options > OPTIONS_MAX) {
		snprintf(why, why_bytes, "%s: more than %d options", command->name, OPTIONS_MAX);
		return -EINVAL;
	}
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];
		const char *value = NULL, *equals;
		size_t row, len;

		/* A lone "-" is an operand; "--" ends the options. */
		if (only_operands || arg[0] != '-' || !arg[1]) {
			if (operand == command->n_options) {
				snprintf(why, why_bytes, "%s: unexpected argument", arg);
				return -EINVAL;
			}
			err = value_store(&command->options[operand], arg, out, why, why_bytes);
			if (err)
				return err;
			given |= 1ull << operand;
			if (command->options[operand].type != OPTION_OPERANDS)
				operand = operand_next(command, operand + 1);
			continue;
		}
		if (!strcmp(arg, "--")) {
			only_operands = true;
			continue;
		}
		/* The short options that people type without thinking. */
		if (!strcmp(arg, "-o"))
			arg = "--output";
		else if (!strcmp(arg, "-i"))
			arg = "--interval";
		else if (!strcmp(arg, "-b"))
			arg = "--batch";
		else if (!strcmp(arg, "-n"))
			arg = "--count";
		equals = strchr(arg, '=');
		len = equals ? (size_t)(equals - arg) : strlen(arg);
		row = arg[1] == '-' ? option_find(command, arg + 2, len - 2) : command->n_options;
		if (row == command->n_options) {
			snprintf(why, why_bytes, "%.*s: no such option", (int)len, arg);
			return -EINVAL;
		}
		if (command->options[row].type == OPTION_FLAG) {
			if (equals) {
				snprintf(why, why_bytes, "%.*s: takes no value", (int)len, arg);
				return -EINVAL;
			}
		} else if (equals) {
			value = equals + 1;
		} else if (i + 1 < argc) {
			value = argv[++i];
		} else {
			snprintf(why, why_bytes, "%s: needs a value, %s", arg,
				 command->options[row].value);
			return -EINVAL;
		}
		err = value_store(&command->options[row], value, out, why, why_bytes);
		if (err)
			return err;
		given |= 1ull << row;
		while (command->options[row].type == OPTION_LIST && i + 1 < argc &&
		       argv[i + 1][0] != '-') {
			err = value_store(&command->options[row], argv[++i], out, why, why_bytes);
			if (err)
				return err;
		}
	}
	for (size_t i = 0; i < command->n_options; i++) {
		const struct option_spec *spec = &command->options[i];

		if (spec->required && !(given & 1ull << i)) {
			snprintf(why, why_bytes, "%s%s is missing", is_operand(spec) ? "" : "--",
				 spec->name);
			return -EINVAL;
		}
	}
	return 0;
}

int options_parse_or_say(const struct command *command, int argc, char **argv, void *out)
{
	char why[256];

	if (!options_parse(command, argc, argv, out, why, sizeof(why)))
		return 0;
	fprintf(stderr, "vcpuscope %s: %s; see `vcpuscope %s --help`\n", command->name, why,
		command->name);
	return COMMAND_USAGE;
}

/* Names and values that are longer have a line of their own, for wrap.h to see where the help
 * begins. */
enum { LEFT_MOST = 38 };

static void help_print(const struct command *command, FILE *to)
{
	bool any = false;

	fprintf(to, "vcpuscope %s: %s\n\nusage: vcpuscope %s", command->name, command->summary,
		command->name);
	if (command->usage) {
		fprintf(to, " %s", command->usage);
	} else {
		for (size_t i = 0; i < command->n_options; i++) {
			const struct option_spec *spec = &command->options[i];

			if (spec->type == OPTION_OPERANDS)
				fprintf(to, spec->required ? " %s..." : " [%s...]", spec->name);
			else if (spec->type == OPTION_OPERAND)
				fprintf(to, spec->required ? " %s" : " [%s]", spec->name);
			else
				any = true;
		}
		if (any)
			fprintf(to, " [options]");
	}
	fprintf(to, "\n\n");
	for (size_t i = 0; i < command->n_options; i++) {
		const struct option_spec *spec = &command->options[i];
		char left[64];

		snprintf(left, sizeof(left), "%s%s%s%s", is_operand(spec) ? "" : "--", spec->name,
			 spec->value ? " " : "", spec->value ? spec->value : "");
		if (strlen(left) > LEFT_MOST)
			fprintf(to, "  %s\n%29s%s\n", left, "", spec->help);
		else
			fprintf(to, "  %-25s  %s\n", left, spec->help);
	}
	if (command->examples)
		fprintf(to, "\nexamples:\n%s", command->examples);
}

void options_print_help(const struct command *command, FILE *to)
{
	FILE *page = wrap_open(to);

	help_print(command, page ? page : to);
	if (page)
		fclose(page);
}
