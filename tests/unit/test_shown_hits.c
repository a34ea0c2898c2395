/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests events that the user chose as evidence of a stall: only those of its vCPU and its time,
 * as many as fit, and the number of the others. */
#include "host-collector/analyze/stall/facts.h"
#include "host-collector/view/finding_text.h"
#include "tests/unit/model_tale.h"

enum { NO_EVENT = 99, LINES_MAX = 24 };

static struct tale tale;

/* Event 1 has two values and a text of two more, event 2 one value; events 10 to 29 have none. */
static void describe_chosen(struct model *m, uint32_t source)
{
	struct message_user_events *all = calloc(1, sizeof(*all));

	assert_non_null(all);
	all->n = 2;
	all->events[0] = (struct message_user_event){
		.id = 1,
		.kind = USER_KPROBE,
		.system = "kprobe",
		.name = "vfs_read",
		.n_fields = 3,
		.fields = {{.name = "count", .type = USER_SIGNED, .bytes = 4},
			   {.name = "file", .type = USER_HEX, .bytes = 8},
			   {.name = "path", .type = USER_TEXT, .bytes = 8}}};
	all->events[1] = (struct message_user_event){
		.id = 2,
		.kind = USER_TRACEPOINT,
		.system = "timer",
		.name = "hrtimer_start",
		.n_fields = 1,
		.fields = {{.name = "mode", .type = USER_UNSIGNED, .bytes = 4}}};
	for (uint32_t id = 10; id < 30; id++) {
		struct message_user_event *e = &all->events[all->n++];

		*e = (struct message_user_event){
			.id = id, .kind = USER_TRACEPOINT, .system = "test"};
		snprintf(e->name, sizeof(e->name), "event%u", id);
	}
	assert_int_equal(user_events_learn(model_user_events(m), source, all), 0);
	free(all);
}

/* A hit of event 1 in two records. */
static void reads(struct tale *t, uint32_t source, int64_t t_us, uint16_t cpu, int32_t pid,
		  int64_t count)
{
	ADD(t, EVENT(source, t_us, cpu, USER, pid, 1, (uint64_t)count, 0xabc));
	ADD(t, EVENT(source, t_us, cpu, USER_MORE, pid, 1 | 1 << 16, script_comm("/ab"), 0));
}

static void hit(struct tale *t, uint32_t source, int64_t t_us, uint16_t cpu, int32_t pid,
		uint32_t id)
{
	ADD(t, EVENT(source, t_us, cpu, USER, pid, id, 3, 0));
}

/* Guest CPU 1 runs task 43 on vCPU 1. Guest CPU 0 runs task 50 from 200 to 800 ms, and task 60
 * waits for it. */
static void stall_begin(struct tale *t)
{
	tale_begin(t);
	ADD(t, SWITCH(HOST, 0, 1, 0, TID1, 0));
	ADD(t, SWITCH(VM, 2, 1, 0, 43, 0));
	ADD(t, WAKEUP(VM, 210000, 0, 60, 50, 0));
}

static void stall_end(struct tale *t)
{
	ADD(t, SWITCH(VM, 800000, 0, 50, 60, 0));
	ADD(t, SWITCH(VM, 990000, 0, 60, 42, 1));
}

/* The evidence about chosen events, as "MS: TEXT". */
struct lines {
	size_t n, n_evidence;
	char text[LINES_MAX][REPORT_TEXT_MAX + 32];
};

static void lines_of(const struct incident *incident, struct lines *out)
{
	*out = (struct lines){.n_evidence = incident->n_evidence};
	for (size_t i = 0; i < incident->n_evidence; i++) {
		const struct report_evidence *e = &incident->evidence[i];
		const struct finding_text t = finding_text(&e->seen, 1);

		if (strncmp(t.text, "host:", 5) && strncmp(t.text, "guest:", 6) &&
		    !strstr(t.text, "that were chosen"))
			continue;
		assert_true(out->n < LINES_MAX);
		snprintf(out->text[out->n++], sizeof(out->text[0]), "%lld: %s",
			 (long long)e->t.ns / 1000000, t.text);
		assert_int_equal(e->duration_ns, 0);
	}
}

