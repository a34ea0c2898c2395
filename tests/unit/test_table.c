/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests a table in its three formats, with names of tasks that a guest chose to break them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "host-collector/tables/table.h"

static const struct table_column columns[] = {
	{"vm", "VM", TABLE_TEXT},
	{"count", "n", TABLE_COUNT},
	{"wait", "waited", TABLE_NS},
	{"share", "share", TABLE_PERCENT},
};

static struct table *filled(void)
{
	static const char *const names[] = {"a", "b\"\n\x1b[31m", "=1+1"};
	struct table *t = table_new("test", columns, 4);

	assert_non_null(t);
	for (int i = 0; i < 3; i++) {
		table_row(t);
		table_text(t, names[i]);
		table_count(t, (uint64_t)i);
		table_ns(t, (i + 1) * 1500000);
		table_percent(t, 12.5 * i);
	}
	return t;
}

static char *drawn(const struct table *t, int (*write)(const struct table *t, FILE *out))
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(write(t, out), 0);
	fclose(out);
	return text;
}

static int csv(const struct table *t, FILE *out)
{
	struct table *one = (struct table *)t;

	return tables_write_csv(&one, 1, out);
}

static int json(const struct table *t, FILE *out)
{
	struct table *one = (struct table *)t;

	return tables_write_json(&one, 1, false, out);
}

static void text_is_aligned_and_sorted(void **unused)
{
	struct table *t = filled();
	char *text;

	(void)unused;
	table_sort(t, 2, 2);
	text = drawn(t, table_write_text);
	assert_string_equal(text, "VM            n  waited   share\n"
				  "=1+1          2  4.5 ms  25.0 %\n"
				  "b\"\\n\\x1b[31m  1  3.0 ms  12.5 %\n"
				  "and 1 more; --top 0 shows all\n");
	free(text);
	table_free(t);
}

static void csv_quotes_and_defuses(void **unused)
{
	struct table *t = filled();
	char *text;

	(void)unused;
	text = drawn(t, csv);
	assert_string_equal(text, "vm,count,wait_ns,share_percent\r\n"
				  "\"a\",0,1500000,0.000\r\n"
				  "\"b\"\"\\n\\x1b[31m\",1,3000000,12.500\r\n"
				  "\"'=1+1\",2,4500000,25.000\r\n");
	free(text);
	table_free(t);
}

static void json_parses(void **unused)
{
	struct table *t = filled();
	char *text = drawn(t, json);
	struct json_object *root = json_tokener_parse(text), *rows, *value;

	(void)unused;
	assert_non_null(root);
	assert_true(json_object_object_get_ex(root, "schema", &value));
	assert_string_equal(json_object_get_string(value), "vcpuscope.table/2");
	assert_true(json_object_object_get_ex(root, "rows", &rows));
	assert_int_equal(json_object_array_length(rows), 3);
	assert_true(
		json_object_object_get_ex(json_object_array_get_idx(rows, 1), "wait_ns", &value));
	assert_int_equal(json_object_get_int64(value), 3000000);
	assert_null(strchr(text, '\x1b'));
	json_object_put(root);
	free(text);
	table_free(t);
}

static void what_was_not_observed_is_not_zero(void **unused)
{
	struct table *t = table_new("test", columns, 4);
	char *text;

	(void)unused;
	table_row(t);
	for (int i = 0; i < 4; i++)
		table_none(t);
	text = drawn(t, csv);
	assert_non_null(strstr(text, "\r\n,,,\r\n"));
	free(text);
	text = drawn(t, table_write_text);
	assert_non_null(strstr(text, "n/a"));
	assert_null(strstr(text, "0"));
	free(text);
	text = drawn(t, json);
	assert_non_null(strstr(text, "\"wait_ns\":null"));
	free(text);
	table_free(t);
}

static void a_wide_row_is_a_block(void **unused)
{
	struct table *t = table_new("test", columns, 4);
	char *text;

	(void)unused;
	table_records(t);
	table_row(t);
	table_text(t, "a");
	table_none(t);
	table_ns(t, 1500000);
	table_none(t);
	text = drawn(t, table_write_text);
	assert_string_equal(text, " 1. VM a, waited 1.5 ms,\n"
				  "    not observed: n, share\n");
	free(text);
	table_free(t);
}

static void several_tables_are_one_document(void **unused)
{
	static const struct table_column others[] = {{"vm", "VM", TABLE_TEXT},
						     {"pid", "pid", TABLE_COUNT}};
	struct table *tables[] = {filled(), table_new("other", others, 2)};
	struct json_object *root, *value;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)unused;
	table_row(tables[1]);
	table_text(tables[1], "a");
	table_count(tables[1], 7);
	assert_int_equal(tables_write_csv(tables, 2, out), 0);
	fclose(out);
	assert_memory_equal(text, "table,vm,count,wait_ns,share_percent,pid\r\n", 42);
	assert_non_null(strstr(text, "\r\ntest,\"a\",0,1500000,0.000,\r\n"));
	assert_non_null(strstr(text, "\r\nother,\"a\",,,,7\r\n"));
	free(text);
	out = open_memstream(&text, &len);
	assert_int_equal(tables_write_json(tables, 2, true, out), 0);
	fclose(out);
	assert_int_equal(strchr(text, '\n') - text, strlen(text) - 1);
	root = json_tokener_parse(text);
	assert_true(json_object_object_get_ex(root, "table", &value));
	assert_string_equal(json_object_get_string(value), "test");
	assert_true(json_object_object_get_ex(root, "tables", &value));
	assert_int_equal(json_object_array_length(value), 1);
	assert_true(json_object_object_get_ex(json_object_array_get_idx(value, 0), "rows", &value));
	assert_int_equal(json_object_array_length(value), 1);
	json_object_put(root);
	free(text);
	for (int i = 0; i < 2; i++)
		table_free(tables[i]);
}

static void a_cell_of_the_wrong_type_is_told(void **unused)
{
	struct table *t = table_new("test", columns, 4);

	(void)unused;
	table_count(t, 1); /* no row yet */
	assert_int_equal(table_write_text(t, stderr), -EINVAL);
	table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_aligned_and_sorted),
		cmocka_unit_test(csv_quotes_and_defuses),
		cmocka_unit_test(json_parses),
		cmocka_unit_test(what_was_not_observed_is_not_zero),
		cmocka_unit_test(a_wide_row_is_a_block),
		cmocka_unit_test(several_tables_are_one_document),
		cmocka_unit_test(a_cell_of_the_wrong_type_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
