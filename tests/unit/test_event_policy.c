// SPDX-License-Identifier: GPL-2.0-only
/* Tests the events that a guest's owner allows a host to request, and the hashing of pointers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "guest-agent/event_policy.h"
#include "guest-agent/pointer_hash.h"
#include "proto/user_event_kind.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct event_policy policy_of(const char *text)
{
	struct event_policy p;
	char why[256] = "";

	event_policy_default(&p);
	if (event_policy_parse(&p, text, strlen(text), why, sizeof(why)))
		fail_msg("%s", why);
	return p;
}

static bool allows(const struct event_policy *p, enum user_event_kind kind, const char *system,
		   const char *name, char why[EVENT_POLICY_WHY])
{
	struct message_config_event e = {.kind = kind};

	snprintf(e.system, sizeof(e.system), "%s", system);
	snprintf(e.name, sizeof(e.name), "%s", name);
	strcpy(why, "");
	return event_policy_allows(p, &e, 0, why);
}

static void the_default_allows_what_the_manual_says(void **state)
{
	static const struct {
		enum user_event_kind kind;
		const char *system, *name, *why; /* NULL: allowed */
	} cases[] = {
		{USER_TRACEPOINT, "sched", "sched_switch", NULL},
		{USER_TRACEPOINT, "irq", "softirq_raise", NULL},
		{USER_TRACEPOINT, "irq_vectors", "local_timer_entry", NULL},
		{USER_TRACEPOINT, "timer", "hrtimer_start", NULL},
		{USER_TRACEPOINT, "workqueue", "workqueue_queue_work", NULL},
		{USER_TRACEPOINT, "block", "block_rq_issue", NULL},
		{USER_TRACEPOINT, "power", "cpu_idle", NULL},
		{USER_TRACEPOINT, "rcu", "rcu_utilization", NULL},
		{USER_TRACEPOINT, "irq_matrix", "irq_matrix_alloc", "(allow =)"},
		{USER_TRACEPOINT, "syscalls", "sys_enter_openat", "(allow =)"},
		{USER_TRACEPOINT, "kmem", "kmalloc", "(allow =)"},
		{USER_TRACEPOINT, "task", "task_rename", "(allow =)"},
		{USER_KPROBE, "", "vfs_read", "allows no functions"},
		{USER_KRETPROBE, "", "vfs_read", "allows no functions"},
		{USER_UPROBE, "", "main", "probes no programs"},
		{USER_URETPROBE, "", "main", "probes no programs"},
		{USER_USDT, "libc", "setjmp", "probes no programs"},
		{0, "sched", "sched_switch", "does not know this kind"},
		{77, "sched", "sched_switch", "does not know this kind"},
		/* Names that are paths, or nothing. */
		{USER_TRACEPOINT, "sched", "../irq/irq_handler_entry", "such a name"},
		{USER_TRACEPOINT, "sched/../kmem", "kmalloc", "such a name"},
		{USER_TRACEPOINT, "sched", "", "such a name"},
		{USER_TRACEPOINT, "", "sched_switch", "such a name"},
		{USER_TRACEPOINT, "sched", "sched_*", "such a name"},
		{USER_TRACEPOINT, "sched", "a b", "such a name"},
		{USER_KPROBE, "", "vfs_read+8", "such a name"},
	};
	const struct event_policy p = policy_of("");
	char why[EVENT_POLICY_WHY];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const bool allowed = allows(&p, cases[i].kind, cases[i].system, cases[i].name, why);

		if (allowed != !cases[i].why || (cases[i].why && !strstr(why, cases[i].why)))
			fail_msg("%s:%s: %d %s", cases[i].system, cases[i].name, allowed, why);
	}
	assert_false(p.texts);
	assert_int_equal(p.max_events, 16);
	assert_int_equal(p.rate, 20000);
}

static void the_file_decides(void **state)
{
	struct event_policy p = policy_of("# of this guest\n"
					  "allow = sched:sched_sw*, kmem:*   # two\n"
					  "\n"
					  "kprobes=vfs_* tcp_sendmsg\n"
					  "strings = yes\r\n"
					  "uprobes = no\nstacks = no\n"
					  "max_events = 2\n"
					  "rate = 500");
	struct message_config_event e = {
		.kind = USER_TRACEPOINT, .system = "kmem", .name = "kfree"};
	char why[EVENT_POLICY_WHY];

	(void)state;
	assert_true(p.texts);
	assert_int_equal(p.rate, 500);
	assert_true(allows(&p, USER_TRACEPOINT, "sched", "sched_switch", why));
	assert_false(allows(&p, USER_TRACEPOINT, "sched", "sched_waking", why));
	assert_false(allows(&p, USER_TRACEPOINT, "irq", "softirq_raise", why));
	assert_true(allows(&p, USER_KPROBE, "", "vfs_read", why));
	assert_true(allows(&p, USER_KRETPROBE, "", "tcp_sendmsg", why));
	assert_true(allows(&p, USER_KPROBE, "", "vfs_read.isra.0", why));
	assert_false(allows(&p, USER_KPROBE, "", "tcp_sendmsg_locked", why));
	assert_non_null(strstr(why, "does not allow this function"));
	assert_true(event_policy_allows(&p, &e, 1, why));
	assert_false(event_policy_allows(&p, &e, 2, why));
	assert_non_null(strstr(why, "allows 2 events (max_events =)"));
	p = policy_of("allow = no\n");
	assert_false(allows(&p, USER_TRACEPOINT, "sched", "sched_switch", why));
	p = policy_of("allow =\n");
	assert_false(allows(&p, USER_TRACEPOINT, "sched", "sched_switch", why));
	p = policy_of("max_events = 0\n");
	assert_false(allows(&p, USER_TRACEPOINT, "sched", "sched_switch", why));
}

