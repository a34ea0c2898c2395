/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests command lines: every row of a table is parsed, and every mistake is named in the
 * message. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/program/options.h"
#include "proto/program/value.h"

struct values {
	bool flag, batch, old;
	const char *string, *format, *operand, *operand2;
	uint64_t number, duration, interval, size, percent;
};

#define ROW(NAME, TYPE, FIELD, ...)                                                                \
	{                                                                                          \
		.name = NAME, .type = TYPE, .offset = offsetof(struct values, FIELD),              \
		.help = "help for " NAME, __VA_ARGS__                                              \
	}
static const struct option_spec rows[] = {
	ROW("FILE", OPTION_OPERAND, operand, .value = NULL),
	ROW("flag", OPTION_FLAG, flag, .letter = 'f'),
	ROW("batch", OPTION_FLAG, batch, .letter = 'b'),
	ROW("output", OPTION_STRING, string, .letter = 'o', .value = "FILE"),
	ROW("OTHER", OPTION_OPERAND, operand2, .value = NULL),
	ROW("format", OPTION_CHOICE, format, .value = "text|json"),
	ROW("pid", OPTION_NUMBER, number, .value = "N", .max = 4000),
	ROW("for", OPTION_DURATION, duration, .value = "TIME"),
	ROW("interval", OPTION_DURATION, interval, .letter = 'i', .value = "1s"),
	ROW("delay", OPTION_DURATION, duration, .value = "TIME", .min = 1000000, .max = 60000000000,
	    .bare_unit = "ms"),
	ROW("ring", OPTION_SIZE, size, .value = "SIZE", .min = 1 << 20, .max = 1 << 30),
	ROW("share", OPTION_PERCENT, percent, .value = "90%"),
	ROW("recording", OPTION_FILE, string, .value = "FILE"),
	ROW("old", OPTION_FLAG, old, .replaced_by = "--format json"),
};
static const struct command command = {.name = "try",
				       .summary = "a test",
				       .notes = "a note\n",
				       .exits = "  7  seven\n",
				       .examples = "  try this\n",
				       .options = rows,
				       .n_options = sizeof(rows) / sizeof(rows[0])};

static int parse(const struct command *c, const char *line, struct values *v,
		 struct option_messages *m)
{
	static char copy[256];
	char *argv[16] = {(char *)"try"};
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	return options_parse(c, argc, argv, v, m);
}

static void test_values_arrive(void **state)
{
	struct values v = {.number = 7, .format = "text"};
	struct option_messages m;

	(void)state;
	assert_int_equal(
		parse(&command, "a.vcs --flag -o out -i 2s --format=json --for 1.5s b -- ", &v, &m),
		0);
	assert_true(v.flag);
	assert_string_equal(v.string, "out");
	assert_string_equal(v.format, "json");
	assert_string_equal(v.operand, "a.vcs");
	assert_string_equal(v.operand2, "b");
	assert_int_equal(v.interval, 2000000000);
	assert_int_equal(v.number, 7); /* not given: the default stays */
	assert_int_equal(v.duration, 1500000000);
	assert_int_equal(parse(&command, "-- --flag", &v, &m), 0);
	assert_string_equal(v.operand, "--flag");
}

static void test_mistakes_are_named(void **state)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{"--nope", "unknown option '--nope'"},
		{"--nope=3", "unknown option '--nope'"},
		{"-x", "unknown option '-x'"},
		{"-bx", "unknown option '-x'"},
		{"--dela 5ms", "unknown option '--dela'; did you mean '--delay'?"},
		{"--inter=5s", "unknown option '--inter'; did you mean '--interval'?"},
		{"--fromat json", "unknown option '--fromat'; did you mean '--format'?"},
		{"-share=5%", "unknown option '-share=5%'; did you mean '--share'?"},
		{"--hlep", "unknown option '--hlep'; did you mean '--help'?"},
		{"--", ""},
		{"--flag=1", "option '--flag' takes no value"},
		{"--pid", "option '--pid' needs a value: N"},
		{"-o", "option '--output' needs a value: FILE"},
		{"--pid -3", "--pid -3: expected a whole number from 0 to 4000"},
		{"--pid 12x", "--pid 12x: expected a whole number"},
		{"--pid 4001", "--pid 4001: expected a whole number from 0 to 4000"},
		{"--pid 99999999999999999999", "expected a whole number"},
		{"--for 10", "--for 10: expected a duration with its unit, such as 100ms"},
		{"--for 0s", "--for 0s: expected a duration"},
		{"--for 10parsec", "expected a duration"},
		{"--for 1e300h", "expected a duration"},
		{"--delay 61s", "--delay 61s: expected a duration with its unit from 1ms to 1m"},
		{"--delay 0", "--delay 0: expected a duration with its unit from 1ms to 1m"},
		{"--ring 2000M", "--ring 2000M: expected a size from 1M to 1024M"},
		{"--ring 5X", "expected a size"},
		{"--share 90", "--share 90: expected a percentage, such as 90%"},
		{"--format xml", "--format xml: expected one of text|json"},
		{"--format tex", "expected one of text|json; did you mean 'text'?"},
		{"--format=", "expected one of text|json"},
		{"--output=", "--output is empty"},
		{"--output -", ""},
		{"--recording=", "--recording is empty"},
		{"--recording -", "--recording -: this cannot go to standard output"},
		{"a b c", "unexpected argument 'c'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct values v = {0};
		struct option_messages m;
		int err = parse(&command, cases[i].line, &v, &m);

		assert_int_equal(err, *cases[i].says ? -EINVAL : 0);
		if (!strstr(m.error, cases[i].says))
			fail_msg("`%s` says `%s`", cases[i].line, m.error);
	}
}

