/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests folded stacks: each stack is written once, in order, in the text that other tools read.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/analyze/flame/folded.h"
#include "host-collector/view/folded_text.h"

#define FRAMES(...)                                                                                \
	(const struct folded_frame[]){__VA_ARGS__},                                                \
		sizeof((const struct folded_frame[]){__VA_ARGS__}) / sizeof(struct folded_frame)

static char *written(struct folded *f)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	assert_non_null(to);
	assert_int_equal(folded_text_write(f, to), 0);
	fclose(to);
	return text;
}

static int add_text(struct folded *f, struct folded *before, const char *text, size_t *line)
{
	FILE *from = fmemopen((void *)text, strlen(text), "r");
	int err;

	assert_non_null(from);
	err = folded_text_read(from, f, before, line);
	fclose(from);
	return err;
}

static void stacks_merge_and_come_in_order(void **unused)
{
	struct folded *f = folded_new();
	char *text;

	(void)unused;
	assert_int_equal(
		folded_add(f, FRAMES({"b", FOLDED_TASK, false}, {"x", FOLDED_GUEST_USER, false}),
			   5000),
		0);
	assert_int_equal(folded_add(f, FRAMES({"a", FOLDED_TASK, false}), 1000), 0);
	assert_int_equal(
		folded_add(f,
			   FRAMES({"a", FOLDED_TASK, false}, {"do_x", FOLDED_HOST_KERNEL, false},
				  {"--", FOLDED_SEPARATOR, false},
				  {"do_y", FOLDED_HOST_KERNEL, true}, {"waker", FOLDED_TASK, true}),
			   3000),
		0);
	assert_int_equal(
		folded_add(f, FRAMES({"b", FOLDED_TASK, false}, {"x", FOLDED_GUEST_USER, false}),
			   2000),
		0);
	assert_int_equal(folded_count(f), 3);
	assert_int_equal(folded_total_ns(f), 11000);
	text = written(f);
	assert_string_equal(text, "a 1\na;do_x_[k];--;do_y_[w];waker_[w] 3\nb;x 7\n");
	free(text);
	/* The same name of another kind is another frame. */
	assert_int_equal(
		folded_add(f, FRAMES({"b", FOLDED_TASK, false}, {"x", FOLDED_GUEST_KERNEL, false}),
			   2000),
		0);
	assert_int_equal(folded_count(f), 4);
	assert_null(folded_at(f, 4));
	folded_free(f);
}

/* A million stacks of 1.5 us: each line is off by less than one, the sum by less than one. */
static void rounding_loses_nothing(void **unused)
{
	struct folded *f = folded_new();
	uint64_t sum = 0;
	char name[16], *text, *line, *rest;

	(void)unused;
	for (int i = 0; i < 1001; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		assert_int_equal(folded_add(f, FRAMES({name, FOLDED_TASK, false}), 333), 0);
	}
	text = rest = written(f);
	while ((line = strsep(&rest, "\n")) && *line)
		sum += strtoull(strrchr(line, ' '), NULL, 10);
	assert_int_equal(sum, 1001 * 333 / 1000);
	free(text);
	folded_free(f);
}

