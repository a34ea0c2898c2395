/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the lines of `top`: they fit the screen for any names of VMs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/util/escape.h"
#include "host-collector/view/top_screen.h"

enum { VMS = 50, LINES_MAX = 200 };

struct page {
	size_t n, selected;
	char lines[LINES_MAX][1024];
	enum top_look looks[LINES_MAX];
};

static void line_take(void *context, enum top_look look, const char *text)
{
	struct page *p = context;

	assert_true(p->n < LINES_MAX);
	snprintf(p->lines[p->n], sizeof(p->lines[0]), "%s", text);
	if (look == TOP_SELECTED)
		p->selected = p->n;
	p->looks[p->n++] = look;
}

static unsigned width(const char *text)
{
	unsigned n = 0;

	for (; *text; n++) {
		struct character c = character_at(text);

		assert_true(c.valid && c.code >= ' ' && !character_is_unsafe(c.code));
		text += c.bytes;
	}
	return n;
}

static void rows_fill(struct top_row *rows)
{
	for (unsigned i = 0; i < VMS; i++) {
		rows[i] = (struct top_row){.vm = i + 1,
					   .n_vcpus = 4,
					   .ran = i,
					   .delay = 100.0 - i,
					   .known = true,
					   .exits_per_s = i * 1e6,
					   .latency_known = i % 2,
					   .latency_ns = i * 1000000ll,
					   .open = i == 7};
		snprintf(rows[i].name, sizeof(rows[i].name),
			 i % 3 ? "vm-%u"
			       : "\x1b[31m\xe2\x80\xae vm-%u \xc3\xa9 and a name that is "
				 "longer than any screen would have it",
			 i);
	}
}

static struct top_screen screen(unsigned columns, unsigned lines)
{
	return (struct top_screen){
		.columns = columns, .lines = lines, .filter = "", .when = "12:34:56", .notice = ""};
}

static void a_screen_is_filled_and_not_more(void **state)
{
	static const struct {
		unsigned columns, lines;
	} sizes[] = {{80, 24}, {40, 10}, {20, 3}, {200, 60}, {1, 1}, {80, 2}};
	struct top_row rows[VMS];

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int help = 0; help < 2; help++) {
			struct top_screen s = screen(sizes[i].columns, sizes[i].lines);
			struct page page = {0};

			s.help = help;
			rows_fill(rows);
			assert_int_equal(top_rows_prepare(rows, VMS, &s), VMS);
			top_screen_draw(&s, rows, VMS, line_take, &page);
			assert_int_equal(page.n, s.lines);
			for (size_t k = 0; k < page.n; k++)
				assert_true(width(page.lines[k]) <= s.columns);
		}
	}
}

/* Heads stand over their figures. */
static void columns_are_aligned(void **state)
{
	struct top_screen s = screen(80, 24);
	struct top_row rows[VMS];
	struct page page = {0};

	(void)state;
	rows_fill(rows);
	top_rows_prepare(rows, VMS, &s);
	top_screen_draw(&s, rows, VMS, line_take, &page);
	assert_int_equal(page.looks[1], TOP_COLUMNS);
	for (size_t k = 1; k < 23; k++)
		assert_int_equal(width(page.lines[k]), 80);
	assert_string_equal(page.lines[1] + 76, "open");
	for (size_t k = 2; k < 23; k++)
		assert_true(page.lines[k][strlen(page.lines[k]) - 1] >= '0');
}

static void the_selected_row_is_on_the_screen(void **state)
{
	struct top_screen s = screen(80, 24);
	struct top_row rows[VMS];

	(void)state;
	rows_fill(rows);
	top_rows_prepare(rows, VMS, &s);
	for (size_t wanted = 0; wanted < VMS + 5; wanted++) {
		struct page page = {0};

		s.selected = wanted;
		top_screen_draw(&s, rows, VMS, line_take, &page);
		assert_true(page.selected >= 2);
		assert_int_equal(s.selected, wanted < VMS ? wanted : VMS - 1);
	}
}

