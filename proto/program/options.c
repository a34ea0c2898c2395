/* SPDX-License-Identifier: GPL-2.0-only */
#include "proto/program/options.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "proto/program/options_internal.h"
#include "proto/program/suggest.h"
#include "proto/program/value.h"

const struct option_spec option_help = {
	.name = "help", .letter = 'h', .type = OPTION_FLAG, .help = "print this help and exit"};
const struct option_spec option_version = {.name = "version",
					   .letter = 'V',
					   .type = OPTION_FLAG,
					   .help = "print the version and exit"};

bool option_is_operand(const struct option_spec *spec)
{
	return spec->type == OPTION_OPERAND || spec->type == OPTION_OPERANDS;
}

static int __attribute__((format(printf, 2, 3)))
wrong(struct option_messages *m, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(m->error, sizeof(m->error), format, args);
	va_end(args);
	return -EINVAL;
}

static void __attribute__((format(printf, 2, 3)))
warn(struct option_messages *m, const char *format, ...)
{
	const size_t len = strlen(m->warnings);
	va_list args;

	va_start(args, format);
	vsnprintf(m->warnings + len, sizeof(m->warnings) - len, format, args);
	va_end(args);
}

/* ---- values ---- */

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

static int choice_wrong(const struct option_spec *spec, const char *text, struct option_messages *m)
{
	char words[256], *rest = words;
	struct suggest s;

	snprintf(words, sizeof(words), "%s", spec->value);
	suggest_begin(&s, text, strlen(text));
	for (const char *word; (word = strsep(&rest, "|"));)
		suggest_try(&s, word);
	if (s.best)
		return wrong(m, "--%s %s: expected one of %s; did you mean '%s'?", spec->name, text,
			     spec->value, s.best);
	return wrong(m, "--%s %s: expected one of %s", spec->name, text, spec->value);
}

static int list_add(const struct option_spec *spec, struct option_list *list, const char *text,
		    struct option_messages *m)
{
	if (list->n == OPTION_LIST_MAX) {
		wrong(m, "%s%s: more than %d", option_is_operand(spec) ? "" : "--", spec->name,
		      OPTION_LIST_MAX);
		return -E2BIG;
	}
	list->items[list->n++] = text;
	return 0;
}

struct value_text {
	char text[32];
};

/* As it is written on a command line. */
static struct value_text value_text(enum option_type type, uint64_t value)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = {{3600000000000ull, "h"}, {60000000000ull, "m"}, {1000000000, "s"},
		     {1000000, "ms"},         {1000, "us"},          {1, "ns"}};
	struct value_text v;
	size_t i = 0;

	if (type == OPTION_DURATION) {
		while (value % units[i].ns)
			i++;
		snprintf(v.text, sizeof(v.text), "%llu%s",
			 (unsigned long long)(value / units[i].ns), units[i].name);
	} else if (type == OPTION_SIZE && value && !(value % (1 << 20))) {
		snprintf(v.text, sizeof(v.text), "%lluM", (unsigned long long)value >> 20);
	} else {
		snprintf(v.text, sizeof(v.text), "%llu%s", (unsigned long long)value,
			 type == OPTION_PERCENT ? "%" : "");
	}
	return v;
}

static int quantity_parse(enum option_type type, const char *text, uint64_t *out)
{
	switch (type) {
	case OPTION_DURATION:
		return duration_parse(text, out);
	case OPTION_SIZE:
		return size_parse(text, out);
	case OPTION_PERCENT:
		return percent_parse(text, out);
	default:
		return number_parse(text, out);
	}
}

/* A number without its unit, as it was written before. False: it is something else. */
static bool bare_parse(const struct option_spec *spec, const char *text, uint64_t *out,
		       struct option_messages *m)
{
	char with_unit[40];
	uint64_t number;

	if (!spec->bare_unit || number_parse(text, &number))
		return false;
	snprintf(with_unit, sizeof(with_unit), "%s%s", text, spec->bare_unit);
	if (quantity_parse(spec->type, with_unit, out))
		return false;
	warn(m, "--%s %s: write %s; a number without a unit will become an error\n", spec->name,
	     text, with_unit);
	return true;
}

static int quantity_store(const struct option_spec *spec, const char *text, uint64_t *out,
			  struct option_messages *m)
{
	static const char *const kinds[] = {
		[OPTION_NUMBER] = "a whole number",
		[OPTION_DURATION] = "a duration with its unit",
		[OPTION_SIZE] = "a size",
		[OPTION_PERCENT] = "a percentage",
	};
	static const char *const samples[] = {
		[OPTION_NUMBER] = "",
		[OPTION_DURATION] = ", such as 100ms, 10s or 5m",
		[OPTION_SIZE] = ", such as 256M or 10G",
		[OPTION_PERCENT] = ", such as 90%",
	};
	uint64_t value;

