/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests unwinding from copied registers and stack. A child process blocks in a system call in a
 * known chain of functions. Its real registers and stack must give this chain up to main(), also
 * through libc, which has no frame pointers. The end of the copy, the death of the process and
 * invalid registers do no harm. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/record/unwind.h"
#include "bpf/isolation/opener.h"

#define PLAIN __attribute__((noinline, noclone, optimize("omit-frame-pointer")))

/* Something after each call, so that none becomes a jump. */
static volatile int sink;

PLAIN int stall_inner(int depth);
PLAIN int stall_middle(int depth);
PLAIN int stall_outer(int depth);

static int compare_blocks(const void *a, const void *b)
{
	(void)b;
	sink = stall_inner(*(const int *)a);
	return 0;
}

int stall_inner(int depth)
{
	sink = poll(NULL, 0, -1);
	return sink + depth;
}

int stall_middle(int depth)
{
	int values[2] = {depth, depth + 1};

	qsort(values, 2, sizeof(values[0]), compare_blocks); /* through libc */
	return values[0] + sink;
}

int stall_outer(int depth)
{
	volatile char room[1000];

	room[depth] = 1;
	sink = stall_middle(depth + room[depth]);
	return sink + 1;
}

struct victim {
	pid_t pid;
	struct capture_user_stack stack;
	uint8_t copied[16384];
};

static void victim_start(struct victim *v)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	v->pid = fork();
	if (!v->pid) {
		close(ready[0]);
		close(ready[1]);
		stall_outer(3);
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0); /* the child runs */
	close(ready[0]);
	usleep(100000);
}

/* As a probe would: registers in DWARF's order and the stack from sp upwards. 77 if not allowed. */
static int victim_copy(struct victim *v)
{
	struct user_regs_struct r;
	struct iovec local = {v->copied, sizeof(v->copied)};
	struct iovec remote = {NULL, sizeof(v->copied)};
	int status;
	ssize_t n;

	if (ptrace(PTRACE_SEIZE, v->pid, 0, 0) || ptrace(PTRACE_INTERRUPT, v->pid, 0, 0))
		return 77;
	assert_int_equal(waitpid(v->pid, &status, 0), v->pid);
	assert_int_equal(ptrace(PTRACE_GETREGS, v->pid, 0, &r), 0);
	remote.iov_base = (void *)r.rsp;
	n = process_vm_readv(v->pid, &local, 1, &remote, 1, 0);
	if (n <= 0) { /* shorter than 16 KiB */
		remote.iov_len = local.iov_len = 4096 - (r.rsp & 4095);
		n = process_vm_readv(v->pid, &local, 1, &remote, 1, 0);
	}
	assert_true(n > 0);
	v->stack = (struct capture_user_stack){
		.regs = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10,
			 r.r11, r.r12, r.r13, r.r14, r.r15, r.rip},
		.copied_bytes = (size_t)n,
		.copied = v->copied,
	};
	ptrace(PTRACE_DETACH, v->pid, 0, 0);
	return 0;
}

static void victim_end(struct victim *v)
{
	if (!v->pid)
		return;
	kill(v->pid, SIGKILL);
	waitpid(v->pid, NULL, 0);
	v->pid = 0;
}

struct rig {
	struct namer *namer;
	struct victim victim;
	/* the answer */
	bool answered;
	enum naming_outcome outcome;
	long n;
	struct message_stack_frame frames[VS_STACK_FRAMES_MAX];
};

static void on_answer(void *context, uint64_t tag, enum naming_outcome outcome,
		      const struct message_stack_frame *frames, size_t n)
{
	struct rig *r = context;

	assert_int_equal(tag, 7);
	r->answered = true;
	r->outcome = outcome;
	r->n = (long)n;
	if (n)
		memcpy(r->frames, frames, n * sizeof(*frames));
}

/* How many frames, in r->frames. */
static long unwind(struct rig *r, const struct capture_user_stack *stack)
{
	const struct namer_question question = unwind_question(r->victim.pid, stack);

	r->answered = false;
	assert_int_equal(namer_ask(r->namer, &question, on_answer, r, 7), 0);
	for (int i = 0; i < 20000 && !r->answered; i++) {
		struct pollfd fd = {.fd = namer_descriptor(r->namer), .events = POLLIN};

		poll(&fd, 1, 20);
		namer_poll(r->namer);
	}
	assert_true(r->answered);
	return r->n;
}

static int rig_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	*state = r;
	r->namer = namer_new();
	victim_start(&r->victim);
	if (!victim_copy(&r->victim))
		return 0;
	print_message("SKIP: ptrace of an own child is not allowed here\n");
	victim_end(&r->victim);
	exit(77);
}

static int rig_teardown(void **state)
{
	struct rig *r = *state;

	victim_end(&r->victim);
	namer_free(r->namer);
	free(r);
	return 0;
}

