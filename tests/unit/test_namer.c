/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests the processes that name stacks. If a file kills, blocks or fills the namer, the namer is
 * replaced, this file is not read again, and the stacks of other processes are named as before. The
 * asking process never waits. The namer has no rights, and receives descriptors of the mapped
 * files, whatever is at their paths.
 *
 * The body of these tests executes the first word of the mapped file.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/isolation/bad_files.h"
#include "bpf/isolation/namer.h"
#include "bpf/isolation/opener.h"

enum { PAGE = 4096, OWNER = 4711 };

#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZER = 1 };
#else
enum { SANITIZER = 0 };
#endif

/* ---- in the namer ---- */

static void *body_begin(void)
{
	return (void *)1;
}

static void memory_use(size_t bytes)
{
	char *memory = malloc(bytes);

	if (!memory)
		abort();
	memset(memory, 1, bytes); /* and keep it */
}

static const char *file_obey(int fd)
{
	static char word[16];
	ssize_t n = pread(fd, word, sizeof(word) - 1, 0);

	word[n < 0 ? 0 : n] = 0;
	close(fd);
	if (!strcmp(word, "crash"))
		raise(SIGSEGV);
	if (!strcmp(word, "open"))
		(void)!open("/etc/passwd", O_RDONLY);
	if (!strcmp(word, "fill"))
		memory_use(170 << 20);
	if (!strcmp(word, "swallow"))
		memory_use(1 << 30);
	while (!strcmp(word, "hang"))
		;
	while (!strcmp(word, "sleep"))
		poll(NULL, 0, 1000);
	return word;
}

static size_t body_name(void *state, struct naming *n, const struct naming_stack *stack,
			struct message_stack_frame *frames, size_t max)
{
	const struct naming_module *modules;
	const char *word = "unmapped";
	struct file_id id;
	uint32_t list = 0;
	size_t count;

	(void)state, (void)max;
	modules = naming_modules(n, &list, &count);
	memset(frames, 0, sizeof(*frames));
	for (size_t i = 0; i < count && stack->n_addresses; i++) {
		int fd;

		if (stack->addresses[0] < modules[i].begin || stack->addresses[0] >= modules[i].end)
			continue;
		fd = naming_open(n, i, &id);
		snprintf(frames->module, sizeof(frames->module), "%s", modules[i].name);
		word = fd < 0 ? "refused" : file_obey(fd);
	}
	snprintf(frames->symbol, sizeof(frames->symbol), "%s", word);
	return 1;
}

static const struct naming_body body = {
	.begin = body_begin, .name = body_name, .memory_bytes = 160 << 20};

/* ---- processes that map a file ---- */

struct victim {
	pid_t pid;
	uint64_t address;
};

struct rig {
	struct namer *namer;
	char folder[32];
	struct victim victims[8];
	size_t n_victims, n_files;
	/* the answer */
	bool answered;
	enum naming_outcome outcome;
	size_t n;
	struct message_stack_frame frame;
};

static int rig_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	if (geteuid()) {
		print_message("SKIP: opening what others have mapped needs root\n");
		free(r);
		exit(77);
	}
	strcpy(r->folder, "/tmp/test-namer-XXXXXX");
	assert_non_null(mkdtemp(r->folder));
	r->namer = namer_new();
	assert_non_null(r->namer);
	*state = r;
	return 0;
}

static int rig_teardown(void **state)
{
	struct rig *r = *state;
	char command[64];

	for (size_t i = 0; i < r->n_victims; i++) {
		kill(r->victims[i].pid, SIGKILL);
		waitpid(r->victims[i].pid, NULL, 0);
	}
	namer_free(r->namer);
	snprintf(command, sizeof(command), "rm -r %s", r->folder);
	assert_int_equal(system(command), 0);
	free(r);
	return 0;
}

static void file_path(const struct rig *r, size_t number, char path[64])
{
	snprintf(path, 64, "%s/file-%zu", r->folder, number);
}

static void file_write(const char *path, const char *word)
{
	char content[2 * PAGE] = "";
	int fd = open(path, O_RDWR | O_CREAT, 0644);

	assert_true(fd >= 0);
	memcpy(content, word, strlen(word));
	assert_int_equal(pwrite(fd, content, sizeof(content), 0), sizeof(content));
	close(fd);
}

static const struct victim *victim_start(struct rig *r, const char *path)
{
	struct victim *v = &r->victims[r->n_victims++];
	int ready[2], fd = open(path, O_RDONLY);
	void *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	assert_true(memory != MAP_FAILED);
	assert_int_equal(pipe(ready), 0);
	v->address = (uint64_t)memory + PAGE + 5;
	v->pid = fork();
	if (!v->pid) {
		close(ready[1]);
		pause();
		_exit(0);
	}
	close(ready[0]);
	close(ready[1]);
	close(fd);
	munmap(memory, 2 * PAGE);
	return v;
}

