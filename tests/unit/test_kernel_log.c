// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "bpf/capture/kernel_log.h"

static const struct {
	const char *record;
	int err;
	uint64_t seq, dmesg_us;
	uint32_t level;
	const char *text;
} cases[] = {
	{"6,339,5140900,-;NET: Registered protocol family 10\n", 0, 339, 5140900, 6,
	 "NET: Registered protocol family 10"},
	{"30,340,5690716,-;udevd[80]: starting version 181\n SUBSYSTEM=acpi\n", 0, 340, 5690716, 6,
	 "udevd[80]: starting version 181"},
	{"0,1,2,c,more=fields,of=later;bug; with a semicolon\n", 0, 1, 2, 0,
	 "bug; with a semicolon"},
	{"4,1,2,-;\033[31mred\ttab\n", 0, 1, 2, 4, "?[31mred?tab"},
	{"4,1,2,-;", 0, 1, 2, 4, ""},
	{"no semicolon", -EBADMSG, 0, 0, 0, NULL},
	{"x,1,2,-;text\n", -EBADMSG, 0, 0, 0, NULL},
	{"4,1;text\n", -EBADMSG, 0, 0, 0, NULL},
	{"", -EBADMSG, 0, 0, 0, NULL},
};

static void records_are_taken_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kernel_log_record got;

		assert_int_equal(kernel_log_parse(cases[i].record, strlen(cases[i].record), &got),
				 cases[i].err);
		if (cases[i].err)
			continue;
		assert_int_equal(got.seq, cases[i].seq);
		assert_int_equal(got.line.dmesg_us, cases[i].dmesg_us);
		assert_int_equal(got.line.level, cases[i].level);
		assert_string_equal(got.line.text, cases[i].text);
	}
}

static void long_lines_are_cut(void **state)
{
	struct kernel_log_record got;
	char record[2000];

	(void)state;
	memset(record, 'a', sizeof(record));
	memcpy(record, "4,1,2,-;", 8);
	assert_int_equal(kernel_log_parse(record, sizeof(record), &got), 0);
	assert_int_equal(strlen(got.line.text), VS_LOG_TEXT_MAX - 1);
}

/* A pair of datagram sockets is a /dev/kmsg: one record per read, EAGAIN at the end. */
static struct kernel_log *log_open(int *feed, const char *const *history, size_t n)
{
	struct kernel_log *log = NULL;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds), 0);
	*feed = fds[0];
	for (size_t i = 0; i < n; i++)
		assert_true(write(*feed, history[i], strlen(history[i])) > 0);
	assert_int_equal(kernel_log_open_fd(fds[1], &log), 0);
	return log;
}

static void feed_line(int feed, unsigned int seq, const char *text)
{
	char record[256];
	int n = snprintf(record, sizeof(record), "4,%u,%u,-;%s\n", seq, seq * 10, text);

	assert_int_equal(write(feed, record, (size_t)n), n);
}

static void history_keeps_only_stalls_and_new_lines_follow(void **state)
{
	static const char *const history[] = {
		"6,1,10,-;Booting Linux\n",
		"0,2,20,-;watchdog: BUG: soft lockup - CPU#0 stuck for 23s!\n",
		"6,3,30,-;usb 1-1: new device\n",
		"3,4,40,-;rcu: INFO: rcu_preempt self-detected stall on CPU\n",
	};
	struct message_kernel_log *out = malloc(sizeof(*out));
	struct kernel_log *log;
	int feed;

	(void)state;
	log = log_open(&feed, history, 4);
	feed_line(feed, 5, "new line");
	assert_int_equal(kernel_log_read(log, 0, out), 3);
	assert_int_equal(out->lines[0].dmesg_us, 20);
	assert_int_equal(out->lines[1].dmesg_us, 40);
	assert_string_equal(out->lines[2].text, "new line");
	assert_int_equal(kernel_log_read(log, 0, out), 0);
	kernel_log_close(log);
	close(feed);
	free(out);
}

static void only_the_newest_of_a_long_history_stay(void **state)
{
	struct message_kernel_log *out = malloc(sizeof(*out));
	char text[KERNEL_LOG_HISTORY_MAX + 3][64];
	const char *history[KERNEL_LOG_HISTORY_MAX + 3];
	struct kernel_log *log;
	int feed;

	(void)state;
	/* More than a datagram socket queues at once would block: the history is read in one go. */
	for (int i = 0; i < 8; i++) {
		snprintf(text[i], sizeof(text[i]), "4,%d,%d,-;watchdog %d\n", i, i, i);
		history[i] = text[i];
	}
	log = log_open(&feed, history, 8);
	assert_int_equal(kernel_log_read(log, 0, out), 8);
	assert_string_equal(out->lines[0].text, "watchdog 0");
	assert_string_equal(out->lines[7].text, "watchdog 7");
	kernel_log_close(log);
	close(feed);
	free(out);
}

static void a_flood_is_cut_and_what_was_cut_is_said(void **state)
{
	struct message_kernel_log *out = malloc(sizeof(*out));
	unsigned int seq = 0, lines = 0;
	struct kernel_log *log;
	bool reported = false;
	int feed;

	(void)state;
	log = log_open(&feed, NULL, 0);
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 5; i++)
			feed_line(feed, seq++, "flood");
		lines += (unsigned int)kernel_log_read(log, 10, out);
	}
	assert_int_equal(lines, KERNEL_LOG_LINES_PER_SECOND);
	feed_line(feed, seq++, "after");
	assert_int_equal(kernel_log_read(log, 2000, out), 2);
	reported = strstr(out->lines[0].text, "100 kernel log lines left out") != NULL;
	assert_true(reported);
	assert_string_equal(out->lines[1].text, "after");
	kernel_log_close(log);
	close(feed);
	free(out);
}

static void overwritten_records_are_counted(void **state)
{
	struct message_kernel_log *out = malloc(sizeof(*out));
	struct kernel_log *log;
	int feed;

	(void)state;
	log = log_open(&feed, NULL, 0);
	feed_line(feed, 10, "first");
	feed_line(feed, 15, "after the gap");
	assert_int_equal(kernel_log_read(log, 0, out), 3);
	assert_non_null(strstr(out->lines[1].text, "4 kernel log lines"));
	kernel_log_close(log);
	close(feed);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_taken_apart),
		cmocka_unit_test(long_lines_are_cut),
		cmocka_unit_test(history_keeps_only_stalls_and_new_lines_follow),
		cmocka_unit_test(only_the_newest_of_a_long_history_stay),
		cmocka_unit_test(a_flood_is_cut_and_what_was_cut_is_said),
		cmocka_unit_test(overwritten_records_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
