// SPDX-License-Identifier: GPL-2.0-only
/* Which VM a command line means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host-collector/cli/feed.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_vm_is_named),
		cmocka_unit_test(test_silence_is_not_ok),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
