/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the output of reports: JSON byte for byte, the statements of the text, hostile names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include <json-c/json.h>

#include "host-collector/util/escape.h"
#include "host-collector/view/json.h"
#include "host-collector/view/text.h"
#include "host-collector/util/wrap.h"
#include "proto/program/columns.h"

/* ---- a report that uses every field ---- */

static struct stack *waiter_stack(void)
{
	struct stack *s = calloc(1, sizeof(*s) + 3 * sizeof(s->frames[0]));

	s->id = 7;
	s->pid = 110;
	s->n_frames = 3;
	s->frames[0] = (struct stack_frame){"schedule", "", 0x2a, true};
	s->frames[1] = (struct stack_frame){"futex_wait", "", 0x12, true};
	s->frames[2] = (struct stack_frame){"", "/usr/bin/qemu-system-x86_64", 0x5d21, false};
	return s;
}

/* A finding whose sentence is `text`. */
static struct finding says(const char *text)
{
	struct finding f = {.kind = FINDING_SEEN_EVENT};

	snprintf(f.name, sizeof(f.name), "%s", text);
	return f;
}

static struct incident paused(uint16_t cpu, int64_t begin_ms)
{
	struct incident i = {
		.vm = 1,
		.guest_cpu = cpu,
		.vcpu = cpu,
		.kind = GUEST_CPU_TASK,
		.task_pid = 50,
		.task_comm = "victim",
		.begin = {begin_ms * 1000000},
		.end = {(begin_ms + 500) * 1000000},
		.err_ns = 120000,
		.dmesg_known = true,
		.begin_dmesg_ns = 123456789012,
		.end_dmesg_ns = 123956789012,
		.verdict = VERDICT_VM_PAUSED,
		.runner_up = VERDICT_VCPU_NOT_SCHEDULED,
		.n_causes = 2,
		.causes = {{VERDICT_VM_PAUSED, 400000000}, {VERDICT_VCPU_NOT_SCHEDULED, 50000000}},
		.confidence = CONFIDENCE_DECIDED,
		.because = {{.kind = FINDING_THREAD_SIGNALLED,
			     .ns = {400000000},
			     .task = {{900, "bash"}}}},
		.denied = {says("the CPU itself: its vCPU was kept from the guest for 400 ms")},
		.breakdown_ns = {[VCPU_GUEST] = 90000000,
				 [VCPU_RUNNABLE] = 10000000,
				 [VCPU_STOPPED] = 400000000},
		.n_culprits = 1,
		.culprits = {{true, 900, "bash", CULPRIT_SENT_STOP_SIGNAL, 400000000,
			      .cause = VERDICT_VM_PAUSED}},
		.n_evidence = 1,
		.evidence = {{.t = {(begin_ms + 50) * 1000000},
			      .duration_ns = 400000000,
			      .seen = {.kind = FINDING_SEEN_STOP_SIGNAL,
				       .n = {19},
				       .task = {{900, "bash"}}},
			      .waiter_stack = 7}},
		.missing = 1u << MISSING_KVM_EVENTS,
		.detectors =
			{{SIGHT_YES,
			  {.kind = FINDING_WAITER, .ns = {400000000}, .task = {{60, "waiter"}}}},
			 {SIGHT_BLIND, {.kind = FINDING_TICKS_TOO_FEW}},
			 {SIGHT_NO,
			  says("shorter than the 20 s after which it speaks by default")}},
	};

	return i;
}

static struct report *report_new(void)
{
	struct report *r = calloc(1, sizeof(*r));