	if ((bare_parse(spec, text, &value, m) || !quantity_parse(spec->type, text, &value)) &&
	    (!spec->max || (value >= spec->min && value <= spec->max))) {
		*out = value;
		return 0;
	}
	if (spec->max)
		return wrong(m, "--%s %s: expected %s from %s to %s", spec->name, text,
			     kinds[spec->type], value_text(spec->type, spec->min).text,
			     value_text(spec->type, spec->max).text);
	return wrong(m, "--%s %s: expected %s%s", spec->name, text, kinds[spec->type],
		     samples[spec->type]);
}

static int value_store(const struct option_spec *spec, const char *text, void *out,
		       struct option_messages *m)
{
	void *field = (char *)out + spec->offset;

	switch (spec->type) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_CHOICE:
		if (!choice_has(spec->value, text))
			return choice_wrong(spec, text, m);
		*(const char **)field = text;
		return 0;
	case OPTION_FILE:
		if (!strcmp(text, "-"))
			return wrong(m, "--%s -: this cannot go to standard output; name a file",
				     spec->name);
		/* fallthrough */
	case OPTION_STRING:
	case OPTION_OPERAND:
	case OPTION_LIST:
	case OPTION_OPERANDS:
		if (!*text)
			return wrong(m, "%s%s is empty", option_is_operand(spec) ? "" : "--",
				     spec->name);
		if (spec->type == OPTION_LIST || spec->type == OPTION_OPERANDS)
			return list_add(spec, field, text, m);
		*(const char **)field = text;
		return 0;
	case OPTION_NUMBER:
	case OPTION_DURATION:
	case OPTION_SIZE:
	case OPTION_PERCENT:
		return quantity_store(spec, text, field, m);
	}
	return -EINVAL;
}

/* ---- arguments ---- */

/* Goes through the arguments. */
struct scan {
	const struct command *command;
	char **argv;
	int argc, i;         /* argv[i] is the next argument */
	const char *letters; /* the rest of a group of letters; NULL: none */
	bool only_operands;
};

/* What was found: an option with its value (NULL for a flag), or an operand (row NULL). */
struct found {
	const struct option_spec *row;
	const char *value;
};

static const struct option_spec *row_by_name(const struct command *c, const char *name, size_t len)
{
	const struct option_spec *const common[] = {&option_help, &option_version};

	for (size_t i = 0; i < c->n_options + 2; i++) {
		const struct option_spec *row =
			i < c->n_options ? &c->options[i] : common[i - c->n_options];

		if (!option_is_operand(row) && strlen(row->name) == len &&
		    !strncmp(row->name, name, len))
			return row;
	}
	return NULL;
}

static const struct option_spec *row_by_letter(const struct command *c, char letter)
{
	for (size_t i = 0; i < c->n_options; i++) {
		if (!option_is_operand(&c->options[i]) && c->options[i].letter == letter)
			return &c->options[i];
	}
	if (letter == option_help.letter)
		return &option_help;
	return letter == option_version.letter ? &option_version : NULL;
}

/* `typed` is the whole option with its dashes, name[0..len-1] is its name. */
static int unknown_option(const struct command *c, const char *typed, int typed_len,
			  const char *name, size_t len, struct option_messages *m)
{
	struct suggest s;

	suggest_begin(&s, name, len);
	for (size_t i = 0; i < c->n_options; i++) {
		if (!option_is_operand(&c->options[i]) && !c->options[i].replaced_by)
			suggest_try(&s, c->options[i].name);
	}
	suggest_try(&s, option_help.name);
	suggest_try(&s, option_version.name);
	if (s.best)
		return wrong(m, "unknown option '%.*s'; did you mean '--%s'?", typed_len, typed,
			     s.best);
	return wrong(m, "unknown option '%.*s'", typed_len, typed);
}

/* The value of an option that needs one: `attached`, or the next argument. */
static int value_take(struct scan *s, struct found *found, const char *attached,
		      struct option_messages *m)
{
	found->value = attached;
	if (found->row->type == OPTION_FLAG || attached)
		return 1;
	if (s->i == s->argc)
		return wrong(m, "option '--%s' needs a value: %s", found->row->name,
			     found->row->value);
	found->value = s->argv[s->i++];
	return 1;
}

static int letter_next(struct scan *s, struct found *found, struct option_messages *m)
{
	const char *at = s->letters, *arg = s->argv[s->i - 1];

	found->row = row_by_letter(s->command, *at);
	s->letters = at[1] ? at + 1 : NULL;
	if (!found->row) {
		s->letters = NULL;
		/* One dash too few is the likely mistake. */
		if (at == arg + 1 && at[1])
			return unknown_option(s->command, arg, (int)strlen(arg), at,
					      strcspn(at, "="), m);
		return wrong(m, "unknown option '-%c'", *at);
	}
	if (found->row->type == OPTION_FLAG)
		return 1;
	s->letters = NULL;
	return value_take(s, found, at[1] ? at + 1 : NULL, m);
}

