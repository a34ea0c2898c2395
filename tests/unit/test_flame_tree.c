/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests trees of stacks, the decision which differences may be chance, and the graph that is
 * drawn. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "host-collector/analyze/flame/flame_tree.h"
#include "host-collector/util/significance.h"
#include "host-collector/view/flame_svg.h"
#include "host-collector/view/folded_text.h"

static struct folded *folded_of(const char *text)
{
	FILE *from = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	struct folded *f = folded_new();
	size_t line;

	assert_int_equal(folded_text_read(from, f, NULL, &line), 0);
	fclose(from);
	return f;
}

static void tree_fill(struct flame_tree *t, enum flame_side side, size_t slice, const char *text)
{
	struct folded *f = folded_of(text);

	assert_int_equal(flame_tree_add(t, side, slice, f), 0);
	folded_free(f);
}

/* The node after `i`, depth first; FLAME_NONE past the last. */
static uint32_t node_after(const struct flame_tree *t, uint32_t i)
{
	if (flame_tree_at(t, i)->child != FLAME_NONE)
		return flame_tree_at(t, i)->child;
	while (i && flame_tree_at(t, i)->next == FLAME_NONE)
		i = flame_tree_at(t, i)->parent;
	return i ? flame_tree_at(t, i)->next : FLAME_NONE;
}

static const struct flame_node *node_find(const struct flame_tree *t, const char *name)
{
	for (uint32_t i = 0; i != FLAME_NONE; i = node_after(t, i)) {
		if (!strcmp(flame_tree_at(t, i)->name, name))
			return flame_tree_at(t, i);
	}
	fail_msg("no frame %s", name);
	return NULL;
}

static char *svg_of(const struct flame_tree *t, const struct flame_svg_options *o)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(flame_svg_write(t, o, out), 0);
	fclose(out);
	return text;
}

static void probabilities_are_those_of_the_tables(void **unused)
{
	const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
	struct significance_sample s = significance_sample_of(values, 8);
	struct significance_sample a = {5, 0, 1}, b = {5, 2.306004 * sqrt(0.4), 1};

	(void)unused;
	assert_true(fabs(s.mean - 5) < 1e-12 && fabs(s.variance - 32.0 / 7) < 1e-12);
	/* Student's t, 8 degrees of freedom: 2.306 is 5 %. */
	assert_true(fabs(significance_means(&a, &b) - 0.05) < 1e-6);
	/* Welch: variances 1 and 4, n 10 and 20, t 2.0: 27.98 degrees, p 0.0553. */
	a = (struct significance_sample){10, 0, 1};
	b = (struct significance_sample){20, 2 * sqrt(0.1 + 0.2), 4};
	assert_true(fabs(significance_means(&a, &b) - 0.0553) < 2e-4);
	assert_true(significance_means(&a, &a) == 1);
	b = (struct significance_sample){1, 100, 0};
	assert_true(significance_means(&a, &b) == 1);
	assert_true(fabs(significance_shares(60, 100, 40, 100) - 0.004678) < 1e-5);
	assert_true(significance_shares(50, 100, 50, 100) == 1);
}

static void merges_stacks_and_keeps_sums(void **unused)
{
	const struct flame_tree_options o = {.slices = {0, 1}};
	struct flame_tree *t = flame_tree_new(false);
	const struct flame_node *main_node;

	(void)unused;
	tree_fill(t, FLAME_AFTER, 0, "job;main;read 30\njob;main 5\njob;main;write 10\nidle 55\n");
	assert_int_equal(flame_tree_finish(t, &o), 0);
	main_node = node_find(t, "main");
	assert_int_equal(flame_tree_at(t, 0)->ns[FLAME_AFTER], 100000);
	assert_int_equal(main_node->ns[FLAME_AFTER], 45000);
	assert_int_equal(main_node->self_ns[FLAME_AFTER], 5000);
	assert_string_equal(flame_tree_at(t, main_node->child)->name, "read");
	assert_string_equal(flame_tree_at(t, flame_tree_at(t, 0)->child)->name, "idle");
	flame_tree_free(t);
	t = flame_tree_new(true);
	tree_fill(t, FLAME_AFTER, 0, "a;lock 3\nb;lock 4\n");
	assert_int_equal(flame_tree_finish(t, &o), 0);
	assert_int_equal(node_find(t, "lock")->ns[FLAME_AFTER], 7000);
	assert_int_equal(node_find(t, "lock")->parent, 0);
	flame_tree_free(t);
}

/* Twenty slices, as they grow; each stage varies a little by its own cycle. */
static void slices_fill(struct flame_tree *t, enum flame_side side, unsigned a, unsigned b,
			const char *more, unsigned seed)
{
	unsigned sums[2] = {0, 0};
	char text[256];

	for (unsigned i = 0; i < FLAME_TREE_SLICES; i++) {
		sums[0] += a + (i * 7 + seed) % 11;
		sums[1] += b + (i * 5 + seed) % 13;
		snprintf(text, sizeof(text), "job;a %u\njob;b %u\n%s", sums[0], sums[1],
			 i > 2 ? more : "");
		tree_fill(t, side, i, text);
	}
}