	r->begin.ns = 1000000000;
	r->end.ns = 11000000000;
	r->wall_known = true;
	r->wall_offset_ns = 1700000000000000000;
	r->threshold_ns = 100000000;
	r->n_clocks = 1;
	r->clocks = calloc(1, sizeof(*r->clocks));
	r->clocks[0] = (struct report_clock){.vm = 1,
					     .vm_name = strdup("web1"),
					     .method = "echo",
					     .error_ns = 98000,
					     .causality_pairs = 50,
					     .epochs = 1};
	r->n_losses = 2;
	r->losses = calloc(2, sizeof(*r->losses));
	r->losses[0] = (struct report_loss){
		.source = 0, .name = strdup(""), .emitted = 1000, .delivered = 1000};
	r->losses[1] = (struct report_loss){.source = 1,
					    .name = strdup("web1"),
					    .emitted = 5012,
					    .delivered = 4990,
					    .dropped_kernel = 7,
					    .dropped_user = 3,
					    .lost_channel = 12,
					    .missed = 1,
					    .aggregated[EVENT_CLASS_IRQS] = {3, 45000, 20000},
					    .aggregated[EVENT_CLASS_SOFTIRQS] = {41, 900000, 80000},
					    .lost_frames = 1,
					    .damaged_bytes = 64,
					    .late = 2,
					    .n_spans = 1,
					    .spans = {{{1}, {2}, 7, 3, 12}}};
	r->n_incidents = 3;
	r->incidents = calloc(3, sizeof(*r->incidents));
	r->incidents[0] = paused(0, 2000);
	r->incidents[1] = paused(1, 2010);
	r->incidents[2] = (struct incident){
		.vm = 1,
		.guest_cpu = 1,
		.vcpu = 1,
		.healthy = true,
		.kind = GUEST_CPU_SOFTIRQ,
		.task_pid = 60,
		.task_comm = "calm",
		.number = 1,
		.begin = {4000000000},
		.end = {4200000000},
		.ongoing = true,
		.denied = {{.kind = FINDING_DENIED_NOTHING}},
		.breakdown_ns = {[VCPU_GUEST] = 200000000},
		.lost_interrupt = {
			true, "msi", 34, 24, {4050000000}, 150000000, false, 77, "qemu-io"}};
	r->n_vcpus = 1;
	r->vcpus = calloc(1, sizeof(*r->vcpus));
	r->vcpus[0] = (struct report_vcpu){
		1,
		0,
		{1000000000},
		{11000000000},
		{[VCPU_GUEST] = 9000000000, [VCPU_STOPPED] = 400000000, [VCPU_HALTED] = 600000000},
		{.span_ns = 10000000000,
		 .observed_ns = 10000000000,
		 .guest = true,
		 .guest_observed_ns = 9500000000,
		 .guest_unknown_ns = {[UNKNOWN_NO_AGENT] = 500000000},
		 .enough = true,
		 .answer = ANSWER_STALLS}};
	r->needed_percent = 90;
	r->n_gaps = 1;
	r->gaps = calloc(1, sizeof(*r->gaps));
	r->gaps[0] = (struct report_gap){1, 0, false, {6000000000}, {6500000000}, UNKNOWN_NO_AGENT};
	r->n_stacks = 1;
	r->stacks = calloc(1, sizeof(struct stack *));
	r->stacks[0] = waiter_stack();
	return r;
}

static char *json_of(const struct report *r)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(json_report_write(r, true, out), 0);
	fclose(out);
	return text;
}

static char *text_of(const struct report *r, bool colour)
{
	struct text_options o = {.colour = colour};
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	text_report_write(r, &o, out);
	fclose(out);
	return text;
}

/* ---- JSON ---- */