static void test_required_is_required(void **state)
{
	static const struct option_spec needed[] = {
		ROW("FILE", OPTION_OPERAND, operand, .required = true),
		ROW("output", OPTION_STRING, string, .letter = 'o', .value = "FILE",
		    .required = true),
	};
	static const struct command strict = {.name = "try", .options = needed, .n_options = 2};
	struct values v = {0};
	struct option_messages m;

	(void)state;
	assert_int_equal(parse(&strict, "", &v, &m), -EINVAL);
	assert_string_equal(m.error, "FILE is missing");
	assert_int_equal(parse(&strict, "f", &v, &m), -EINVAL);
	assert_string_equal(m.error, "--output FILE is missing");
	assert_int_equal(parse(&strict, "f -o g", &v, &m), 0);
}

/* All forms of a short option, and letters together. */
static void test_letters(void **state)
{
	static const char *const lines[] = {"-bf -o out -i 2s", "-b -foout -i2s", "-bfi 2s -oout",
					    "-fb --output=out --interval=2s",
					    "-fbi2s --output out"};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct values v = {0};
		struct option_messages m;

		assert_int_equal(parse(&command, lines[i], &v, &m), 0);
		assert_true(v.flag && v.batch);
		assert_string_equal(v.string, "out");
		assert_int_equal(v.interval, 2000000000);
	}
}

static void test_old_forms_work_with_a_warning(void **state)
{
	struct values v = {0};
	struct option_messages m;

	(void)state;
	assert_int_equal(parse(&command, "--old --delay 20", &v, &m), 0);
	assert_true(v.old);
	assert_int_equal(v.duration, 20000000);
	assert_string_equal(m.warnings,
			    "--old will be removed; write --format json\n"
			    "--delay 20: write 20ms; a number without a unit will become an "
			    "error\n");
	assert_int_equal(parse(&command, "--delay 20ms", &v, &m), 0);
	assert_string_equal(m.warnings, "");
}

/* A quantity's text and its value; 0 units: refused. */
struct quantity {
	const char *text;
	uint64_t value;
};

static void quantities_check(int (*read)(const char *, uint64_t *), const struct quantity *cases,
			     size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t value = 0;
		int err = read(cases[i].text, &value);

		if (err != (cases[i].value ? 0 : -EINVAL) || value != cases[i].value)
			fail_msg("`%s` is %llu, %d", cases[i].text, (unsigned long long)value, err);
	}
}