/* Returns 1 and the next option or operand, 0 at the end, or -EINVAL. */
static int scan_next(struct scan *s, struct found *found, struct option_messages *m)
{
	const char *arg, *equals;
	size_t len;

	*found = (struct found){0};
	if (s->letters)
		return letter_next(s, found, m);
	if (s->i < s->argc && !s->only_operands && !strcmp(s->argv[s->i], "--")) {
		s->only_operands = true;
		s->i++;
	}
	if (s->i >= s->argc)
		return 0;
	arg = s->argv[s->i++];
	if (s->only_operands || arg[0] != '-' || !arg[1]) {
		found->value = arg;
		return 1;
	}
	if (arg[1] != '-') {
		s->letters = arg + 1;
		return letter_next(s, found, m);
	}
	equals = strchr(arg, '=');
	len = equals ? (size_t)(equals - arg) : strlen(arg);
	found->row = row_by_name(s->command, arg + 2, len - 2);
	if (!found->row)
		return unknown_option(s->command, arg, (int)len, arg + 2, len - 2, m);
	if (found->row->type == OPTION_FLAG && equals)
		return wrong(m, "option '--%s' takes no value", found->row->name);
	return value_take(s, found, equals ? equals + 1 : NULL, m);
}

static size_t operand_next(const struct command *command, size_t from)
{
	while (from < command->n_options && !option_is_operand(&command->options[from]))
		from++;
	return from;
}

static int required_check(const struct command *command, uint64_t given, struct option_messages *m)
{
	for (size_t i = 0; i < command->n_options; i++) {
		const struct option_spec *spec = &command->options[i];

		if (!spec->required || given & 1ull << i)
			continue;
		if (option_is_operand(spec))
			return wrong(m, "%s is missing", spec->name);
		return wrong(m, "--%s %s is missing", spec->name, spec->value);
	}
	return 0;
}

/* A bit for each row of the table: was it given? */
enum { OPTIONS_MAX = 64 };

int options_parse(const struct command *command, int argc, char **argv, void *out,
		  struct option_messages *m)
{
	struct scan s = {.command = command, .argc = argc, .argv = argv, .i = 1};
	size_t operand = operand_next(command, 0);
	uint64_t given = 0;
	struct found found;
	int more, err = 0;

	*m = (struct option_messages){0};
	if (command->n_options > OPTIONS_MAX)
		return wrong(m, "more than %d options", OPTIONS_MAX);
	while ((more = scan_next(&s, &found, m)) > 0) {
		const struct option_spec *row = found.row;

		if (row == &option_help || row == &option_version)
			continue; /* options_answer() */
		if (!row && operand == command->n_options)
			return wrong(m, "unexpected argument '%s'", found.value);
		if (!row) {
			row = &command->options[operand];
			if (row->type != OPTION_OPERANDS)
				operand = operand_next(command, operand + 1);
		}
		err = value_store(row, found.value, out, m);
		while (!err && row->type == OPTION_LIST && s.i < argc && argv[s.i][0] != '-')
			err = value_store(row, argv[s.i++], out, m);
		if (err)
			return err;
		if (row->replaced_by)
			warn(m, "--%s will be removed; write %s\n", row->name, row->replaced_by);
		given |= 1ull << (row - command->options);
	}
	return more < 0 ? more : required_check(command, given, m);
}

int command_exit_of(int err)
{
	switch (err) {
	case 0:
		return COMMAND_OK;
	case -EPERM:
	case -EACCES:
	case -EOPNOTSUPP:
	case -ENOSYS:
		return COMMAND_UNSUPPORTED;
	default:
		return COMMAND_TROUBLE;
	}
}

const char *command_title(const struct command *command, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "%s%s%s", command->program ? command->program : "vcpuscope",
		 command->name ? " " : "", command->name ? command->name : "");
	return out;
}

int options_read(const struct command *command, int argc, char **argv, void *out)
{
	struct option_messages m;
	char title[64];
	int err = options_parse(command, argc, argv, out, &m);

	command_title(command, title, sizeof(title));
	for (const char *line = m.warnings; *line; line += strcspn(line, "\n") + 1)
		fprintf(stderr, "%s: warning: %.*s\n", title, (int)strcspn(line, "\n"), line);
	if (!err)
		return 0;
	fprintf(stderr, "%s: %s; see `%s --help`\n", title, m.error, title);
	return COMMAND_USAGE;
}

bool options_answer(const struct command *command, int argc, char **argv)
{
	struct scan s = {.command = command, .argc = argc, .argv = argv, .i = 1};
	struct option_messages ignored;
	struct found found;
	int more;

	while ((more = scan_next(&s, &found, &ignored))) {
		if (more < 0)
			continue;
		if (found.row == &option_help) {
			options_print_help(command, stdout);
			return true;
		}
		if (found.row == &option_version) {
			printf("%s " VCPUSCOPE_VERSION "\n",
			       command->program ? command->program : "vcpuscope");
			return true;
		}
	}
	return false;
}