/* Returns the stall of guest CPU 0 that begins at 200 ms. */
static const struct incident *the_stall(const struct incident *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (all[i].guest_cpu == 0 && all[i].begin.ns == 200000000)
			return &all[i];
	}
	fail_msg("no stall at 200 ms");
	return NULL;
}

/* ongoing: asks while the stall lasts, and does not end the recording. */
static void judge(struct tale *t, bool ongoing, struct lines *out)
{
	struct report_options options = {.than_ns = 100000000};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);
	static struct incident open[4];
	struct report *r;

	script_vm(m, 2, "tcg");
	describe_chosen(m, HOST);
	describe_chosen(m, VM);
	tale_play(t, m);
	if (ongoing) {
		const size_t n = report_builder_ongoing(b, open, COUNT(open));

		lines_of(the_stall(open, n), out);
	}
	model_finish(m);
	r = report_builder_finish(b);
	assert_non_null(r);
	if (!ongoing)
		lines_of(the_stall(r->incidents, r->n_incidents), out);
	report_free(r);
	report_builder_free(b);
	model_free(m);
}

static void those_of_the_vcpu_and_of_the_time(void **state)
{
	static struct lines got;
	struct tale *t = &tale;

	(void)state;
	stall_begin(t);
	/* Within it, of this vCPU: in the guest, and in the vCPU's thread. */
	reads(t, VM, 300000, 0, 50, -5);
	reads(t, VM, 500000, 0, 50, 6);
	reads(t, VM, 700000, 0, 50, 7);
	hit(t, HOST, 350000, 0, TID0, 2);
	/* The same number of the other stream is another event. */
	hit(t, VM, 360000, 0, 50, 2);
	/* Before and after it. */
	reads(t, VM, 150000, 0, 42, 8);
	reads(t, VM, 900000, 0, 60, 9);
	hit(t, HOST, 199000, 0, TID0, 10);
	hit(t, HOST, 801000, 0, TID0, 10);
	/* Of the other vCPU, and of the VM's other threads. */
	reads(t, VM, 400000, 1, 43, 10);
	hit(t, HOST, 410000, 1, TID1, 11);
	hit(t, HOST, 420000, 1, QEMU, 12);
	/* Of no description; above the rate. */
	hit(t, VM, 430000, 0, 50, NO_EVENT);
	ADD(t, EVENT(VM, 440000, 0, USER_LIMITED, 50, 13, 5, 0));
	stall_end(t);
	judge(t, false, &got);
	assert_int_equal(got.n, 3);
	assert_string_equal(got.text[0], "300: guest:kprobe:vfs_read count=-5 file=0xabc path=/ab, "
					 "the first of 3");
	assert_string_equal(got.text[1], "350: host:timer:hrtimer_start mode=3");
	assert_string_equal(got.text[2], "360: guest:timer:hrtimer_start mode=3");
}

static void without_hits_there_is_no_line(void **state)
{
	static struct lines got;

	(void)state;
	stall_begin(&tale);
	stall_end(&tale);
	judge(&tale, false, &got);
	assert_true(got.n_evidence > 0);
	assert_int_equal(got.n, 0);
}

static void a_stall_that_lasts_has_them(void **state)
{
	static struct lines got;

	(void)state;
	stall_begin(&tale);
	reads(&tale, VM, 300000, 0, 50, -5);
	hit(&tale, HOST, 500000, 0, TID0, 2);
	judge(&tale, true, &got);
	assert_int_equal(got.n, 2);
	assert_string_equal(got.text[0], "300: guest:kprobe:vfs_read count=-5 file=0xabc path=/ab");
	assert_string_equal(got.text[1], "500: host:timer:hrtimer_start mode=3");
}