static size_t find(const struct rig *r, long n, const char *symbol, size_t from)
{
	for (size_t i = from; (long)i < n; i++) {
		if (!strcmp(r->frames[i].symbol, symbol))
			return i;
	}
	for (long i = 0; i < n; i++)
		print_message("%2ld %s+%#lx (%s)\n", i, r->frames[i].symbol, r->frames[i].offset,
			      r->frames[i].module);
	fail_msg("no frame %s beyond %zu", symbol, from);
	return 0;
}

static void test_chain_is_named(void **state)
{
	struct rig *r = *state;
	long n = unwind(r, &r->victim.stack);
	size_t at = 0;

	assert_true(n > 5);
	at = find(r, n, "stall_inner", at);
	at = find(r, n, "compare_blocks", at);
	at = find(r, n, "stall_middle", at);
	at = find(r, n, "stall_outer", at);
	at = find(r, n, "main", at);
	assert_string_equal(r->frames[at].module, "test_unwind");
	assert_false(r->frames[at].kernel);
	/* the leaf is libc's poll, named though libc is stripped */
	assert_non_null(strstr(r->frames[0].module, "libc"));
	assert_true(r->frames[0].offset < 0x1000);
	for (long i = 0; i < n; i++)
		assert_null(strchr(r->frames[i].symbol, '@')); /* no symbol versions */
	/* the second time nothing is opened, and the answer is the same */
	assert_int_equal(unwind(r, &r->victim.stack), n);
	assert_int_equal(r->outcome, NAMING_DONE);
}

static void test_limits_are_kept(void **state)
{
	struct rig *r = *state;
	long n;

	/* a copy that ends early ends the stack early, with what was found */
	for (size_t bytes = 0; bytes < 600; bytes += 8) {
		r->victim.stack.copied_bytes = bytes;
		n = unwind(r, &r->victim.stack);
		assert_in_range(n, 1, 30);
		assert_non_null(strstr(r->frames[0].module, "libc"));
	}
}

static void test_nonsense_does_no_harm(void **state)
{
	struct rig *r = *state;

	srand(3);
	for (int i = 0; i < 300; i++) {
		struct capture_user_stack stack = r->victim.stack;
		long n;

		if (i % 3 == 0)
			stack.regs[16] = (uint64_t)rand() << 20;
		if (i % 3 == 1)
			stack.regs[7] = (uint64_t)rand() << (i % 40);
		for (int j = 0; j < 50; j++)
			r->victim.copied[(size_t)rand() % stack.copied_bytes] = (uint8_t)rand();
		n = unwind(r, &stack);
		assert_in_range(n, 0, VS_STACK_FRAMES_MAX);
	}
}

static void test_code_outside_files_ends_the_walk(void **state)
{
	struct rig *r = *state;

	r->victim.stack.regs[16] = 0x1234000;
	assert_int_equal(unwind(r, &r->victim.stack), 1);
	assert_string_equal(r->frames[0].module, "[anon]");
	assert_string_equal(r->frames[0].symbol, "");
	assert_int_equal(r->frames[0].offset, 0);
}

static size_t descriptors_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void on_prepared(void *context, uint64_t tag, enum naming_outcome outcome,
			const struct message_stack_frame *frames, size_t n)
{
	(void)context, (void)frames;
	assert_int_equal(tag, 8);
	assert_int_equal(outcome, NAMING_DONE);
	assert_int_equal(n, 0);
}

/* A QEMU maps 200 files, and a host may have many. */
static void test_no_file_stays_open(void **state)
{
	struct rig *r = *state;
	const size_t before = descriptors_count();
	const struct namer_question prepare = {.pid = r->victim.pid};

	assert_int_equal(namer_ask(r->namer, &prepare, on_prepared, r, 8), 0);
	assert_true(unwind(r, &r->victim.stack) > 0);
	assert_int_equal(descriptors_count(), before + 1); /* the socket */
}

static void test_dead_process_is_said(void **state)
{
	struct rig *r = *state;
	pid_t pid = r->victim.pid;

	assert_true(unwind(r, &r->victim.stack) > 0);
	kill(pid, SIGKILL);
	for (int i = 0; i < 100; i++) {
		siginfo_t info;

		if (!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT))
			break;
	}
	/* dead but not reaped, then reaped */
	assert_int_equal(unwind(r, &r->victim.stack), 0);
	assert_int_equal(r->outcome, NAMING_GONE);
	victim_end(&r->victim);
	r->victim.pid = pid;
	assert_int_equal(unwind(r, &r->victim.stack), 0);
	assert_int_equal(r->outcome, NAMING_GONE);
	r->victim.pid = 0;
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

int main(int argc, char **argv)
{
	if (opener_is_meant(argc, argv))
		_exit(opener_main(&unwind_body));

	const struct CMUnitTest tests[] = {
		RIG(test_chain_is_named),        RIG(test_limits_are_kept),
		RIG(test_nonsense_does_no_harm), RIG(test_code_outside_files_ends_the_walk),
		RIG(test_no_file_stays_open),    RIG(test_dead_process_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