/* A process that has mapped a file of its own, which says this word. */
static const struct victim *victim_of(struct rig *r, const char *word)
{
	char path[64];

	file_path(r, r->n_files++, path);
	file_write(path, word);
	return victim_start(r, path);
}

/* ---- questions ---- */

static void on_answer(void *context, uint64_t tag, enum naming_outcome outcome,
		      const struct message_stack_frame *frames, size_t n)
{
	struct rig *r = context;

	assert_int_equal(tag, 3);
	r->answered = true;
	r->outcome = outcome;
	r->n = n;
	if (n)
		r->frame = frames[0];
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void question(struct rig *r, const struct victim *v)
{
	const struct namer_question q = {.pid = v->pid, .addresses = &v->address, .n_addresses = 1};

	r->answered = false;
	r->frame.symbol[0] = 0;
	if (namer_ask(r->namer, &q, on_answer, r, 3))
		on_answer(r, 3, NAMING_WITHOUT, NULL, 0);
}

static void answer_await(struct rig *r)
{
	const uint64_t end_ms = now_ms() + 60000;

	while (!r->answered && now_ms() < end_ms) {
		struct pollfd fd = {.fd = namer_descriptor(r->namer), .events = POLLIN};
		const uint64_t begin_ms = now_ms();

		poll(&fd, 1, 20);
		namer_poll(r->namer);
		assert_true(now_ms() - begin_ms < 2000); /* 120 ms, and the machine's load */
	}
	assert_true(r->answered);
}

static const char *ask(struct rig *r, const struct victim *v)
{
	question(r, v);
	answer_await(r);
	return r->frame.symbol;
}

/* Until there is a namer again. */
static const char *ask_until_done(struct rig *r, const struct victim *v)
{
	for (int i = 0; i < 200; i++) {
		ask(r, v);
		if (r->outcome == NAMING_DONE)
			break;
		usleep(50000);
	}
	assert_int_equal(r->outcome, NAMING_DONE);
	return r->frame.symbol;
}

static pid_t child_of(pid_t pid)
{
	char path[64];
	int child = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%d", &child) != 1)
		child = 0;
	if (f)
		fclose(f);
	return child;
}

/* ---- tests ---- */

static void test_a_bad_file_is_not_read_again(void **state)
{
	static const char *const words[] = {"crash", "hang", "sleep", "open", "swallow"};
	const size_t n = SANITIZER ? 2 : sizeof(words) / sizeof(words[0]);
	struct rig *r = *state;
	const struct victim *good = victim_of(r, "good");

	assert_string_equal(ask(r, good), "good");
	for (size_t i = 0; i < n; i++) {
		const struct victim *bad = victim_of(r, words[i]);
		pid_t before;

		/* What is known without the file is told: its name, and where in it. */
		ask(r, bad);
		assert_int_equal(r->outcome, NAMING_WITHOUT);
		assert_int_equal(r->n, 1);
		assert_memory_equal(r->frame.module, "file-", 5);
		assert_int_equal(r->frame.offset, PAGE + 5);
		/* The others are named again soon. */
		assert_string_equal(ask_until_done(r, good), "good");
		/* Nor does it kill again. */
		before = child_of(namer_opener(r->namer));
		assert_string_equal(ask_until_done(r, bad), "refused");
		assert_int_equal(child_of(namer_opener(r->namer)), before);
		assert_string_equal(ask(r, good), "good");
	}
}

static void test_a_file_that_changed_is_another(void **state)
{
	struct rig *r = *state;
	const struct victim *v = victim_of(r, "crash");
	char path[64];

	ask(r, v);
	assert_int_equal(r->outcome, NAMING_WITHOUT);
	assert_string_equal(ask_until_done(r, v), "refused");
	file_path(r, 0, path);
	file_write(path, "mended");
	assert_string_equal(ask_until_done(r, v), "mended");
}

static void test_after_three_bad_files_an_owner_is_known(void **state)
{
	struct rig *r = *state;
	const struct victim *good;
	char path[64];

	for (int i = 0; i < 4; i++) {
		const struct victim *v = victim_of(r, "crash");

		file_path(r, r->n_files - 1, path);
		assert_int_equal(chown(path, OWNER, OWNER), 0);
		if (i < 3) {
			ask(r, v);
			assert_int_equal(r->outcome, NAMING_WITHOUT);
			good = victim_of(r, "good");
			assert_string_equal(ask_until_done(r, good), "good");
		} else {
			assert_string_equal(ask(r, v), "refused");
		}
	}
}

static void test_a_full_namer_is_replaced_at_once(void **state)
{
	struct rig *r = *state;
	const struct victim *v;
	pid_t before;

	if (SANITIZER) {
		print_message("the sanitizers do not count memory this way\n");
		return;
	}
	v = victim_of(r, "fill");
	for (int i = 0; i < 3; i++) {
		assert_string_equal(ask(r, v), "fill");
		assert_int_equal(r->outcome, NAMING_DONE);
		if (i)
			assert_int_not_equal(child_of(namer_opener(r->namer)), before);
		before = child_of(namer_opener(r->namer));
	}
}

/* Its path leads to a FIFO or to somebody else's file by now. */
static void test_the_mapped_file_is_read_whatever_lies_at_its_path(void **state)
{
	struct rig *r = *state;
	const struct victim *first = victim_of(r, "first"), *second = victim_of(r, "second");
	char path[64];

	file_path(r, 0, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0644), 0);
	file_path(r, 1, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_string_equal(ask(r, first), "first");
	assert_string_equal(ask(r, second), "second");
}

static void test_only_regular_files_of_a_sane_size_are_opened(void **state)
{
	struct rig *r = *state;
	const struct victim *huge = victim_of(r, "huge"), *device;
	char path[64];

	device = victim_start(r, "/dev/zero");
	assert_string_equal(ask(r, device), "refused");
	file_path(r, 0, path);
	assert_int_equal(truncate(path, 3ll << 30), 0);
	assert_string_equal(ask(r, huge), "refused");
}

static void test_without_its_opener_the_asker_goes_on(void **state)
{
	struct rig *r = *state;
	const struct victim *v = victim_of(r, "good");
	uint64_t begin_ms;

	assert_string_equal(ask(r, v), "good");
	kill(namer_opener(r->namer), SIGKILL);
	ask_until_done(r, v);
	/* One that hangs is noticed. */
	kill(namer_opener(r->namer), SIGSTOP);
	begin_ms = now_ms();
	ask(r, v);
	assert_int_equal(r->outcome, NAMING_WITHOUT);
	assert_int_equal(r->n, 0);
	assert_true(now_ms() - begin_ms >= 12000);
	assert_string_equal(ask_until_done(r, v), "good");
}

static void test_helpers_have_no_rights_and_end_with_us(void **state)
{
	struct rig *r = *state;
	const struct victim *v = victim_of(r, "good");
	pid_t opener, namer;
	char path[64], line[128];
	bool user = false, capabilities = false, seccomp = false;
	FILE *f;

	ask(r, v);
	opener = namer_opener(r->namer);
	namer = child_of(opener);
	snprintf(path, sizeof(path), "/proc/%d/status", namer);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		user |= !strcmp(line, "Uid:\t65534\t65534\t65534\t65534\n");
		capabilities |= !strcmp(line, "CapPrm:\t0000000000000000\n");
		seccomp |= !strcmp(line, "Seccomp:\t2\n");
	}
	fclose(f);
	assert_true(user && capabilities && (seccomp || SANITIZER));
	/* the opener dies: so does its namer */
	kill(opener, SIGKILL);
	for (int i = 0; i < 500 && !kill(namer, 0); i++)
		usleep(10000);
	assert_int_equal(kill(namer, 0), -1);
}

