/* SPDX-License-Identifier: GPL-2.0-only */
/* Command lines: every row of a table parses, and every mistake is named in the message. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/cli/options.h"
#include "host-collector/util/duration.h"

struct values {
	bool flag;
	const char *string, *format, *operand, *operand2;
	uint64_t number, duration, interval;
};

#define ROW(name, type, field, value, required)                                                    \
	{                                                                                          \
		name, type, offsetof(struct values, field), value, "help for " name, required      \
	}
static const struct option_spec rows[] = {
	ROW("FILE", OPTION_OPERAND, operand, NULL, false),
	ROW("flag", OPTION_FLAG, flag, NULL, false),
	ROW("output", OPTION_STRING, string, "FILE", false),
	ROW("OTHER", OPTION_OPERAND, operand2, NULL, false),
	ROW("format", OPTION_CHOICE, format, "text|json", false),
	ROW("pid", OPTION_NUMBER, number, "N", false),
	ROW("for", OPTION_DURATION, duration, "TIME", false),
	ROW("interval", OPTION_DURATION, interval, "1s", false),
};
static const struct command command = {
	.name = "try", .summary = "a test", .options = rows, .n_options = 8};

static int parse(const struct command *c, const char *line, struct values *v, char *why, size_t n)
{
	static char copy[256];
	char *argv[16] = {(char *)"try"};
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	return options_parse(c, argc, argv, v, why, n);
}

static void test_values_arrive(void **state)
{
	struct values v = {.number = 7, .format = "text"};
	char why[128];

	(void)state;
	assert_int_equal(parse(&command, "a.vcs --flag -o out -i 2s --format=json --for 1.5s b -- ",
			       &v, why, sizeof(why)),
			 0);
	assert_true(v.flag);
	assert_string_equal(v.string, "out");
	assert_string_equal(v.format, "json");
	assert_string_equal(v.operand, "a.vcs");
	assert_string_equal(v.operand2, "b");
	assert_int_equal(v.interval, 2000000000);
	assert_int_equal(v.number, 7); /* not given: the default stays */
	assert_int_equal(v.duration, 1500000000);
	assert_int_equal(parse(&command, "-- --flag", &v, why, sizeof(why)), 0);
	assert_string_equal(v.operand, "--flag");
}

static void test_mistakes_are_named(void **state)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{"--nope", "--nope: no such option"},
		{"--nope=3", "--nope: no such option"},
		{"-x", "-x: no such option"},
		{"--", ""},
		{"--flag=1", "--flag: takes no value"},
		{"--pid", "--pid: needs a value, N"},
		{"--pid -3", "--pid -3: want a whole number"},
		{"--pid 12x", "--pid 12x: want a whole number"},
		{"--pid 99999999999999999999", "want a whole number"},
		{"--for 10", "--for 10: want a duration with its unit"},
		{"--for 0s", "--for 0s: want a duration"},
		{"--for 10parsec", "want a duration"},
		{"--for 1e300h", "want a duration"},
		{"--format xml", "want one of text|json"},
		{"--format tex", "want one of text|json"},
		{"--format=", "want one of text|json"},
		{"--output=", "--output: is empty"},
		{"a b c", "c: unexpected argument"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct values v = {0};
		char why[128] = "";
		int err = parse(&command, cases[i].line, &v, why, sizeof(why));

		assert_int_equal(err, *cases[i].says ? -EINVAL : 0);
		if (!strstr(why, cases[i].says))
			fail_msg("`%s` says `%s`", cases[i].line, why);
	}
}

static void test_required_is_required(void **state)
{
	static const struct option_spec needed[] = {
		ROW("FILE", OPTION_OPERAND, operand, NULL, true),
		ROW("output", OPTION_STRING, string, "FILE", true),
	};
	static const struct command strict = {.name = "try", .options = needed, .n_options = 2};
	struct values v = {0};
	char why[128];

	(void)state;
	assert_int_equal(parse(&strict, "", &v, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "FILE is missing");
	assert_int_equal(parse(&strict, "f", &v, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "--output is missing");
	assert_int_equal(parse(&strict, "f -o g", &v, why, sizeof(why)), 0);
}

static void test_durations(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns; /* 0: refused */
	} cases[] = {
		{"1ns", 1},
		{"250us", 250000},
		{"100ms", 100000000},
		{"10s", 10000000000},
		{"5m", 300000000000},
		{"2h", 7200000000000},
		{"0.5ms", 500000},
		{"", 0},
		{"ms", 0},
		{"-1s", 0},
		{"1", 0},
		{"1 s", 0},
		{"nan", 0},
		{"inf", 0},
		{"0.1ns", 0},
		{"3000000h", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t ns = 0;

		assert_int_equal(duration_parse(cases[i].text, &ns), cases[i].ns ? 0 : -EINVAL);
		assert_int_equal(ns, cases[i].ns);
	}
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
		assert_non_null(strstr(text, rows[i].name));
		assert_non_null(strstr(text, rows[i].help));
	}
	free(text);
}

static void test_lists_take_what_follows(void **state)
{
	struct lists {
		struct option_list base, against;
		bool flag;
	} v = {0};
	static const struct option_spec list_rows[] = {
		{"BASE", OPTION_OPERANDS, offsetof(struct lists, base), NULL, "", true},
		{"against", OPTION_LIST, offsetof(struct lists, against), "NEW...", "", true},
		{"flag", OPTION_FLAG, offsetof(struct lists, flag), NULL, "", false},
	};
	const struct command c = {.name = "try", .options = list_rows, .n_options = 3};
	char *argv[] = {"try", "a", "b", "--against", "x", "y", "--flag", "c"};
	char *without[] = {"try", "--against", "x"}, why[128];

	(void)state;
	assert_int_equal(options_parse(&c, 8, argv, &v, why, sizeof(why)), 0);
	assert_int_equal(v.base.n, 3);
	assert_string_equal(v.base.items[2], "c");
	assert_int_equal(v.against.n, 2);
	assert_string_equal(v.against.items[1], "y");
	assert_true(v.flag);
	assert_int_equal(options_parse(&c, 3, without, &v, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "BASE is missing");
	while (v.base.n < OPTION_LIST_MAX)
		v.base.items[v.base.n++] = "more";
	assert_true(options_parse(&c, 8, argv, &v, why, sizeof(why)) < 0);
	assert_string_equal(why, "BASE: more than 1024");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists_take_what_follows),
		cmocka_unit_test(test_values_arrive),
		cmocka_unit_test(test_mistakes_are_named),
		cmocka_unit_test(test_required_is_required),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_help_names_every_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