/* Without spaces: json-c's versions differ in them. For the caller to free. */
static char *json_plain(const char *text)
{
	struct json_object *o = json_tokener_parse(text);
	char *plain;

	assert_non_null(o);
	plain = strdup(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
	return plain;
}

static void the_json_is_the_golden_file(void **state)
{
	struct report *r = report_new();
	char *is = json_of(r), *golden = calloc(1, 65536), *is_plain, *golden_plain;
	FILE *file = fopen(TEST_GOLDEN_DIR "/report-1.json", "r");

	(void)state;
	assert_non_null(file);
	assert_true(fread(golden, 1, 65535, file) > 0);
	fclose(file);
	is_plain = json_plain(is);
	golden_plain = json_plain(golden);
	if (strcmp(is_plain, golden_plain) != 0)
		fail_msg("not tests/golden/report-1.json; `test_view --write FILE` shows what is");
	free(golden_plain);
	free(is_plain);
	free(golden);
	free(is);
	report_free(r);
}

static const char hostile[] = "a\x1b]0;x\x07\n\"\\\x9b\xc2\x9b\xe2\x80\xae\xff\xf3\xa0\x80\x81";

static void hostile_names_leave_the_json_valid(void **state)
{
	struct report *r = report_new();
	struct json_object *root, *incidents, *task, *comm;
	char *text;

	(void)state;
	memcpy(r->incidents[0].task_comm, hostile, 15);
	r->incidents[0].task_comm[15] = 0;
	r->incidents[0].because[0] = says(hostile);
	free((char *)r->clocks[0].vm_name);
	r->clocks[0].vm_name = strdup(hostile);
	free((char *)r->losses[1].name);
	r->losses[1].name = strdup("host");
	text = json_of(r);
	for (const char *at = text; *at; at++)
		assert_true((uint8_t)*at >= 0x20 || *at == '\n');
	for (const char *at = text; *at;) {
		struct character c = character_at(at);

		assert_true(c.valid);
		assert_true(*at == '\n' || !character_is_unsafe(c.code));
		at += c.bytes;
	}
	root = json_tokener_parse(text);
	assert_non_null(root);
	assert_true(json_object_object_get_ex(root, "incidents", &incidents));
	json_object_object_get_ex(json_object_array_get_idx(incidents, 0), "task", &task);
	json_object_object_get_ex(task, "comm", &comm);
	assert_memory_equal(json_object_get_string(comm), "a\x1b]0;x\x07\n\"\\\xef\xbf\xbd\xc2\x9b",
			    15);
	json_object_object_get_ex(root, "loss", &task);
	assert_true(json_object_object_get_ex(task, "host", NULL));
	assert_true(json_object_object_get_ex(task, "vm 1", NULL));
	json_object_put(root);
	free(text);
	report_free(r);
}

/* ---- text ---- */

/* Blanks and the ends of lines all alike, for long lines are broken. The caller frees. */
static char *squeezed(const char *text)
{
	char *out = malloc(strlen(text) + 1);
	size_t n = 0;

	assert_non_null(out);
	for (; *text; text++) {
		char c = *text == '\n' ? ' ' : *text;

		if (c != ' ' || (n && out[n - 1] != ' '))
			out[n++] = c;
	}
	out[n] = '\0';
	return out;
}

static void expect(const char *text, const char *part)
{
	char *all = squeezed(text), *wanted = squeezed(part);

	if (!strstr(all, wanted))
		fail_msg("\"%s\" is not in:\n%s", part, text);
	free(all);
	free(wanted);
}

static void lines_are_short(const char *text)
{
	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		char *line = strndup(text, (size_t)(end - text));

		if (wrap_width(line) > TEXT_COLUMNS)
			fail_msg("%u columns: %s", wrap_width(line), line);
		free(line);
	}
}

static __attribute__((noinline)) size_t position(const char *text, const char *part)
{
	const char *at = strstr(text, part);

	if (!at)
		fail_msg("\"%s\" is not in:\n%s", part, text);
	return (size_t)(at - text);
}