static void tells_a_change_from_chance(void **unused)
{
	const struct flame_tree_options o = {
		.compare = true, .seconds = {10, 10}, .slices = {20, 20}};
	struct flame_tree *t = flame_tree_new(false);

	(void)unused;
	slices_fill(t, FLAME_BEFORE, 100, 200, "", 1);
	slices_fill(t, FLAME_AFTER, 130, 200, "", 5);
	assert_int_equal(flame_tree_finish(t, &o), 0);
	assert_true(node_find(t, "a")->significant);
	assert_false(node_find(t, "b")->significant);
	assert_true(node_find(t, "job")->significant);
	flame_tree_free(t);

	t = flame_tree_new(false);
	slices_fill(t, FLAME_BEFORE, 100, 200, "", 1);
	slices_fill(t, FLAME_AFTER, 100, 200, "", 1);
	assert_int_equal(flame_tree_finish(t, &o), 0);
	for (uint32_t i = 0; i != FLAME_NONE; i = node_after(t, i))
		assert_false(flame_tree_at(t, i)->significant);
	flame_tree_free(t);
}

static void normalises_to_time_or_to_all(void **unused)
{
	struct flame_tree_options o = {.compare = true, .seconds = {10, 20}, .slices = {20, 20}};

	(void)unused;
	for (int normalise = 0; normalise < 2; normalise++) {
		struct flame_tree *t = flame_tree_new(false);

		o.normalise = normalise;
		slices_fill(t, FLAME_BEFORE, 100, 200, "", 1);
		slices_fill(t, FLAME_AFTER, 200, 400, "", 1);
		assert_int_equal(flame_tree_finish(t, &o), 0);
		assert_false(node_find(t, "a")->significant && normalise);
		assert_true(fabs(flame_tree_at(t, 0)->ns[0] / flame_tree_at(t, 0)->ns[1] - 1) <
			    0.05);
		flame_tree_free(t);
	}
}

static void draws_what_vanished_and_what_is_new(void **unused)
{
	const struct flame_tree_options o = {.compare = true, .slices = {1, 1}};
	const struct flame_svg_options svg = {.unit = "samples", .compare = true};
	struct flame_tree *t = flame_tree_new(false);
	char *text;

	(void)unused;
	tree_fill(t, FLAME_BEFORE, 0, "job;same 5000\njob;old 1000\n");
	tree_fill(t, FLAME_AFTER, 0, "job;same 5010\njob;fresh 900\n");
	assert_int_equal(flame_tree_finish(t, &o), 0);
	/* Wide enough for both. */
	assert_int_equal(flame_tree_at(t, 0)->width_ns, 5010000 + 1000000 + 900000);
	text = svg_of(t, &svg);
	assert_non_null(strstr(text, "<title>old (before 1,000 samples 16.67%, after 0 samples "
				     "0.00%; -16.67 points, vanished)"));
	assert_non_null(strstr(text, "points, new)"));
	assert_non_null(strstr(text, "<title>same (before 5,000 samples 83.33%, after 5,010"));
	assert_non_null(strstr(text, "not significant)</title><rect x="));
	free(text);
	flame_tree_free(t);
}

static void names_cannot_leave_their_place(void **unused)
{
	static const char *const names[] = {"</title><script>alert(1)</script>",
					    "]]>",
					    "\"'&<>",
					    "a\nb\x1b[0m",
					    "\xff\xfe"
					    "x",
					    "\xe2\x80\xae"
					    "txt"};
	const struct flame_tree_options o = {.slices = {0, 1}};
	const struct flame_svg_options svg = {.unit = "us", .title = "</text><b>\x01"};
	struct flame_tree *t = flame_tree_new(false);
	struct folded *f = folded_new();
	char *text;
	int scripts = 0;

	(void)unused;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const struct folded_frame frame = {names[i], FOLDED_GUEST_USER, false};

		assert_int_equal(folded_add(f, &frame, 1, 1000000), 0);
	}
	assert_int_equal(flame_tree_add(t, FLAME_AFTER, 0, f), 0);
	assert_int_equal(flame_tree_finish(t, &o), 0);
	text = svg_of(t, &svg);
	for (const char *p = text; (p = strstr(p, "<script")); p++)
		scripts++;
	assert_int_equal(scripts, 1);
	assert_null(strstr(text, "<b>"));
	for (const char *p = text; *p; p++)
		assert_true((unsigned char)*p >= ' ' || *p == '\n' || *p == '\t');
	free(text);
	folded_free(f);
	flame_tree_free(t);
}

static void leaves_out_what_is_too_narrow_and_fits_labels(void **unused)
{
	const struct flame_tree_options o = {.slices = {0, 1}};
	struct flame_svg_options svg = {.unit = "us", .width = 1000, .min_width = 1};
	struct flame_tree *t = flame_tree_new(false);
	char *text;

	(void)unused;
	tree_fill(t, FLAME_AFTER, 0,
		  "wide 1000000\ntiny 100\na_name_that_is_longer_than_its_frame 60000\n");
	assert_int_equal(flame_tree_finish(t, &o), 0);
	text = svg_of(t, &svg);
	assert_null(strstr(text, "<title>tiny"));
	assert_non_null(strstr(text, "<title>wide (1,000,000 us, 94.33%)</title>"));
	assert_non_null(strstr(text, ">a_na..</text>"));
	free(text);
	flame_tree_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probabilities_are_those_of_the_tables),
		cmocka_unit_test(merges_stacks_and_keeps_sums),
		cmocka_unit_test(tells_a_change_from_chance),
		cmocka_unit_test(normalises_to_time_or_to_all),
		cmocka_unit_test(draws_what_vanished_and_what_is_new),
		cmocka_unit_test(names_cannot_leave_their_place),
		cmocka_unit_test(leaves_out_what_is_too_narrow_and_fits_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