/* A hit whose second record never comes: a loss ends it, or the end of the recording. */
static void a_hit_that_is_cut_has_a_question_mark(void **state)
{
	static const char *const expected = "600: guest:kprobe:vfs_read count=4 file=0xabc path=?";
	static struct lines got;

	(void)state;
	stall_begin(&tale);
	ADD(&tale, EVENT(VM, 600000, 0, USER, 50, 1, 4, 0xabc));
	judge(&tale, false, &got); /* the recording ends within the stall */
	assert_int_equal(got.n, 1);
	assert_string_equal(got.text[0], expected);

	stall_begin(&tale);
	ADD(&tale, EVENT(HOST, 600000, 0, USER, TID0, 1, 4, 0xabc));
	ADD(&tale, LOST(HOST, 601000, 0));
	stall_end(&tale); /* the stall is reported long before the recording ends */
	tale_away(&tale, 905000, 910000, VS_TASK_RUNNING, 500);
	tale_ticks(&tale, 992000, 3000000, 42);
	judge(&tale, false, &got);
	assert_int_equal(got.n, 1);
	assert_string_equal(got.text[0], "600: host:kprobe:vfs_read count=4 file=0xabc path=?");
}

static void a_last_line_counts_the_rest(void **state)
{
	static struct lines got;
	char expected[64];

	(void)state;
	stall_begin(&tale);
	for (uint32_t id = 10; id < 10 + FACTS_HITS + 3; id++) {
		hit(&tale, VM, 300000 + id * 1000, 0, 50, id);
		hit(&tale, VM, 400000 + id * 1000, 0, 50, id);
	}
	stall_end(&tale);
	judge(&tale, false, &got);
	assert_int_equal(got.n, FACTS_HITS + 1);
	for (uint32_t i = 0; i < FACTS_HITS; i++) {
		snprintf(expected, sizeof(expected), "%u: guest:test:event%u, the first of 2",
			 310 + i, 10 + i);
		assert_string_equal(got.text[i], expected);
	}
	assert_string_equal(got.text[FACTS_HITS], "200: 6 hits of other events that were chosen");
}

/* A guest with many hits takes no room of another vCPU; what is no longer kept is not counted. */
static void a_flood_is_said_to_be_one(void **state)
{
	static struct lines got;
	const uint32_t n = 5000;

	(void)state;
	stall_begin(&tale);
	hit(&tale, VM, 250000, 0, 50, 2);
	for (uint32_t i = 0; i < n; i++)
		hit(&tale, VM, 300000 + i * 20, 1, 43, 10);
	stall_end(&tale);
	judge(&tale, false, &got);
	assert_int_equal(got.n, 1);
	assert_string_equal(got.text[0], "250: guest:timer:hrtimer_start mode=3");

	stall_begin(&tale);
	hit(&tale, VM, 250000, 0, 50, 2);
	for (uint32_t i = 0; i < n; i++)
		hit(&tale, VM, 300000 + i * 20, 0, 50, 10);
	stall_end(&tale);
	judge(&tale, false, &got);
	assert_int_equal(got.n, 1);
	assert_string_equal(got.text[0], "389: guest:test:event10, the oldest that was kept of 512 "
					 "or more");

	/* Those before the stall do not make its own fewer. */
	stall_begin(&tale);
	for (uint32_t i = 0; i < n; i++)
		hit(&tale, VM, 3000 + i * 20, 0, 42, 10);
	hit(&tale, VM, 250000, 0, 50, 2);
	stall_end(&tale);
	judge(&tale, false, &got);
	assert_int_equal(got.n, 1);
	assert_string_equal(got.text[0], "250: guest:timer:hrtimer_start mode=3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_of_the_vcpu_and_of_the_time),
		cmocka_unit_test(without_hits_there_is_no_line),
		cmocka_unit_test(a_stall_that_lasts_has_them),
		cmocka_unit_test(a_hit_that_is_cut_has_a_question_mark),
		cmocka_unit_test(a_last_line_counts_the_rest),
		cmocka_unit_test(a_flood_is_said_to_be_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
