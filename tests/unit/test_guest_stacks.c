/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests stacks of tasks, sampled and where they go to sleep: those of this process, on this
 * kernel. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/backend/capture_open.h"
#include "bpf/capture/capture.h"
#include "bpf/symbols/kernel_symbols.h"
#include "guest-agent/symbols.h"
#include "guest-agent/symbols_body.h"
#include "bpf/isolation/opener.h"

/* Kernel stacks of all that runs on this machine meanwhile are told, too. */
enum { IDS_MAX = 1024, REPORTED_MAX = 16384, HZ = 499 };

struct seen {
	size_t samples, sleeps;
	uint64_t period_ns;
	size_t n_ids;
	struct {
		pid_t tgid;
		uint32_t id;
	} ids[IDS_MAX]; /* that events of ours named */
	size_t n_reported;
	struct capture_guest_stack reported[REPORTED_MAX];
	uint64_t frames[REPORTED_MAX][64];
};

static void id_note(struct seen *s, pid_t tgid, uint32_t id)
{
	for (size_t i = 0; i < s->n_ids; i++) {
		if (s->ids[i].tgid == tgid && s->ids[i].id == id)
			return;
	}
	if (id && s->n_ids < IDS_MAX) {
		s->ids[s->n_ids].tgid = tgid;
		s->ids[s->n_ids++].id = id;
	}
}

static void on_events(void *context, uint16_t cpu, const struct vs_event *events, size_t n)
{
	struct seen *s = context;

	(void)cpu;
	for (size_t i = 0; i < n; i++) {
		const struct vs_event *e = &events[i];

		if (e->type != VS_EVENT_TASK_STACK || e->pid != gettid())
			continue;
		assert_int_equal(e->pid2, getpid());
		s->period_ns = e->arg1 >> 8;
		s->samples += (e->arg1 & 0xff) == VS_STACK_SAMPLE;
		s->sleeps += (e->arg1 & 0xff) == VS_STACK_WAITER;
		id_note(s, 0, (uint32_t)e->arg0);
		id_note(s, getpid(), (uint32_t)(e->arg0 >> 32));
	}
}

static void on_stack(void *context, const struct capture_guest_stack *stack)
{
	struct seen *s = context;

	assert_true(s->n_reported < REPORTED_MAX);
	if (stack->tgid && stack->tgid != getpid())
		return;
	memcpy(s->frames[s->n_reported], stack->frames, stack->n * sizeof(uint64_t));
	s->reported[s->n_reported] = *stack;
	s->reported[s->n_reported].frames = s->frames[s->n_reported];
	s->n_reported++;
}

/* Not static: the symbol table is to hold it whatever the compiler does. */
uint64_t burn_in_here(int64_t ns);
__attribute__((noinline)) uint64_t burn_in_here(int64_t ns)
{
	struct timespec t;
	uint64_t sum = 0;
	int64_t end, now = 0;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	end = t.tv_sec * 1000000000ll + t.tv_nsec + ns;
	while (now < end) {
		for (int i = 0; i < 20000; i++)
			sum += sum * 31 + (uint64_t)i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
		now = t.tv_sec * 1000000000ll + t.tv_nsec;
	}
	return sum;
}

static const struct capture_guest_stack *stack_find(const struct seen *s, pid_t tgid, uint32_t id)
{
	for (size_t i = 0; i < s->n_reported; i++) {
		if (s->reported[i].tgid == tgid && s->reported[i].id == id)
			return &s->reported[i];
	}
	return NULL;
}

static struct capture *opened(void)
{
	const struct capture_options options = {.kind = CAPTURE_GUEST, .sample_hz = HZ};
	struct capture *c;
	char why[512];

	if (capture_open(&options, &c, why, sizeof(why))) {
		print_message("skipped: %s\n", why);
		skip();
	}
	if (capture_guest_stacks(c, on_stack, NULL, 0) == -ENOTSUP) {
		print_message("skipped: %s\n", capture_notice(c));
		capture_close(c);
		skip();
	}
	return c;
}

static void take(struct capture *c, struct seen *s)
{
	const struct capture_sink sink = {.events = on_events, .context = s};

	assert_true(capture_drain(c, &sink) >= 0);
	while (capture_guest_stacks(c, on_stack, s, 8) > 0) {
	}
}

struct wanted {
	struct symbols *symbols;
	pid_t tgid;
	uint32_t id; /* of the stack asked for */
	const char *name;
	bool answered, shown;
	struct message_stack last;
};

static void on_named(void *context, const struct message_stack *m)
{
	struct wanted *w = context;

	assert_int_equal(m->id, w->id);
	assert_int_equal(m->pid, w->tgid);
	w->answered = true;
	w->last = *m;
	for (size_t k = 0; k < m->n_frames; k++) {
		assert_int_equal(m->frames[k].kernel, w->tgid == 0);
		w->shown |= !strcmp(m->frames[k].symbol, w->name);
	}
}