static void the_text_says_what_happened_first(void **state)
{
	static const char *const order[] = {"   why ",  "   who ",    "   sure ",   "   do ",
					    "   when ", "   denied ", "   states ", "   seen "};
	struct report *r = report_new();
	char *text = text_of(r, false);

	(void)state;
	expect(text, "2 stalls in 10.0 s, the longest 500 ms on guest CPU 0 of VM web1: the vCPU "
		     "thread was stopped for 400 ms by a signal from bash (900)\n");
	assert_ptr_equal(strstr(text, "2 stalls"), text);
	expect(text, "vm_paused (decided)  500 ms  VM web1, guest CPU 0, task victim (50)\n");
	expect(text, "when     2023-11-14 22:13:22.000000+00:00, clock echo, +-120 us\n");
	expect(text, "dmesg    [  123.456789] .. [  123.956789] in the guest's log\n");
	expect(text, "states   S stopped 400 ms (80.0 %), # guest 90.0 ms (18.0 %), R runnable");
	expect(text, "bash (900) in the host: sent the stop signal, 400 ms");
	expect(text, "slept in futex_wait < /usr/bin/qemu-system-x86_64+0x5d21");
	expect(text, "kvm_events: time in KVM and QEMU counts as guest");
	expect(text, "sure     decided: the evidence excludes all other causes; next best: "
		     "vcpu_not_scheduled\n");
	expect(text, "do       Find out why the process that the report names stopped the VM");
	expect(text, "seen     +50.0 ms    400 ms  stopped by SIGSTOP from bash (900)\n");
	/* What matters most comes first. */
	for (size_t k = 1; k < sizeof(order) / sizeof(order[0]); k++)
		assert_true(position(text, order[k - 1]) < position(text, order[k]));
	expect(text, "also     guest CPU 1, task victim (50), 500 ms");
	expect(text, "healthy  200 ms so far  VM web1, guest CPU 1, softirq TIMER in calm (60)");
	expect(text,
	       "web1        4990 events, 23 dropped (7 because the ring of its kernel was full, 3 by its agent, 12 on the way, 1 "
	       "not numbered, because a probe was already running on the CPU), 1 frame lost, 64 bytes damaged, 2 too late");
	expect(text,
	       "web1        short handlers, only counted: 3 of irqs (45 us, the longest 20 us), "
	       "41 of softirqs (900 us, the longest 80 us)");
	assert_null(strchr(text, '\033'));
	free(text);
	text = text_of(r, true);
	assert_non_null(strchr(text, '\033'));
	free(text);
	report_free(r);
}

/* Of stalls of several CPUs only those of one cause and of nearly the same time share a block. */
static void stalls_of_their_own_have_their_own_block(void **state)
{
	(void)state;
	for (int undetermined = 0; undetermined < 2; undetermined++) {
		struct report *r = report_new();
		char *text;

		for (size_t i = 0; i < r->n_incidents; i++) {
			struct incident *x = &r->incidents[i];

			if (x->healthy)
				continue;
			if (undetermined)
				x->verdict = VERDICT_UNDETERMINED;
			else if (x->guest_cpu == 1)
				x->end.ns = x->begin.ns + 150000000;
		}
		text = text_of(r, false);
		expect(text, undetermined ? "undetermined (decided)  500 ms  VM web1, guest CPU 1"
					  : "vm_paused (decided)  150 ms  VM web1, guest CPU 1");
		assert_null(strstr(text, "   also "));
		free(text);
		report_free(r);
	}
}

static void nothing_found_is_said(void **state)
{
	struct report *r = report_new();
	char *text;

	(void)state;
	r->n_incidents = 0;
	r->cut = true;
	r->simulated = true;
	r->imported = true;
	text = text_of(r, false);
	expect(text, "No stall of 100 ms or more in 10.0 s.\n");
	expect(text, "SIMULATED");
	expect(text, "IMPORTED");
	expect(text, "The recording was cut");
	expect(text, "guest times by echo");
	free(text);
	report_free(r);
}