static void hostile_names_stay_one_frame(void **unused)
{
	static const struct {
		const char *name, *shown;
	} cases[] = {
		{"a;b", "a:b"},
		{"evil 12", "evil_12"},
		{"evil 1.5", "evil_1.5"},
		{" x ", "_x_"},
		{"", "[unknown]"},
		{"a\nb 3", "a\\nb_3"},
		{"\x1b[31m", "\\x1b[31m"},
		{"</script>", "</script>"},
		{"\xff", "\\xff"},
		{"CPU 0/KVM", "CPU 0/KVM"},
		{"back\\slash", "back\\slash"},
		{"\xe2\x80\xaex", "\\u{202e}x"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct folded *f = folded_new(), *again = folded_new();
		char *text, *copy, expected[64];
		size_t line;

		assert_int_equal(folded_add(f,
					    FRAMES({"r", FOLDED_TASK, false},
						   {cases[i].name, FOLDED_GUEST_USER, false}),
					    7000),
				 0);
		snprintf(expected, sizeof(expected), "r;%s 7\n", cases[i].shown);
		text = written(f);
		assert_string_equal(text, expected);
		assert_int_equal(add_text(again, NULL, text, &line), 0);
		copy = written(again);
		assert_string_equal(copy, text);
		free(text);
		free(copy);
		folded_free(f);
		folded_free(again);
	}
}

static void long_names_and_deep_stacks_are_cut(void **unused)
{
	struct folded_frame deep[FOLDED_DEPTH_MAX + 5];
	const struct folded_stack *s;
	struct folded *f = folded_new();
	char name[1000];

	(void)unused;
	for (size_t i = 0; i < sizeof(deep) / sizeof(deep[0]); i++)
		deep[i] = (struct folded_frame){"f", FOLDED_GUEST_USER, false};
	assert_int_equal(folded_add(f, deep, FOLDED_DEPTH_MAX + 5, 1), 0);
	s = folded_at(f, 0);
	assert_int_equal(s->n_frames, FOLDED_DEPTH_MAX);
	assert_string_equal(s->frames[FOLDED_DEPTH_MAX - 1]->name, FOLDED_CUT);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_int_equal(folded_add(f, FRAMES({name, FOLDED_TASK, false}), 1), 0);
	assert_int_equal(strlen(folded_at(f, 1)->frames[0]->name), FOLDED_NAME_MAX - 1);
	assert_int_equal(folded_add(f, deep, 0, 1), -EINVAL);
	folded_free(f);
}

static void more_than_fits_is_kept_as_a_sum(void **unused)
{
	struct folded *f = folded_new();
	char name[32];

	(void)unused;
	for (size_t i = 0; i < FOLDED_FRAMES_MAX + 10; i++) {
		snprintf(name, sizeof(name), "n%zu", i);
		assert_int_equal(folded_add(f, FRAMES({name, FOLDED_TASK, false}), 3), 0);
	}
	assert_int_equal(folded_total_ns(f), 3ull * (FOLDED_FRAMES_MAX + 10));
	assert_int_equal(folded_count(f), FOLDED_FRAMES_MAX + 1);
	assert_string_equal(folded_at(f, 0)->frames[0]->name, FOLDED_OVERFLOW);
	assert_int_equal(folded_at(f, 0)->weight_ns, 30);
	folded_free(f);
}

static void text_tells_kinds_as_far_as_it_can(void **unused)
{
	struct folded *f = folded_new(), *before = folded_new();
	const struct folded_stack *s;
	size_t line;

	(void)unused;
	assert_int_equal(add_text(f, before,
				  "a b;u;k_[k];[vCPU blocked: storage];h;hk_[k];--;w_[w] 3\r\n"
				  "\n"
				  "q;h;-;k_[k] 1.5\n"
				  "z;d 4 6\n",
				  &line),
			 0);
	assert_int_equal(folded_total_ns(f), 10500);
	assert_int_equal(folded_total_ns(before), 4000);
	s = folded_at(f, 0);
	assert_string_equal(s->frames[0]->name, "a b");
	assert_int_equal(s->frames[0]->kind, FOLDED_TASK);
	assert_int_equal(s->frames[1]->kind, FOLDED_GUEST_USER);
	assert_int_equal(s->frames[2]->kind, FOLDED_GUEST_KERNEL);
	assert_string_equal(s->frames[2]->name, "k");
	assert_int_equal(s->frames[3]->kind, FOLDED_ANNOTATION);
	assert_int_equal(s->frames[4]->kind, FOLDED_HOST_USER);
	assert_int_equal(s->frames[5]->kind, FOLDED_HOST_KERNEL);
	assert_int_equal(s->frames[6]->kind, FOLDED_SEPARATOR);
	assert_true(s->frames[7]->waker);
	s = folded_at(f, 1);
	assert_int_equal(s->frames[1]->kind, FOLDED_HOST_USER);
	assert_int_equal(s->frames[2]->kind, FOLDED_SEPARATOR);
	assert_int_equal(s->frames[3]->kind, FOLDED_HOST_KERNEL);
	folded_free(f);
	folded_free(before);
}

static void what_is_no_folded_text_is_refused(void **unused)
{
	static const char *const bad[] = {"a;b\n",  "a;b x\n", " 5\n", "a;;b 5\n",
					  "a 5x\n", "a -5\n",  "5\n"};

	(void)unused;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct folded *f = folded_new();
		char text[64];
		size_t line;

		snprintf(text, sizeof(text), "good 1\n%s", bad[i]);
		assert_int_equal(add_text(f, NULL, text, &line), -EBADMSG);
		assert_int_equal(line, 2);
		folded_free(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_merge_and_come_in_order),
		cmocka_unit_test(rounding_loses_nothing),
		cmocka_unit_test(hostile_names_stay_one_frame),
		cmocka_unit_test(long_names_and_deep_stacks_are_cut),
		cmocka_unit_test(more_than_fits_is_kept_as_a_sum),
		cmocka_unit_test(text_tells_kinds_as_far_as_it_can),
		cmocka_unit_test(what_is_no_folded_text_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