static void test_durations(void **state)
{
	static const struct quantity cases[] = {
		{"1ns", 1},
		{"250us", 250000},
		{"100ms", 100000000},
		{"10s", 10000000000},
		{"5m", 300000000000},
		{"2h", 7200000000000},
		{"0.5ms", 500000},
		{".5ms", 500000},
		{"81.234567891s", 81234567891},
		{"9223372036.854775807s", INT64_MAX},
		{"9223372036.854775808s", 0},
		{"", 0},
		{"ms", 0},
		{".ms", 0},
		{"1.ms", 0},
		{"1.2.3s", 0},
		{"-1s", 0},
		{"+1s", 0},
		{"1", 0},
		{"1 s", 0},
		{"nan", 0},
		{"inf", 0},
		{"0.1ns", 0},
		{"3000000h", 0},
		{"1000000000000000000000000h", 0},
	};

	(void)state;
	quantities_check(duration_parse, cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_sizes(void **state)
{
	static const struct quantity cases[] = {
		{"1", 1},
		{"4096", 4096},
		{"4K", 4096},
		{"4KiB", 4096},
		{"256M", 256 << 20},
		{"10G", 10ull << 30},
		{"2TiB", 2ull << 40},
		{"18446744073709551615", UINT64_MAX},
		{"18446744073709551616", 0},
		{"17179869184G", 0},
		{"", 0},
		{"M", 0},
		{"4k", 0},
		{"4KB", 0},
		{"4 M", 0},
		{"-4M", 0},
		{"1.5G", 0},
	};

	(void)state;
	quantities_check(size_parse, cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_numbers(void **state)
{
	static const struct quantity cases[] = {{"7", 7},  {"007", 7}, {"", 0},   {"-7", 0},
						{"+7", 0}, {"0x7", 0}, {" 7", 0}, {"7 ", 0}};
	static const struct quantity shares[] = {{"1%", 1}, {"100%", 100}, {"101%", 0}, {"1", 0},
						 {"%", 0},  {"1%%", 0},    {"0.5%", 0}, {"-1%", 0}};
	int64_t number;
	bool flag;

	(void)state;
	quantities_check(number_parse, cases, sizeof(cases) / sizeof(cases[0]));
	quantities_check(percent_parse, shares, sizeof(shares) / sizeof(shares[0]));
	assert_int_equal(signed_parse("-1500000", &number), 0);
	assert_int_equal(number, -1500000);
	assert_int_equal(signed_parse("--1", &number), -EINVAL);
	assert_int_equal(signed_parse("9223372036854775808", &number), -EINVAL);
	assert_int_equal(flag_parse("yes", &flag), 0);
	assert_true(flag);
	assert_int_equal(flag_parse("true", &flag), -EINVAL);
}

static void test_help_names_every_row(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	options_print_help(&command, f);
	fclose(f);
	for (size_t i = 0; i < command.n_options; i++) {
		bool shown = strstr(text, rows[i].help) != NULL;

		assert_int_equal(shown, !rows[i].replaced_by);
		assert_true(!shown || strstr(text, rows[i].name));
	}
	assert_non_null(strstr(text, "  -o, --output FILE            help for output\n"));
	assert_non_null(strstr(text, "      --pid N                  help for pid\n"));
	assert_non_null(strstr(text, "-h, --help"));
	assert_non_null(strstr(text, "a note\n"));
	assert_non_null(strstr(text, "exit codes:\n  7  seven\n"));
	assert_non_null(strstr(text, "examples:\n  try this\n"));
	free(text);
}

static void test_lists_take_what_follows(void **state)
{
	struct lists {
		struct option_list base, against;
		bool flag;
	} v = {0};
	static const struct option_spec list_rows[] = {
		{.name = "BASE",
		 .type = OPTION_OPERANDS,
		 .offset = offsetof(struct lists, base),
		 .required = true},
		{.name = "against",
		 .type = OPTION_LIST,
		 .offset = offsetof(struct lists, against),
		 .value = "NEW...",
		 .required = true},
		{.name = "flag", .type = OPTION_FLAG, .offset = offsetof(struct lists, flag)},
	};
	const struct command c = {.name = "try", .options = list_rows, .n_options = 3};
	char *argv[] = {"try", "a", "b", "--against", "x", "y", "--flag", "c"};
	char *without[] = {"try", "--against", "x"};
	struct option_messages m;

	(void)state;
	assert_int_equal(options_parse(&c, 8, argv, &v, &m), 0);
	assert_int_equal(v.base.n, 3);
	assert_string_equal(v.base.items[2], "c");
	assert_int_equal(v.against.n, 2);
	assert_string_equal(v.against.items[1], "y");
	assert_true(v.flag);
	assert_int_equal(options_parse(&c, 3, without, &v, &m), -EINVAL);
	assert_string_equal(m.error, "BASE is missing");
	while (v.base.n < OPTION_LIST_MAX)
		v.base.items[v.base.n++] = "more";
	assert_true(options_parse(&c, 8, argv, &v, &m) < 0);
	assert_string_equal(m.error, "BASE: more than 1024");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists_take_what_follows),
		cmocka_unit_test(test_values_arrive),
		cmocka_unit_test(test_mistakes_are_named),
		cmocka_unit_test(test_required_is_required),
		cmocka_unit_test(test_letters),
		cmocka_unit_test(test_old_forms_work_with_a_warning),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_help_names_every_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