static void hostile_names_cannot_steer_a_terminal(void **state)
{
	struct report *r = report_new();
	struct text_options o = {0};
	char *text, *line = NULL;
	size_t len;
	FILE *out = open_memstream(&line, &len);

	(void)state;
	memcpy(r->incidents[0].task_comm, hostile, 15);
	memcpy(r->incidents[0].culprits[0].comm, hostile, 15);
	r->incidents[0].because[0] = says(hostile);
	r->incidents[0].denied[0] = says(hostile);
	r->incidents[0].evidence[0].seen = says(hostile);
	r->stacks[0]->frames[1].symbol = hostile;
	r->stacks[0]->frames[2].module = hostile;
	free((char *)r->clocks[0].vm_name);
	r->clocks[0].vm_name = strdup(hostile);
	free((char *)r->losses[1].name);
	r->losses[1].name = strdup(hostile);
	text = text_of(r, false);
	text_ongoing_write(&r->incidents[0], hostile, &o, out);
	fclose(out);
	for (int pass = 0; pass < 2; pass++) {
		for (const char *at = pass ? line : text; *at;) {
			struct character c = character_at(at);

			if (!c.valid || (*at != '\n' && character_is_unsafe(c.code)))
				fail_msg("unsafe byte %02x in: %s", (uint8_t)*at, at);
			at += c.bytes;
		}
	}
	assert_int_equal(line[len - 1], '\n');
	lines_are_short(line);
	lines_are_short(text);
	free(line);
	free(text);
	report_free(r);
}

static void escapes(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"plain", "plain"},
		{"gr\xc3\xbc\xc3\x9f\xe4\xbd\xa0\xf0\x9f\x98\x80",
		 "gr\xc3\xbc\xc3\x9f\xe4\xbd\xa0\xf0\x9f\x98\x80"},
		{"\x1b[31m", "\\x1b[31m"},
		{"a\nb\r\t\x7f", "a\\nb\\x0d\\x09\\x7f"},
		{"\\x1b", "\\\\x1b"},
		{"\xc2\x9b", "\\u{9b}"},
		{"\xe2\x80\xae", "\\u{202e}"},
		{"\xef\xbb\xbf", "\\u{feff}"},
		{"\xff\xfe", "\\xff\\xfe"},
		{"\xc0\xaf", "\\xc0\\xaf"},                   /* overlong */
		{"\xed\xa0\x80", "\\xed\\xa0\\x80"},          /* a surrogate */
		{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* above U+10FFFF */
		{"\xe2\x82", "\\xe2\\x82"},                   /* ends in the middle */
	};
	static char longest[4 * ESCAPED_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(escape(cases[i].in).text, cases[i].out);
	memset(longest, 0x1b, sizeof(longest) - 1);
	assert_int_equal(strlen(escape(longest).text), ESCAPED_MAX / 4 * 4 - 4);
}

static void equal_stalls_in_a_row_are_one_block(void **state)
{
	enum { MANY = 31 };
	struct report *r = report_new();
	size_t lines = 0, again = 0;
	char *text;

	(void)state;
	r->incidents = realloc(r->incidents, MANY * sizeof(*r->incidents));
	assert_non_null(r->incidents);
	r->n_incidents = MANY;
	for (int i = 0; i < MANY; i++)
		r->incidents[i] = paused(0, 2000 + 600 * i);
	r->incidents[20].culprits[0].pid = 901; /* somebody else's */
	text = text_of(r, false);
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	for (const char *c = text; (c = strstr(c, "again")); c++)
		again++;
	assert_int_equal(again, 2); /* 20 before it, 10 after */
	assert_in_range(lines, MANY, 100);
	free(text);
	/* Three are no crowd. */
	r->n_incidents = 3;
	text = text_of(r, false);
	assert_null(strstr(text, "again"));
	free(text);
	report_free(r);
}

/* One change to the report, and what the text then says and no longer says. */
static void change_host_only(struct report *r)
{
	strcpy(r->clocks[0].method, "none");
	r->losses[1].delivered = 0;
	r->incidents[0].err_ns = r->incidents[1].err_ns = r->incidents[2].err_ns = 0;
}

static void change_by_arrival(struct report *r)
{
	strcpy(r->clocks[0].method, "none");
	r->incidents[0].err_ns = UINT32_MAX;
}

static void change_lost_interrupt(struct report *r)
{
	struct incident *i = &r->incidents[2];

	i->healthy = false;
	i->kind = GUEST_CPU_UNKNOWN;
	i->lost_interrupt.vector = 0x24;
}