static void rows_are_sorted_and_filtered(void **state)
{
	struct top_screen s = screen(80, 24);
	struct top_row rows[VMS];

	(void)state;
#define X(NAME, name)                                                                              \
	assert_int_equal(top_sort_parse(name, &s.sort), 0);                                        \
	assert_int_equal(s.sort, TOP_SORT_##NAME);
	TOP_SORTS(X)
#undef X
	assert_int_equal(top_sort_parse("height", &s.sort), -EINVAL);
	s.sort = screen(80, 24).sort;
	rows_fill(rows);
	top_rows_prepare(rows, VMS, &s);
	assert_int_equal(rows[0].vm, 1);
	s.sort = TOP_SORT_EXITS;
	top_rows_prepare(rows, VMS, &s);
	assert_int_equal(rows[0].vm, VMS);
	s.sort = TOP_SORT_OPEN;
	top_rows_prepare(rows, VMS, &s);
	assert_int_equal(rows[0].vm, 8);
	s.filter = "VM-1";
	assert_int_equal(top_rows_prepare(rows, VMS, &s), 11); /* 1, 10 to 19 */
	s.filter = "no such name";
	assert_int_equal(top_rows_prepare(rows, 11, &s), 0);
}

static void a_script_gets_every_row(void **state)
{
	struct top_screen s = screen(98, 0);
	struct top_row rows[VMS];
	struct page page = {0};

	(void)state;
	s.plain = true;
	rows_fill(rows);
	top_rows_prepare(rows, VMS, &s);
	top_screen_draw(&s, rows, VMS, line_take, &page);
	assert_int_equal(page.n, VMS + 2);
	for (size_t k = 0; k < page.n; k++) {
		assert_true(width(page.lines[k]) <= 98);
		assert_true(page.lines[k][strlen(page.lines[k]) - 1] != ' ');
	}
}

static const char *line_with(const struct page *p, const char *part)
{
	for (size_t i = 0; i < p->n; i++) {
		if (strstr(p->lines[i], part))
			return p->lines[i];
	}
	fail_msg("no line has \"%s\"", part);
	return NULL;
}

/* A wide screen has charts and the last stall in the row, a narrow one has the stall below. */
static void the_last_stall_is_shown_where_there_is_room(void **state)
{
	struct top_row row = {
		.name = "web1",
		.n_vcpus = 2,
		.known = true,
		.delays = {-1, -1, -1, -1, -1, -1, 0, 30, 60, 100},
		.steals = {-1, -1, -1, -1, -1, -1, -1, -1, -1, 0},
		.last = {true, false, "vmm_lock", "qemu-system-x86 (4100)", 1, 512000000, 0}};
	struct page page;

	(void)state;
	for (unsigned columns = 80; columns <= 160; columns += 80) {
		struct top_screen s = screen(columns, 24);
		const char *line;

		page = (struct page){0};
		top_screen_draw(&s, &row, top_rows_prepare(&row, 1, &s), line_take, &page);
		line = line_with(&page, "vmm_lock 512 ms qemu-system-x86 (4100)");
		assert_ptr_equal(strstr(line, columns == 80 ? "last stall: VM web1, guest CPU 1: "
							    : "web1 "),
				 line);
		line_with(&page, "_:=#"); /* nothing, 30, 60 and 100 % */
		assert_int_equal(page.n, 24);
	}
}

static void a_vm_that_is_absent_has_its_state(void **state)
{
	struct top_row row = {.name = "web2", .absent = "waiting: no process has its name"};
	struct top_screen s = screen(80, 24);
	struct page page = {0};

	(void)state;
	top_screen_draw(&s, &row, top_rows_prepare(&row, 1, &s), line_take, &page);
	line_with(&page, "web2");
	line_with(&page, "waiting: no process has its name");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_screen_is_filled_and_not_more),
		cmocka_unit_test(columns_are_aligned),
		cmocka_unit_test(the_selected_row_is_on_the_screen),
		cmocka_unit_test(rows_are_sorted_and_filtered),
		cmocka_unit_test(a_script_gets_every_row),
		cmocka_unit_test(the_last_stall_is_shown_where_there_is_room),
		cmocka_unit_test(a_vm_that_is_absent_has_its_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