static void test_what_it_costs_is_told(void **state)
{
	struct rig *r = *state;
	const struct victim *good = victim_of(r, "good"), *bad = victim_of(r, "hang");
	uint64_t before_ns;

	assert_string_equal(ask(r, good), "good");
	before_ns = namer_cpu_ns(r->namer);
	assert_in_range(before_ns, 1, 2000000000);
	ask(r, bad); /* a second, of a namer that is gone by then */
	assert_string_equal(ask_until_done(r, good), "good");
	assert_in_range(namer_cpu_ns(r->namer) - before_ns, 900000000, 10000000000);
}

static void test_who_is_forgotten_gets_no_answer(void **state)
{
	struct rig *r = *state;
	const struct victim *v = victim_of(r, "good");

	question(r, v);
	namer_forget(r->namer, r, 3);
	for (int i = 0; i < 20; i++) {
		namer_poll(r->namer);
		usleep(10000);
	}
	assert_false(r->answered);
	assert_string_equal(ask(r, v), "good");
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RIG(test_a_bad_file_is_not_read_again),
		RIG(test_a_file_that_changed_is_another),
		RIG(test_after_three_bad_files_an_owner_is_known),
		RIG(test_a_full_namer_is_replaced_at_once),
		RIG(test_the_mapped_file_is_read_whatever_lies_at_its_path),
		RIG(test_only_regular_files_of_a_sane_size_are_opened),
		RIG(test_without_its_opener_the_asker_goes_on),
		RIG(test_helpers_have_no_rights_and_end_with_us),
		RIG(test_what_it_costs_is_told),
		RIG(test_who_is_forgotten_gets_no_answer),
	};

	if (opener_is_meant(argc, argv))
		_exit(opener_main(&body));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