static void change_guest_unknown(struct report *r)
{
	r->incidents[0].kind = GUEST_CPU_UNKNOWN;
}

static void change_no_stall(struct report *r)
{
	r->n_incidents = 0;
	r->vcpus[0].coverage.answer = ANSWER_NO_STALL;
}

static void change_cannot_tell(struct report *r)
{
	r->n_incidents = 0;
	r->vcpus[0].coverage.enough = false;
	r->vcpus[0].coverage.answer = ANSWER_CANNOT_TELL;
}

static void change_cut(struct report *r)
{
	r->cut = true;
}

static void log_line(struct report *r, int incident, enum watchdog_opinion opinion)
{
	r->n_watchdogs = 1;
	r->watchdogs = calloc(1, sizeof(*r->watchdogs));
	r->watchdogs[0] = (struct report_watchdog){.vm = 1,
						   .stuck_s = 22,
						   .pid = 50,
						   .comm = "victim",
						   .dmesg_us = 123456789,
						   .incident = incident,
						   .opinion = opinion};
}

static void change_log_wrong(struct report *r)
{
	log_line(r, 0, WATCHDOG_WRONG);
}

static void change_log_right(struct report *r)
{
	log_line(r, 0, WATCHDOG_RIGHT);
}

static void change_log_unproven(struct report *r)
{
	log_line(r, 0, WATCHDOG_UNPROVEN);
}

static void change_orphan_log(struct report *r)
{
	log_line(r, -1, WATCHDOG_UNPROVEN);
}

static void change_simulated(struct report *r)
{
	r->simulated = true;
}

static void change_more(struct report *r)
{
	r->dropped_incidents = 5;
}

static void change_imported(struct report *r)
{
	r->simulated = false;
	r->imported = true;
}

static void change_one_of_each(struct report *r)
{
	struct report_loss *l = &r->losses[1];

	l->delivered = l->malformed_frames = l->damaged_bytes = 1;
	l->unknown_events = l->unknown_frames = l->lost_frames = 1;
}

static void change_many_of_each(struct report *r)
{
	struct report_loss *l = &r->losses[1];

	l->malformed_frames = l->damaged_bytes = l->unknown_events = l->unknown_frames = 2;
	l->lost_frames = 2;
}

static void change_quota(struct report *r)
{
	r->incidents[0].quota = (struct report_quota){"/vm.scope", 20000, 100000};
}

static void change_quota_gone(struct report *r)
{
	r->incidents[0].quota = (struct report_quota){"/vm.scope", 0, 0};
}

static void change_groups(struct report *r)
{
	r->incidents[0].n_groups = 2;
	r->incidents[0].groups[0] = (struct report_group){"/batch.slice", 20, 2501000000};
	r->incidents[0].groups[1] = (struct report_group){"/cron.service", 1, 30000000};
}

static void change_nothing(struct report *r)
{
	(void)r;
}

