/* SPDX-License-Identifier: GPL-2.0-only */
/* One table in its three dresses; what a guest chose to call a task cannot break any of them. */
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

#include "host-collector/view/table.h"

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

static void text_is_aligned_and_sorted(void **unused)
{
	struct table *t = filled();
	char *text;

	(void)unused;
	table_sort(t, 2, 2);
	text = drawn(t, table_write_text);
	assert_string_equal(text, "VM            n  waited   share\n"
				  "=1+1          2  4.5 ms  25.0 %\n"
				  "b\"\\n\\x1b[31m  1  3.0 ms  12.5 %\n");
	free(text);
	table_free(t);
}

static void csv_quotes_and_defuses(void **unused)
{
	struct table *t = filled();
	char *text;

	(void)unused;
	text = drawn(t, table_write_csv);
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
	char *text = drawn(t, table_write_json);
	struct json_object *root = json_tokener_parse(text), *rows, *value;

	(void)unused;
	assert_non_null(root);
	assert_true(json_object_object_get_ex(root, "schema", &value));
	assert_string_equal(json_object_get_string(value), "vcpuscope.table/1");
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
	text = drawn(t, table_write_csv);
	assert_non_null(strstr(text, "\r\n,,,\r\n"));
	free(text);
	text = drawn(t, table_write_text);
	assert_non_null(strstr(text, "n/a"));
	assert_null(strstr(text, "0"));
	free(text);
	text = drawn(t, table_write_json);
	assert_non_null(strstr(text, "\"wait_ns\":null"));
	free(text);
	table_free(t);
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
		cmocka_unit_test(a_cell_of_the_wrong_type_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
