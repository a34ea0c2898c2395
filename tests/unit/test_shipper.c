/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the shipper: exit code 0 means delivered, any other code means a later attempt; in
 * order, without a shell, within the time limit, and when the shipper is killed.
 * VCPUSCOPE_TEST_FULL=1: 200 kills. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/fleet/segments.h"
#include "host-collector/fleet/shipper.h"

#define ONE "00000000000000000000000000000001"
#define TWO "00000000000000000000000000000002"

static char folder[64], outbox[80], said[4096];

static int run(const char *format, ...)
{
	char command[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return system(command);
}

static int setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_shipper.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(outbox, sizeof(outbox), "%s/outbox", folder);
	said[0] = 0;
	return run("mkdir -p %s/done %s/sent", outbox, outbox);
}

static int teardown(void **state)
{
	(void)state;
	return chdir("/") || run("rm -rf %s", folder);
}

static void file_make(enum segment_kind kind, uint64_t seq)
{
	char name[SEGMENT_NAME_MAX], path[256];
	FILE *f;

	segment_name(kind, ONE, TWO, seq, name);
	snprintf(path, sizeof(path), "%s/%s", outbox, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fprintf(f, "%llu\n", (unsigned long long)seq);
	fclose(f);
}

/* A command of our own; its text is the body of a script. */
static char *command_make(const char *body)
{
	static char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/command", folder);
	f = fopen(path, "we");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\ntarget=%s/target\n%s\n", folder, body);
	fclose(f);
	assert_int_equal(chmod(path, 0755), 0);
	return path;
}

static void on_say(void *context, const char *line)
{
	(void)context;
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", line);
}

static struct shipper *open_with(const char *command, uint64_t timeout_ms)
{
	const struct shipper_options options = {
		.outbox = outbox, .command = command, .timeout_ms = timeout_ms, .say = on_say};
	struct shipper *s = NULL;
	char why[256];
	int err;

	/* A command that a killed shipper was about to start has the lock for a moment. */
	for (int i = 0; (err = shipper_open(&options, &s, why, sizeof(why))) == -EBUSY && i < 1000;
	     i++)
		usleep(10000);
	if (err)
		fail_msg("%s", why);
	return s;
}

static void assert_target(const char *wanted)
{
	char path[128], text[4096] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/target", folder);
	f = fopen(path, "re");
	if (f) {
		text[fread(text, 1, sizeof(text) - 1, f)] = 0;
		fclose(f);
	}
	assert_string_equal(text, wanted);
}

static void test_order(void **state)
{
	struct shipper *s;

	(void)state;
	file_make(SEGMENT_INCIDENTS, 3);
	file_make(SEGMENT_EVIDENCE, 2);
	file_make(SEGMENT_INCIDENTS, 1);
	file_make(SEGMENT_FIGURES, 4);
	s = open_with(command_make("cat \"$1\" >> $target"), 10000);
	for (int i = 0; i < 4; i++)
		assert_int_equal(shipper_turn(s, 1000), 1);
	assert_int_equal(shipper_turn(s, 1000), 0);
	assert_int_equal(shipper_waiting(s), 0);
	assert_target("1\n2\n3\n4\n");
	shipper_close(s);
}

/* A target that is down: later, and later still; figures do not wait for incidents. */
static void test_down(void **state)
{
	struct shipper *s;
	uint64_t now = 1000;

	(void)state;
	file_make(SEGMENT_INCIDENTS, 1);
	file_make(SEGMENT_FIGURES, 2);
	s = open_with(command_make("echo secret >&2; case $1 in *figures*) cat $1 >> $target;; "
				   "*) [ -e $target.up ] && cat $1 >> $target;; esac"),
		      10000);
	for (; now < 61000; now += 100) {
		shipper_turn(s, now);
	}
	assert_target("2\n");
	assert_int_equal(shipper_waiting(s), 1);
	assert_non_null(strstr(said, "not delivered (exit code 1)"));
	assert_null(strstr(said, "secret"));
	assert_int_equal(run("touch %s/target.up", folder), 0);
	for (; now < 200000 && shipper_waiting(s); now += 100)
		shipper_turn(s, now);
	assert_target("2\n1\n");
	assert_non_null(strstr(said, "delivered again"));
	shipper_close(s);
}

/* One segment that the target never takes does not hold up the others; evidence does. */
static void test_poison(void **state)
{
	struct shipper *s;
	uint64_t now = 1000;

	(void)state;
	file_make(SEGMENT_INCIDENTS, 1);
	file_make(SEGMENT_INCIDENTS, 2);
	s = open_with(command_make("grep -q 1 $1 && exit 65; cat $1 >> $target"), 10000);
	for (; now < 3600000 && shipper_waiting(s) != 1; now += 1000)
		shipper_turn(s, now);
	assert_target("2\n");
	shipper_close(s);
}

/* An engine that was down for long: of what failed, the daemon has removed more than the shipper
 * keeps in mind. A segment that the engine never takes still holds up no other. */
static void test_down_for_long(void **state)
{
	char name[SEGMENT_NAME_MAX];
	struct shipper *s;
	uint64_t now = 1000;

	(void)state;
	s = open_with(command_make("[ $(cat $1) = 1000 ] && cat $1 >> $target"), 10000);
	for (uint64_t i = 1; i <= 300; i++) {
		file_make(SEGMENT_INCIDENTS, i);
		assert_int_equal(shipper_turn(s, now += 1000000), 0);
		segment_name(SEGMENT_INCIDENTS, ONE, TWO, i, name);
		assert_int_equal(unlink(name), 0);
	}
	file_make(SEGMENT_INCIDENTS, 500);
	file_make(SEGMENT_INCIDENTS, 1000);
	for (int i = 0; i < 60000; i++)
		shipper_turn(s, now += 1000);
	assert_target("1000\n");
	shipper_close(s);
}

/* A command that hangs is killed with all that it started. */
static void test_hangs(void **state)
{
	struct shipper *s;

	(void)state;
	file_make(SEGMENT_INCIDENTS, 1);
	s = open_with(command_make("sleep 1000 & echo $! > $target; sleep 1000"), 300);
	assert_int_equal(shipper_turn(s, 1000), 0);
	assert_non_null(strstr(said, "time limit"));
	usleep(100000);
	assert_int_not_equal(run("kill -0 $(cat %s/target) 2>/dev/null && "
				 "! grep -q '^State:.Z' /proc/$(cat %s/target)/status",
				 folder, folder),
			     0);
	shipper_close(s);
	/* What a successful one leaves behind, too. */
	s = open_with(command_make("sleep 1000 & echo $! > $target; exit 0"), 10000);
	assert_int_equal(shipper_turn(s, 1000), 1);
	usleep(100000);
	assert_int_not_equal(run("kill -0 $(cat %s/target) 2>/dev/null && "
				 "! grep -q '^State:.Z' /proc/$(cat %s/target)/status",
				 folder, folder),
			     0);
	shipper_close(s);
}

static void test_words(void **state)
{
	char text[] = "/bin/x -a  'b c' \"d\" e'f g'", open_quote[] = "/bin/x 'a", relative[] = "x";
	char *words[SHIPPER_WORDS_MAX + 1], why[128];

	(void)state;
	assert_int_equal(shipper_words(text, words, why, sizeof(why)), 5);
	assert_string_equal(words[2], "b c");
	assert_string_equal(words[3], "d");
	assert_string_equal(words[4], "ef g");
	assert_null(words[5]);
	assert_int_equal(shipper_words(open_quote, words, why, sizeof(why)), -EINVAL);
	assert_int_equal(shipper_words(relative, words, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "absolute path"));
}

/* Nothing reads the words but the command: no shell. A second shipper is refused. */
static void test_alone(void **state)
{
	const struct shipper_options other = {
		.outbox = outbox, .command = "/bin/true", .timeout_ms = 1000, .say = on_say};
	struct shipper *s, *second = NULL;
	char command[256], why[256];

	(void)state;
	file_make(SEGMENT_INCIDENTS, 1);
	snprintf(command, sizeof(command), "%s ; touch %s/owned",
		 command_make("echo \"$#\" >> $target"), folder);
	s = open_with(command, 10000);
	assert_int_equal(shipper_turn(s, 1000), 1);
	assert_target("4\n");
	assert_int_not_equal(run("test -e %s/owned", folder), 0);
	assert_int_equal(shipper_open(&other, &second, why, sizeof(why)), -EBUSY);
	shipper_close(s);
}

/* Killed at any time: each file is at the target, perhaps twice. */
static void test_kill(void **state)
{
	const char *full = getenv("VCPUSCOPE_TEST_FULL");
	const int kills = full && !strcmp(full, "1") ? 200 : 15;
	const char *command = command_make("cat $1 >> $target");
	struct shipper *s;
	uint64_t now = 1000, seq = 1;

	(void)state;
	srand(5);
	for (int k = 0; k < kills; k++) {
		pid_t pid;

		for (int i = 0; i < 3; i++)
			file_make(SEGMENT_INCIDENTS, seq++);
		pid = fork();
		if (!pid) {
			s = open_with(command, 10000);
			for (;;)
				shipper_turn(s, now);
		}
		usleep((useconds_t)(rand() % 20000));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	s = open_with(command, 10000);
	while (shipper_turn(s, now))
		;
	assert_int_equal(shipper_waiting(s), 0);
	shipper_close(s);
	assert_int_equal(run("test $(sort -n %s/target | uniq | wc -l) = %d", folder, (int)seq - 1),
			 0);
	assert_int_equal(run("echo \"%d kills: $(wc -l < %s/target) lines, $(sort -n %s/target | "
			     "uniq | wc -l) distinct of %d\"",
			     kills, folder, folder, (int)seq - 1),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_down, setup, teardown),
		cmocka_unit_test_setup_teardown(test_poison, setup, teardown),
		cmocka_unit_test_setup_teardown(test_down_for_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hangs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kill, setup, teardown),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