static const struct {
	void (*change)(struct report *r);
	const char *says, *says_not;
} sentences[] = {
	{change_nothing,
	 "2 stalls in 10.0 s, the longest 500 ms on guest CPU 0 of VM web1: ", "No "},
	{change_nothing, "1 long run interval in which no task had to wait.", "cut"},
	{change_nothing, "clock echo, +-", "guest times by arrival"},
	{change_nothing, "VM web1     guest times by echo, +-98", "not recorded"},
	{change_host_only, ", by the host's clock\n", "+-"},
	{change_host_only, "VM web1     no guest times: the guest was not recorded\n", "by none"},
	{change_by_arrival, ", guest times by arrival, error unbounded\n", "clock none"},
	{change_by_arrival, "VM web1     guest times by arrival, error unbounded", "by none"},
	{change_lost_interrupt, "guest CPU 1, interrupt 0x24 not handled\n", "guest side unknown"},
	{change_guest_unknown, "guest CPU 0, guest side unknown\n", "not handled"},
	{change_no_stall, "No stall of 100 ms or more in 10.0 s.\n", "Cannot tell"},
	{change_cannot_tell,
	 "Cannot tell whether there was a stall of 100 ms or more in 10.0 s: too little was "
	 "observed.\n",
	 "No stall"},
	{change_log_wrong, "CPU#0 stuck for 22s, blames victim (50), which is not to blame\n",
	 "blame is"},
	{change_log_right, "CPU#0 stuck for 22s, blames victim (50), it is to blame\n", "innocent"},
	{change_log_unproven, "blames victim (50), whether it is to blame is", "innocent"},
	{change_orphan_log, "of VM web1; no stall in this recording explains it\n", "innocent"},
	{change_nothing,
	 "(7 because the ring of its kernel was full, 3 by its agent, 12 on the way", "collector"},
	{change_nothing, ", 2 too late\n", "more stalls than"},
	{change_more, "5 more stalls than a report holds.\n", "No stall"},
	{change_imported, "IMPORTED: from another tracer's recording", "SIMULATED"},
	{change_simulated, "SIMULATED: this recording was made by the simulator", "IMPORTED"},
	{change_one_of_each, "web1        1 event, 23 dropped", "1 events"},
	{change_one_of_each, ", 1 malformed frame or event, 1 event of unknown type", "1 frames"},
	{change_one_of_each, ", 1 frame of unknown kind", "1 frames"},
	{change_one_of_each, ", 1 frame lost, 1 byte damaged", "1 bytes"},
	{change_many_of_each, ", 2 malformed frames or events, 2 events of unknown type",
	 "2 frame "},
	{change_many_of_each, ", 2 frames lost, 2 bytes damaged", "2 byte "},
	{change_quota, "   quota    cgroup /vm.scope: 20000 us of CPU time in every 100000 us\n",
	 "taken away"},
	{change_quota_gone,
	 "   quota    cgroup /vm.scope: its quota had been taken away when it was read\n",
	 " us of"},
	{change_groups, "            cgroup /batch.slice: 2501 ms (20 tasks)\n", "1 tasks"},
	{change_groups, "            cgroup /cron.service: 30.0 ms (1 task)\n", "20 task)"},
	{change_cut, "The recording was cut: the report covers what is complete of it.\n",
	 "IMPORTED"},
};

static bool is_said(const char *text, const char *sentence)
{
	char *in = squeezed(text), *what = squeezed(sentence);
	bool found = strstr(in, what) != NULL;

	free(in);
	free(what);
	return found;
}

static void each_sentence_is_said_when_it_is_true(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++) {
		struct report *r = report_new();
		char *text;

		sentences[i].change(r);
		text = text_of(r, false);
		if (!is_said(text, sentences[i].says))
			fail_msg("it does not say '%s':\n%s", sentences[i].says, text);
		if (is_said(text, sentences[i].says_not))
			fail_msg("it says '%s':\n%s", sentences[i].says_not, text);
		free(text);
		report_free(r);
	}
}

/* Writes the report that the golden file holds, for a human to compare. */
static int golden_write(const char *path)
{
	struct report *r = report_new();
	FILE *out = fopen(path, "w");
	int err = out ? json_report_write(r, true, out) : -1;

	if (out && fclose(out))
		err = -1;
	report_free(r);
	return err ? 1 : 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_json_is_the_golden_file),
		cmocka_unit_test(equal_stalls_in_a_row_are_one_block),
		cmocka_unit_test(each_sentence_is_said_when_it_is_true),
		cmocka_unit_test(hostile_names_leave_the_json_valid),
		cmocka_unit_test(the_text_says_what_happened_first),
		cmocka_unit_test(stalls_of_their_own_have_their_own_block),
		cmocka_unit_test(nothing_found_is_said),
		cmocka_unit_test(hostile_names_cannot_steer_a_terminal),
		cmocka_unit_test(escapes),
	};

	if (argc == 3 && strcmp(argv[1], "--write") == 0)
		return golden_write(argv[2]);
	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