static void name(struct wanted *w, const struct capture_guest_stack *stack)
{
	w->answered = false;
	w->id = stack->id;
	assert_true(symbols_room(w->symbols));
	symbols_name(w->symbols, stack);
	for (int i = 0; i < 6000 && !w->answered; i++) {
		symbols_poll(w->symbols);
		if (!w->answered)
			usleep(5000);
	}
	assert_true(w->answered);
}

static struct wanted *wanted_new(void)
{
	struct wanted *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->symbols = symbols_new(on_named, w);
	assert_non_null(w->symbols);
	return w;
}

static void wanted_free(struct wanted *w)
{
	symbols_free(w->symbols);
	free(w);
}

/* Does a name of one of the stacks say where we were? */
static bool names_show(struct wanted *w, const struct seen *s, pid_t tgid, const char *symbol)
{
	w->tgid = tgid;
	w->name = symbol;
	for (size_t i = 0; i < s->n_reported && !w->shown; i++) {
		if (s->reported[i].tgid == tgid)
			name(w, &s->reported[i]);
	}
	return w->shown;
}

static int64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void samples_show_where_a_task_computes(void **unused)
{
	const int64_t begin_ns = monotonic_ns();
	struct seen *s = calloc(1, sizeof(*s));
	struct capture *c = opened();
	struct wanted *wanted = wanted_new();

	(void)unused;
	take(c, s);
	/* As often as the agent: other programs' stacks need room, too. */
	for (int i = 0; i < 30; i++) {
		burn_in_here(10000000);
		usleep(1000);
		take(c, s);
	}
	/* 150 are due; the timer of a machine that is itself a VM goes on while that has no CPU. */
	assert_in_range(s->samples, 30, (monotonic_ns() - begin_ns) * HZ / 1000000000 + 1);
	assert_int_equal(s->period_ns, 1000000000 / HZ);
	assert_true(s->sleeps > 0);
	assert_true(names_show(wanted, s, getpid(), "burn_in_here"));
	/* Whatever an event names is told, once. */
	for (size_t i = 0; i < s->n_ids; i++)
		assert_non_null(stack_find(s, s->ids[i].tgid, s->ids[i].id));
	for (size_t i = 0; i < s->n_reported; i++)
		assert_ptr_equal(stack_find(s, s->reported[i].tgid, s->reported[i].id),
				 &s->reported[i]);
	wanted_free(wanted);
	capture_close(c);
	free(s);
}

static void sleeps_show_where_a_task_waits(void **unused)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct capture *c = opened();
	struct wanted *wanted = wanted_new();

	(void)unused;
	for (int i = 0; i < 5; i++)
		usleep(2000);
	take(c, s);
	assert_in_range(s->sleeps, 5, 1000);
	if (symbols_kernel(wanted->symbols))
		assert_true(names_show(wanted, s, 0, "schedule"));
	else
		print_message("not checked: the kernel hides its addresses\n");
	wanted_free(wanted);
	capture_close(c);
	free(s);
}

static void a_reader_that_joins_late_is_told_again(void **unused)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct capture *c = opened();

	(void)unused;
	usleep(2000);
	take(c, s);
	assert_true(s->n_reported > 0);
	for (int i = 0; i < 3; i++)
		usleep(2000);
	s->n_reported = 0;
	capture_guest_stacks_forget(c);
	take(c, s);
	/* What it named before is told again only if it is named again. */
	s->n_ids = 0;
	for (int i = 0; i < 3; i++)
		usleep(2000);
	take(c, s);
	for (size_t i = 0; i < s->n_ids; i++)
		assert_non_null(stack_find(s, s->ids[i].tgid, s->ids[i].id));
	capture_close(c);
	free(s);
}

static void what_has_no_name_keeps_its_address(void **unused)
{
	const uint64_t frames[] = {0x1000, UINT64_MAX};
	struct capture_guest_stack gone = {.tgid = 0x3fffffff, .id = 3, .n = 2, .frames = frames};
	struct wanted *wanted = wanted_new();

	(void)unused;
	wanted->tgid = gone.tgid;
	wanted->name = "";
	name(wanted, &gone);
	assert_int_equal(wanted->last.n_frames, 2);
	assert_string_equal(wanted->last.frames[0].symbol, "");
	assert_string_equal(wanted->last.frames[0].module, "");
	assert_int_equal(wanted->last.frames[0].offset, 0x1000);
	wanted_free(wanted);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_show_where_a_task_computes),
		cmocka_unit_test(sleeps_show_where_a_task_waits),
		cmocka_unit_test(a_reader_that_joins_late_is_told_again),
		cmocka_unit_test(what_has_no_name_keeps_its_address),
	};

	if (opener_is_meant(argc, argv))
		_exit(opener_main(&symbols_body));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
