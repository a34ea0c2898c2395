// SPDX-License-Identifier: GPL-2.0-only
/* Tests which VM a command line selects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host-collector/cli/feed.h"
#include "host-collector/cli/vms_options.h"

static void test_one_vm_is_named(void **state)
{
	static const struct {
		struct feed_arguments arguments;
		bool right;
	} cases[] = {
		{{.vm = NULL}, false},
		{{.vm = "web1"}, true},
		{{.pid = 1}, true},
		{{.qmp = "/run/web1.qmp"}, true},
		{{.pid = 1, .qmp = "/run/web1.qmp"}, true}, /* its life-cycle events, too */
		{{.vm = "web1", .pid = 1}, false},
		{{.vm = "web1", .qmp = "/run/web1.qmp"}, false},
		{{.pid = (uint64_t)INT32_MAX + 1}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(!*feed_arguments_check(&cases[i].arguments), cases[i].right);
}

static void test_silence_is_not_ok(void **state)
{
	static const struct {
		bool has_channel;
		enum link_state link;
		uint64_t silent_ms;
		const char *text;
	} cases[] = {
		{false, LINK_DOWN, 0, "host only"},
		{true, LINK_DOWN, 0, "channel down"},
		{true, LINK_DOWN, 9000, "channel down"},
		{true, LINK_SILENT, 0, "no agent yet"},
		{true, LINK_TALKING, 0, "agent ok"},
		{true, LINK_TALKING, 999, "agent ok"},
		{true, LINK_TALKING, 1000, "agent silent for 1 s"},
		{true, LINK_TALKING, 25900, "agent silent for 25 s"},
		{true, LINK_REFUSED, 9000, "agent of another version"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct collector_status s = {.has_channel = cases[i].has_channel,
						   .link.state = cases[i].link,
						   .agent_silent_ms = cases[i].silent_ms};
		char text[64];

		feed_guest_text(&s, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

static struct option_list list(size_t n, const char *a, const char *b)
{
	return (struct option_list){.items = {a, b}, .n = n};
}

static void test_several_vms_are_named_in_one_way(void **state)
{
	const struct {
		struct vms_arguments arguments;
		size_t count;
		bool no_guest, right;
	} cases[] = {
		{{.vms = list(0, NULL, NULL)}, 0, false, false},
		{{.vms = list(1, "a", NULL)}, 1, false, true},
		{{.vms = list(2, "a", "b")}, 2, false, true},
		{{.pids = list(2, "1", "2")}, 2, true, true},
		{{.pids = list(2, "1", "0")}, 2, true, false},
		{{.pids = list(2, "1", "x")}, 2, true, false},
		{{.pids = list(1, "2147483648", NULL)}, 1, true, false},
		{{.qmp = "/q"}, 1, false, true},
		{{.pids = list(1, "1", NULL), .qmp = "/q"}, 1, false, true},
		{{.pids = list(2, "1", "2"), .qmp = "/q"}, 2, false, false},
		{{.vms = list(1, "a", NULL), .qmp = "/q"}, 1, false, false},
		{{.vms = list(2, "a", "b"), .pids = list(1, "1", NULL)}, 2, false, false},
		{{.vms = list(1, "a", NULL), .channels = list(1, "x", NULL)}, 1, false, true},
		{{.vms = list(1, "a", NULL), .channels = list(1, "x", NULL)}, 1, true, false},
		{{.vms = list(1, "a", NULL), .channels = list(2, "x", "y")}, 1, false, false},
		{{.vms = list(2, "a", "b"), .channels = list(1, "x", NULL)}, 2, false, false},
		{{.vms = list(2, "a", "b"), .channels = list(2, "x", "none")}, 2, false, true},
	};
	const struct vms_arguments one = {.vms = list(1, "a", NULL),
					  .channels = list(1, "none", NULL)},
				   two = {.vms = list(2, "a", "b"),
					  .channels = list(2, "none", "x")};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *why = vms_arguments_check(&cases[i].arguments, cases[i].no_guest);

		if (!*why != cases[i].right)
			fail_msg("case %zu: %s", i, why);
		assert_int_equal(vms_arguments_count(&cases[i].arguments), cases[i].count);
	}
	assert_string_equal(vms_arguments_channel(&one, 0), "none"); /* a path */
	assert_null(vms_arguments_channel(&two, 0));
	assert_string_equal(vms_arguments_channel(&two, 1), "x");
	assert_null(vms_arguments_channel(&two, 2));
}

/* The status of several VMs. */
static void test_the_worst_guest_is_shown(void **state)
{
	static const struct {
		struct collector_status a, b;
		const char *text;
		bool clock_known, paused;
	} cases[] = {
#define TALKS .has_channel = true, .link.state = LINK_TALKING, .clock_known = true
		{{TALKS}, {TALKS}, "agent ok", true, false},
		{{TALKS}, {TALKS, .agent_silent_ms = 3000}, "agent silent for 3 s", true, false},
		{{TALKS}, {.has_channel = true}, "channel down", false, false},
		{{.has_channel = true, .link.state = LINK_SILENT},
		 {TALKS},
		 "no agent yet",
		 false,
		 false},
		{{.paused = true}, {TALKS}, "agent ok", true, true},
		{{TALKS}, {.paused = true}, "agent ok", true, true},
		{{.ended = true, .paused = true, .has_channel = true},
		 {TALKS},
		 "agent ok",
		 true,
		 false},
		{{TALKS}, {.ended = true, .has_channel = true}, "agent ok", true, false},
		{{.ended = true, TALKS}, {.n_vcpus = 1}, "host only", false, false},
		{{.ended = true, TALKS},
		 {.ended = true, .has_channel = true},
		 "channel down",
		 false,
		 false},
#undef TALKS
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct collector_status sum = cases[i].a, more = cases[i].b;
		char text[64];

		sum.n_vcpus = 2;
		more.n_vcpus = 3;
		sum.link.frames = 40;
		more.link.frames = 50;
		feed_status_add(&sum, &more);
		feed_guest_text(&sum, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
		assert_int_equal(sum.clock_known, cases[i].clock_known);
		assert_int_equal(sum.paused, cases[i].paused);
		assert_int_equal(sum.ended, cases[i].a.ended && cases[i].b.ended);
		assert_int_equal(sum.n_vcpus, 5);
		assert_int_equal(sum.link.frames, 90);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_vm_is_named),
		cmocka_unit_test(test_several_vms_are_named_in_one_way),
		cmocka_unit_test(test_the_worst_guest_is_shown),
		cmocka_unit_test(test_silence_is_not_ok),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