static void a_mistake_in_the_file_is_said_with_its_line(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{"\nalow = sched:*\n", "line 2: there is no key 'alow'"},
		{"allow\n", "line 1: expected KEY = VALUE, found 'allow'"},
		{"allow = sched\n", "line 1: allow: expected patterns SYSTEM:NAME"},
		{"strings = maybe\n", "strings: expected yes or no, found 'maybe'"},
		{"max_events = 17\n", "max_events: expected a number up to 16"},
		{"max_events = -1\n", "max_events"},
		{"rate = 0\n", "rate: expected a number"},
		{"rate = 5k\n", "rate: expected a number"},
		{"uprobes = yes\n", "uprobes: expected no"},
		{"stacks = yes\n", "stacks: expected no"},
	};
	char *text = malloc(70000), why[256];
	struct event_policy p;

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		event_policy_default(&p);
		assert_int_equal(event_policy_parse(&p, wrong[i].text, strlen(wrong[i].text), why,
						    sizeof(why)),
				 -22);
		if (!strstr(why, wrong[i].why))
			fail_msg("%s: %s", wrong[i].text, why);
	}
	/* Too long, and too many. */
	memset(text, 'a', 70000);
	event_policy_default(&p);
	assert_int_equal(event_policy_parse(&p, text, 70000, why, sizeof(why)), -22);
	strcpy(text, "allow =");
	for (int i = 0; i < 65; i++)
		strcat(text, " a:b");
	assert_int_equal(event_policy_parse(&p, text, strlen(text), why, sizeof(why)), -22);
	assert_int_equal(event_policy_read(&p, "/no/such/file", why, sizeof(why)), -2);
	assert_int_equal(event_policy_read(&p, "/proc", why, sizeof(why)), -21);
	free(text);
}

static void random_files_never_break_it(void **state)
{
	static const char *const pieces[] = {
		"allow", "=",    " ",      "\n", "sched:*", "#", "rate", "no",    ":",
		"*",     "\r\n", "999999", ",",  "kprobes", "[", "-",    "yes\n", "max_events"};
	char text[400], why[EVENT_POLICY_WHY];

	(void)state;
	srandom(18);
	for (int round = 0; round < 20000; round++) {
		struct message_config_event e = {.kind = (uint32_t)random() % 8};
		struct event_policy p;
		size_t len = 0;

		for (long i = random() % 24; i > 0; i--) {
			const char *piece = pieces[(size_t)random() % COUNT(pieces)];

			memcpy(text + len, piece, strlen(piece));
			len += strlen(piece);
		}
		event_policy_default(&p);
		event_policy_parse(&p, text, len, why, sizeof(why));
		assert_true(p.max_events <= VS_CONFIG_EVENTS_MAX);
		assert_true(p.rate > 0);
		assert_true(p.tracepoints.n <= EVENT_POLICY_PATTERNS_MAX);
		for (size_t i = 0; i < sizeof(e.name) - 1; i++)
			e.name[i] = (char)(random() % 8 ? 'a' + random() % 26 : random());
		memcpy(e.system, "sched", 6);
		if (event_policy_allows(&p, &e, 0, why))
			assert_null(strpbrk(e.name, "/* \t\n"));
	}
}

static void pointers_leave_as_keyed_hashes(void **state)
{
	/* The reference implementation's key 00..0f and message 00..07: 0x93f5f5799a932462. */
	const struct pointer_hash known = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};
	struct pointer_hash a, b;

	(void)state;
	assert_true(pointer_hash(&known, 0x0706050403020100) == 0xf5799a932462);
	assert_int_equal(pointer_hash_init(&a), 0);
	assert_int_equal(pointer_hash_init(&b), 0);
	assert_true(pointer_hash(&a, 0) == 0);
	for (uint64_t i = 1; i < 1000; i++) {
		const uint64_t pointer = 0xffff888000000000 + 64 * i;

		assert_true(pointer_hash(&a, pointer) == pointer_hash(&a, pointer));
		assert_true(pointer_hash(&a, pointer) != pointer_hash(&a, pointer + 64));
		assert_true(pointer_hash(&a, pointer) != pointer_hash(&b, pointer));
		assert_true(pointer_hash(&a, pointer) >> POINTER_HASH_BITS == 0);
	}
	assert_true(pointer_hash_suspects(0xffffffff81000000));
	assert_true(pointer_hash_suspects(0xffff888012345678));
	assert_true(pointer_hash_suspects(0xff11000012345678)); /* five levels of tables */
	assert_false(pointer_hash_suspects(0xffffffffffffffff));
	assert_false(pointer_hash_suspects((uint64_t)-4095));
	assert_false(pointer_hash_suspects(0x00007fffffffffff));
	assert_false(pointer_hash_suspects(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_allows_what_the_manual_says),
		cmocka_unit_test(the_file_decides),
		cmocka_unit_test(a_mistake_in_the_file_is_said_with_its_line),
		cmocka_unit_test(random_files_never_break_it),
		cmocka_unit_test(pointers_leave_as_keyed_hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
