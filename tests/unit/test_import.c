/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that text of other tracers becomes the right events, and that lines without an event are
 * counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/engine/replay.h"
#include "host-collector/model/exit_name.h"
#include "host-collector/import/foreign.h"
#include "host-collector/import/gather.h"
#include "host-collector/import/line.h"
#include "host-collector/import/reason.h"
#include "host-collector/import/vcpus.h"
#include "host-collector/import/writer.h"

#define VMX(reason) ((uint64_t)(reason) | (uint64_t)KVM_ISA_VMX << 32)
#define SVM(reason) ((uint64_t)(reason) | (uint64_t)KVM_ISA_SVM << 32)

static void what_is_no_text_is_known_by_its_begin(void **state)
{
	static const struct {
		const char *begins, *text_by;
		size_t bytes;
	} cases[] = {
		{"\x1f\x8b\x08\x00", "zcat", 4},
		{"PERFILE2\x68", "perf script --ns -i", 9},
		{"\x1f", NULL, 1},
		{"", NULL, 0},
		{"# tracer: nop", NULL, 13},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char path[] = "/tmp/vcpuscope-import.XXXXXX";
		int fd = mkstemp(path);
		const struct foreign *f;

		assert_true(fd >= 0);
		assert_int_equal(write(fd, cases[i].begins, cases[i].bytes), cases[i].bytes);
		close(fd);
		f = foreign_of(path);
		unlink(path);
		assert_int_equal(!f, !cases[i].text_by);
		if (f)
			assert_string_equal(f->text_by, cases[i].text_by);
	}
	assert_null(foreign_of("/nonexistent"));
}

static void every_form_of_a_line_says_the_same(void **state)
{
	static const struct {
		const char *line;
		enum line_kind kind;
		uint64_t time;
		int cpu; /* -1: not said */
		int32_t tid, tgid;
		uint16_t type;
		uint64_t arg0, arg1;
	} cases[] = {
		{"a-1 [003] d..1. 5.000001: kvm_entry: vcpu 7", LINE_EVENT, 5000001000, 3, 1, 0,
		 VS_EVENT_KVM_ENTRY, 0, 0},
		{"a-b-17 (  9) [003] d..1. 5.5: kvm:kvm_entry: vcpu 7, rip 0xfff0\r\n", LINE_EVENT,
		 5500000000, 3, 17, 9, VS_EVENT_KVM_ENTRY, 0, 0xfff0},
		{"a-17 (-----) [1000] 5.123456789: kvm_exit: reason HLT rip 0x2 info 0 0",
		 LINE_EVENT, 5123456789, 1000, 17, 0, VS_EVENT_KVM_EXIT, VMX(12), 2},
		{"a b  8/17 [000] 5.123456789123: kvm:kvm_exit: vcpu 1 reason hlt rip 0x2 info1 0x0",
		 LINE_EVENT, 5123456789, 0, 17, 8, VS_EVENT_KVM_EXIT, SVM(0x78), 2},
		{" 1.000000: kvm_exit: vcpu 0 reason PF excp rip 0x9 info1 0x0", LINE_EVENT,
		 1000000000, -1, 0, 0, VS_EVENT_KVM_EXIT, SVM(0x4e), 9},
		{"a-1 [0] 1.0: kvm_exit: reason EXIT_NPF rip 0x9 info 0 0 vcpu 3", LINE_EVENT,
		 1000000000, 0, 1, 0, VS_EVENT_KVM_EXIT, SVM(0x400), 9},
		{"a-1 [0] 1.0: kvm_exit: reason NEVER_HEARD rip 0x9 info 0 0", LINE_EVENT,
		 1000000000, 0, 1, 0, VS_EVENT_KVM_EXIT, VMX(0xffff), 9},
		{"a-1 [0] 1.0: kvm_userspace_exit: reason KVM_EXIT_MMIO (6)", LINE_EVENT,
		 1000000000, 0, 1, 0, VS_EVENT_KVM_USERSPACE_EXIT, 6, 0},
		{"a-1 [0] 1.0: kvm_userspace_exit: reason restart (4)", LINE_EVENT, 1000000000, 0,
		 1, 0, VS_EVENT_KVM_USERSPACE_EXIT, 0, (uint64_t)-4},
		{"<idle>-0 [001] 1.0: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 "
		 "prev_state=R ==> next_comm=x y next_pid=5 next_prio=98",
		 LINE_EVENT, 1000000000, 1, 0, 0, VS_EVENT_SCHED_SWITCH, 0, 120 | 98ull << 32},
		{"x y-5 [001] 1.0: sched_switch: x y:5 [98] D|K ==> swapper/1:0 [120]", LINE_EVENT,
		 1000000000, 1, 5, 0, VS_EVENT_SCHED_SWITCH, VS_TASK_UNINTERRUPTIBLE,
		 98 | 120ull << 32},
		{"x-5 [001] 1.0: sched_wakeup: y:6 [120] success=1 CPU:003", LINE_EVENT, 1000000000,
		 1, 5, 0, VS_EVENT_SCHED_WAKEUP, 3, 120},
		{"x-5 [001] 1.0: sched_migrate_task: comm=y pid=6 prio=120 orig_cpu=1 dest_cpu=2",
		 LINE_EVENT, 1000000000, 1, 5, 0, VS_EVENT_SCHED_MIGRATE, 1, 2},
		{"x-5 [001] d.h. 1.0: local_timer_entry: vector=236", LINE_EVENT, 1000000000, 1, 5,
		 0, VS_EVENT_VECTOR_ENTRY, VS_VECTOR_LOCAL_TIMER, 236},
		{"x-5 [001] d.h. 1.0: call_function_exit: vector=251", LINE_EVENT, 1000000000, 1, 5,
		 0, VS_EVENT_VECTOR_EXIT, VS_VECTOR_CALL_FUNCTION, 251},
		{"x-5 [001] d... 1.0: signal_generate: sig=19 errno=0 code=0 comm=y pid=6 grp=1 res=0",
		 LINE_EVENT, 1000000000, 1, 5, 0, VS_EVENT_SIGNAL, 19, 6},
		{"x-5 [001] 123456789: kvm_entry: vcpu 0", LINE_EVENT, 123456789, 1, 5, 0,
		 VS_EVENT_KVM_ENTRY, 0, 0},
		{"x-5 [001] 1.0: kvm_pio: pio_read at 0xe9 size 1 count 2 val 0x0 (...)",
		 LINE_EVENT, 1000000000, 1, 5, 0, VS_EVENT_KVM_PIO, 0xe9 | 1ull << 32, 2ull << 32},
		{"x-5 [001] 1.0: kvm_fpu: unload", LINE_OTHER, 1000000000, 1, 5, 0, 0, 0, 0},
		{"mine:       kworker/0:1-18 [000] 1.0: sched_switch: kworker/0:1:18 [120] W ==> y:5 "
		 "[98]",
		 LINE_EVENT, 1000000000, 0, 18, 0, VS_EVENT_SCHED_SWITCH, VS_TASK_UNINTERRUPTIBLE,
		 120 | 98ull << 32},
		{"CPU:7 [LOST 123 EVENTS]", LINE_LOST, 0, 7, 0, 0, 0, 123, 0},
		{"CPU:7 [EVENTS DROPPED]", LINE_LOST, 0, 7, 0, 0, 0, 0, 0},
		{"# comment", LINE_NOTHING, 0, -1, 0, 0, 0, 0, 0},
		{"CPU 2 is empty", LINE_NOTHING, 0, -1, 0, 0, 0, 0, 0},
		{"", LINE_NOTHING, 0, -1, 0, 0, 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct import_record r;
		char *line = strdup(cases[i].line);

		assert_non_null(line);
		if (line_parse(line, &r) != cases[i].kind)
			fail_msg("kind of: %s", cases[i].line);
		free(line);
		if (cases[i].kind == LINE_NOTHING)
			continue;
		if (r.time != cases[i].time || r.e.type != cases[i].type ||
		    r.e.arg0 != cases[i].arg0 || r.e.arg1 != cases[i].arg1)
			fail_msg("time, type or arguments of: %s", cases[i].line);
		assert_int_equal(r.cpu_known ? r.cpu : -1, cases[i].cpu);
		assert_int_equal(r.task.tid, cases[i].tid);
		assert_int_equal(r.task.tgid, cases[i].tgid);
	}
}

static void what_is_no_line_is_called_so(void **state)
{
	static const char *const lines[] = {
		"torn",
		"CPU 0/KVM-4711 [003] d..1. 5.0",
		"x-5 [1023] 1.0: kvm_entry: vcpu 0", /* the collector's own number */
		"x-5 [99999] 1.0: kvm_entry: vcpu 0",
		"x-5 [001] 99999999999999999999.0: kvm_entry: vcpu 0",
		"x-5 [001] 1.: kvm_entry: vcpu 0",
		"x-99999999999 [001] 1.0: kvm_entry: vcpu 0",
		"x-5 [001] 1.0: sched_switch: prev_comm=a prev_pid=1",
		"x-5 [001] 1.0: sched_switch: ==> next_comm=a next_pid=1 next_prio=1",
		"x-5 [001] 1.0: sched_switch: prev_comm=a prev_pid=-3 prev_prio=1 prev_state=S ==> "
		"next_comm=b next_pid=1 next_prio=1",
		"x-5 [001] 1.0: kvm_pio: pio_read at 0xe9", /* cut */
		"[001] 1.0: kvm_exit: rip 0x0",             /* of no thread */
		"x-5 1.0: kvm_exit: rip 0x0",               /* on no CPU */
	};
	static const char *const torn[] = {
		"CPU 0/KVM-4711 [003] d..1. 5.0: kvm_entry: no vcpu here",
		"x-5 [001] 1.0: kvm_userspace_exit: reason KVM_EXIT_IO",
		"x-5 [001] 1.0: kvm_exit: rip 0x0",
		"x-5 [001] 1.0: kvm_exit: reason",
		"x-5 [001] 1.0: kvm_exit: TRAP: HSR_EC: 0x0001 (WFx), PC: 0xffff800080a00010",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct import_record r;
		char *line = strdup(lines[i]);

		assert_non_null(line);
		if (line_parse(line, &r) != LINE_MALFORMED)
			fail_msg("taken: %s", lines[i]);
		free(line);
	}
	for (size_t i = 0; i < sizeof(torn) / sizeof(torn[0]); i++) {
		struct import_record r;
		char *line = strdup(torn[i]);

		if (line_parse(line, &r) != LINE_TORN)
			fail_msg("not torn: %s", torn[i]);
		free(line);
	}
}

static struct gather *gathered_text(const char *text, size_t len,
				    const struct gather_options *options)
{
	struct gather *g = calloc(1, sizeof(*g));
	FILE *in = fmemopen((void *)text, len, "r");

	assert_non_null(g);
	assert_non_null(in);
	assert_int_equal(gather_init(g, options), 0);
	assert_int_equal(gather_text(g, in), 0);
	assert_int_equal(gather_finish(g), 0);
	fclose(in);
	return g;
}

static struct gather *gathered(const char *name)
{
	const struct gather_options options = {0};
	char path[512];
	struct gather *g = calloc(1, sizeof(*g));
	FILE *in;

	snprintf(path, sizeof(path), "%s/import/%s", TEST_GOLDEN_DIR, name);
	in = fopen(path, "r");
	assert_non_null(in);
	assert_non_null(g);
	assert_int_equal(gather_init(g, &options), 0);
	assert_int_equal(gather_text(g, in), 0);
	assert_int_equal(gather_finish(g), 0);
	fclose(in);
	return g;
}

static void gathered_free(struct gather *g)
{
	gather_fini(g);
	free(g);
}

static const struct vs_event *nth(const struct gather *g, uint16_t type, unsigned n)
{
	for (size_t i = 0; i < g->n_events; i++) {
		if (g->events[i].e.type == type && !n--)
			return &g->events[i].e;
	}
	return NULL;
}

static void ftrace_text_is_accounted_for_line_by_line(void **state)
{
	struct gather *g = gathered("ftrace_vmx_old.txt");
	struct message_user_event *described = malloc(sizeof(*described));
	const struct vs_event *e;

	(void)state;
	assert_non_null(described);
	assert_int_equal(g->lines, 20);
	assert_int_equal(g->nothing, 6);
	assert_int_equal(g->taken, 12);
	assert_int_equal(g->unused, 0);
	assert_int_equal(g->other, 1);
	assert_int_equal(other_events_count(g->others), 1);
	other_events_describe(g->others, 1, described);
	assert_string_equal(described->spec, "unknown:kvm_fpu"); /* ftrace does not name systems */
	assert_int_equal(g->malformed, 1);
	assert_string_equal(g->examples[0], "this line is torn");
	assert_int_equal(g->lines,
			 g->nothing + g->taken + g->unused + g->malformed + g->lost_marks);
	assert_int_equal(g->reasons_unknown, 1);
	assert_int_equal(g->unit, 1000);
	e = nth(g, VS_EVENT_LOST, 0);
	assert_non_null(e);
	assert_int_equal(e->arg0, 12);
	assert_int_equal(e->time, 1000000210000);
	assert_int_equal(e->arg1, 1000300210000);
	e = nth(g, VS_EVENT_SCHED_WAKEUP, 0);
	assert_non_null(e);
	assert_int_equal(e->time, 1000300212000); /* the sched_waking is no wake-up of its own */
	assert_null(nth(g, VS_EVENT_SCHED_WAKEUP, 1));
	free(described);
	gathered_free(g);
}

static void names_with_brackets_and_both_kinds_of_reasons_are_understood(void **state)
{
	struct gather *g = gathered("trace_cmd_svm.txt");
	const struct gather_thread *hog = gather_thread_find(g, 4242);

	(void)state;
	assert_int_equal(g->malformed, 0);
	assert_int_equal(g->taken, 6);
	assert_int_equal(g->unit, 1);
	assert_non_null(hog);
	assert_string_equal(hog->comm, "my hog [1]");
	assert_int_equal(nth(g, VS_EVENT_KVM_EXIT, 0)->arg0, SVM(0x400));
	assert_int_equal(nth(g, VS_EVENT_KVM_EXIT, 1)->arg0, SVM(0x78));
	gathered_free(g);
}

static void perf_text_gives_processes_and_skips_call_chains(void **state)
{
	struct gather *g = gathered("perf_script.txt");

	(void)state;
	assert_int_equal(g->malformed, 0);
	assert_int_equal(g->taken, 4);
	assert_int_equal(g->nothing, 2);
	assert_int_equal(gather_thread_find(g, 4711)->tgid, 4700);
	assert_null(gather_thread_find(g, 1));
	gathered_free(g);
}

static void vcpus_come_from_names_then_from_kvm_and_two_of_one_index_are_two_vms(void **state)
{
	static const char text[] = "CPU 1/KVM-11 [0] 1.0: kvm_entry: vcpu 9\n"
				   "fc_vcpu-12 [1] 1.0: kvm_entry: vcpu 0\n"
				   "other-13 [2] 1.0: kvm_entry: vcpu 0\n"
				   "x-14 [3] 1.0: softirq_entry: vec=1 [action=TIMER]\n";
	const struct gather_options options = {0};
	struct gather *g = gathered_text(text, strlen(text), &options);
	struct vcpus v;

	(void)state;
	assert_int_equal(vcpus_find(&v, g, &(struct vcpus_known){.name = "web1"}), 0);
	assert_int_equal(v.n, 2);
	assert_string_equal(v.vms[0].name, "web1");
	assert_string_equal(v.vms[1].name, "vm2");
	assert_int_equal(v.vms[0].n_threads, 2);
	assert_int_equal(v.vms[0].threads[0].tid, 11);
	assert_int_equal(v.vms[0].threads[0].vcpu, 1);
	assert_int_equal(v.vms[0].threads[1].tid, 12);
	assert_int_equal(v.vms[1].threads[0].tid, 13);
	vcpus_fini(&v);

	assert_int_equal(vcpus_find(&v, g, &(struct vcpus_known){.stated = "14=0,11=1"}), 0);
	assert_int_equal(v.n, 1);
	assert_int_equal(v.vms[0].n_threads, 2);
	assert_int_equal(v.vms[0].threads[0].tid, 14);
	assert_string_equal(v.vms[0].threads[0].comm, "x");
	vcpus_fini(&v);
	for (size_t i = 0; i < 6; i++) {
		static const char *const wrong[] = {"", "x=1", "1", "1=", "1=0,", "1=0,2=0"};

		assert_int_equal(vcpus_find(&v, g, &(struct vcpus_known){.stated = wrong[i]}), -22);
		vcpus_fini(&v);
	}
	gathered_free(g);
}

static void odd_input_is_counted_and_harmless(void **state)
{
	const struct gather_options options = {0};
	static const char odd[] = "\n\0\0\xff\n1 [LOST\nx-5 [0] 77: kvm_entry: vcpu 0\n";
	const size_t len = 3 * LINE_BYTES_MAX;
	char *text = malloc(len);
	struct gather *g;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', len); /* one line longer than any */
	text[len - 1] = '\n';
	memcpy(text + 2 * LINE_BYTES_MAX, odd, sizeof(odd) - 1);
	g = gathered_text(text, len, &options);
	assert_int_equal(g->taken, 0);
	assert_int_equal(g->tickless, 1);
	assert_int_equal(g->lines, g->nothing + g->malformed);
	assert_true(g->malformed >= 4);
	gathered_free(g);
	free(text);
}

static void times_that_run_back_are_put_in_order_and_silence_is_unknown(void **state)
{
	static const char text[] = "x-5 [0] 10.0: kvm_entry: vcpu 0\n"
				   "x-5 [0] 9.5: kvm_exit: reason HLT rip 0x0 info 0 0\n"
				   "x-5 [0] 2.0: kvm_entry: vcpu 0\n"
				   "x-5 [0] 500.0: kvm_exit: reason HLT rip 0x0 info 0 0\n";
	const struct gather_options options = {0};
	struct gather *g = gathered_text(text, strlen(text), &options);
	const struct vs_event *lost = nth(g, VS_EVENT_LOST, 0);

	(void)state;
	assert_int_equal(g->backwards, 2);
	assert_int_equal(g->steps_back, 1);
	for (size_t i = 1; i < g->n_events; i++)
		assert_true(g->events[i].e.time >= g->events[i - 1].e.time);
	assert_int_equal(g->silences, 1);
	assert_non_null(lost);
	assert_int_equal(lost->time, 10000000000);
	assert_int_equal(lost->arg1, 500000000000);
	gathered_free(g);
}

static void ticks_become_nanoseconds(void **state)
{
	static const char text[] = "x-5 [0] 5000000001: kvm_entry: vcpu 0\n";
	const struct gather_options options = {.tick_hz = 2500000000, .offset_ns = -500};
	struct gather *g = gathered_text(text, strlen(text), &options);

	(void)state;
	assert_int_equal(g->taken, 1);
	assert_int_equal(nth(g, VS_EVENT_KVM_ENTRY, 0)->time, 2000000000 - 500);
	gathered_free(g);
}

struct seen {
	uint64_t state_ns[VCPU_STATE_COUNT];
	uint64_t guest_spans;
};

static void on_vcpu(void *context, const struct vcpu_span *span)
{
	struct seen *s = context;

	s->state_ns[span->state] += (uint64_t)(span->end.ns - span->begin.ns);
}

static void on_guest(void *context, const struct guest_span *span)
{
	struct seen *s = context;

	s->guest_spans += span->pid == 77;
}

/* Writes, replays and removes a recording. */
static struct seen replayed(const struct gather *host, const struct gather *guest,
			    uint64_t guest_err_ns, struct pipeline_source *source)
{
	char path[] = "/tmp/test_import.XXXXXX", why[256];
	struct seen seen = {0};
	const struct model_observer observer = {
		.vcpu_span = on_vcpu, .guest_span = on_guest, .context = &seen};
	struct model *m = model_new();
	struct pipeline *p = pipeline_new(&(struct pipeline_options){.model = m});
	struct recording_info info;
	struct import_plan plan = {.path = path,
				   .origin = "text",
				   .host = host,
				   .guest = guest,
				   .guest_err_ns = guest_err_ns};
	struct vcpus v;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(vcpus_find(&v, host, &(struct vcpus_known){0}), 0);
	plan.vcpus = &v;
	assert_int_equal(import_write(&plan), 0);
	assert_int_equal(model_observe(m, &observer), 0);
	assert_int_equal(replay_run(p, path, &info, why, sizeof(why)), 0);
	assert_int_equal(info.flags, VS_RECORDING_IMPORTED);
	assert_true(info.closed);
	assert_true(pipeline_is_imported(p));
	for (size_t i = 0; !pipeline_source_get(p, i, source); i++) {
		assert_int_equal(source->malformed, 0);
		assert_int_equal(source->missing, 0);
		if (source->source == (guest ? 1u : 0u))
			break;
	}
	vcpus_fini(&v);
	pipeline_free(p);
	model_free(m);
	unlink(path);
	return seen;
}

static void a_recording_of_it_has_the_states_that_the_text_tells(void **state)
{
	struct gather *g = gathered("trace_cmd_svm.txt");
	struct pipeline_source host;
	struct seen seen = replayed(g, NULL, 0, &host);

	(void)state;
	/* 2000.000000100 .. 1100 in the guest; .. 3100 in KVM; 400 ms ready; 100 ns in KVM. */
	assert_in_range(seen.state_ns[VCPU_RUNNABLE], 400000000 - 10, 400000000 + 10);
	assert_in_range(seen.state_ns[VCPU_GUEST], 1000, 1000 + 400000200);
	assert_int_equal(host.delivered, g->n_events);
	gathered_free(g);
}

/* What `perf kvm stat` adds up: from an exit to the entry that follows it, and the other way round.
 */
static void times_in_guest_kvm_and_vmm_add_up_to_those_between_the_lines(void **state)
{
	static const char *const reasons[] = {"HLT", "EPT_VIOLATION", "IO_INSTRUCTION",
					      "MSR_WRITE"};
	enum { TURNS = 3000, LINE = 160 };
	const struct gather_options options = {0};
	uint64_t us = 77000000, guest_us = 0, kvm_us = 0, vmm_us = 0, random = 1;
	char *text = malloc((size_t)TURNS * 3 * LINE);
	struct pipeline_source host;
	struct gather *g;
	struct seen seen;
	size_t len = 0;

	(void)state;
	assert_non_null(text);
#define DRAW(n) ((random = random * 6364136223846793005 + 1442695040888963407) >> 33) % (n)
#define PUT(...)                                                                                   \
	(len +=                                                                                    \
	 (size_t)sprintf(text + len, " CPU 0/KVM-9 [002] d..1. %llu.%06llu: ",                     \
			 (unsigned long long)us / 1000000, (unsigned long long)us % 1000000),      \
	 len += (size_t)sprintf(text + len, __VA_ARGS__))
	for (unsigned i = 0; i < TURNS; i++) {
		const uint64_t in_guest = 1 + DRAW(900), in_kvm = 1 + DRAW(50);
		const uint64_t in_vmm = i % 3 ? 0 : 1 + DRAW(300);

		PUT("kvm_entry: vcpu 0\n");
		us += in_guest;
		guest_us += in_guest;
		PUT("kvm_exit: reason %s rip 0x1 info 0 0\n", reasons[i % 4]);
		us += in_kvm;
		kvm_us += in_kvm;
		if (in_vmm)
			PUT("kvm_userspace_exit: reason KVM_EXIT_IO (2)\n");
		us += in_vmm;
		vmm_us += in_vmm;
	}
	PUT("kvm_entry: vcpu 0\n");
#undef PUT
#undef DRAW
	g = gathered_text(text, len, &options);
	assert_int_equal(g->malformed, 0);
	assert_int_equal(g->taken, TURNS * 2 + TURNS / 3 + 1);
	seen = replayed(g, NULL, 0, &host);
	/* To the nanosecond; the recording ends one behind the last event. */
	assert_int_equal(seen.state_ns[VCPU_GUEST], guest_us * 1000 + 1);
	assert_int_equal(seen.state_ns[VCPU_KVM], kvm_us * 1000);
	assert_int_equal(seen.state_ns[VCPU_VMM], vmm_us * 1000);
	gathered_free(g);
	free(text);
}

/* KVM's lines that are not understood: nothing of the time behind them passes as time in the guest,
 * and they count as lost. */
static void torn_lines_of_kvm_make_the_time_behind_them_unknown(void **state)
{
	static const char arm64[] =
		"CPU 0/KVM-4101 [002] d..1. 500.000010: kvm_entry: PC: 0xffff800080a00000\n"
		"CPU 0/KVM-4101 [002] d..1. 500.000110: kvm_exit: TRAP: HSR_EC: 0x0001 (WFx), PC: "
		"0xffff800080a00010\n"
		"CPU 0/KVM-4101 [002] d..2. 500.000120: sched_switch: prev_comm=CPU 0/KVM prev_pid=4101 "
		"prev_prio=120 prev_state=S ==> next_comm=swapper/2 next_pid=0 next_prio=120\n"
		"<idle>-0 [002] d..2. 500.002000: sched_switch: prev_comm=swapper/2 prev_pid=0 "
		"prev_prio=120 prev_state=R ==> next_comm=CPU 0/KVM next_pid=4101 next_prio=120\n"
		"CPU 0/KVM-4101 [002] d..1. 500.002020: kvm_entry: PC: 0xffff800080a00014\n"
		"CPU 0/KVM-4101 [002] d..1. 500.002220: kvm_exit: TRAP: HSR_EC: 0x0024 (DABT_LOW), PC: "
		"0xffff800080a00100\n"
		"CPU 0/KVM-4101 [002] ..... 500.002230: kvm_userspace_exit: reason KVM_EXIT_MMIO (6)\n"
		"CPU 0/KVM-4101 [002] d..1. 500.002900: kvm_entry: PC: 0xffff800080a00104\n";
	static const char wrapped[] = "CPU-3301 [004] 1000.000000: kvm_entry: vcpu 0\n"
				      "CPU-3301 [004] 1000.000005: kvm_exit: reason\n"
				      "EPT_VIOLATION rip 0x1000 info 683 0\n"
				      "CPU-3301 [004] 1000.000010: kvm_entry: vcpu 0\n"
				      "CPU-3301 [004] 1000.000015: kvm_exit: reason\n"
				      "EPT_VIOLATION rip 0x1000 info 683 0\n"
				      "CPU-3301 [004] 1000.000020: kvm_entry: vcpu 0\n";
	const struct gather_options options = {0};
	struct pipeline_source host;
	struct gather *g;
	struct seen seen;

	(void)state;
	g = gathered_text(arm64, sizeof(arm64) - 1, &options);
	assert_int_equal(g->torn, 5);
	assert_string_equal(g->architecture, "arm64");
	seen = replayed(g, NULL, 0, &host);
	assert_int_equal(seen.state_ns[VCPU_GUEST], 0);
	assert_in_range(seen.state_ns[VCPU_UNKNOWN], 900000, 1100000);
	assert_int_equal(host.dropped_kernel, 5);
	gathered_free(g);

	g = gathered_text(wrapped, sizeof(wrapped) - 1, &options);
	assert_int_equal(g->torn, 2);
	assert_null(g->architecture);
	seen = replayed(g, NULL, 0, &host);
	assert_in_range(seen.state_ns[VCPU_GUEST], 1, 10001); /* 10 us are true, and the last ns */
	assert_in_range(seen.state_ns[VCPU_UNKNOWN], 10000, 20000);
	assert_int_equal(host.dropped_kernel, 2);
	gathered_free(g);
}

static void a_guest_is_placed_by_its_stated_offset_and_its_error_is_kept(void **state)
{
	static const char text[] = "a-77 [0] 1500.1: sched_switch: a:77 [120] R ==> b:78 [120]\n"
				   "b-78 [0] 1500.2: sched_switch: b:78 [120] R ==> a:77 [120]\n"
				   "a-77 [0] 1500.3: sched_switch: a:77 [120] R ==> b:78 [120]\n"
				   "a-77 [0] 1500.3: kvm_entry: vcpu 0\n";
	const struct gather_options options = {.guest = true, .offset_ns = 500000000000};
	struct gather *host = gathered("trace_cmd_svm.txt");
	struct gather *guest = gathered_text(text, strlen(text), &options);
	struct pipeline_source source;
	struct seen seen;

	(void)state;
	/* KVM's events are the host's; here the guest's own hypervisor made one. */
	assert_int_equal(guest->taken, 4);
	assert_int_equal(guest->other, 1);
	assert_null(nth(guest, VS_EVENT_KVM_ENTRY, 0));
	seen = replayed(host, guest, 50000, &source);
	assert_string_equal(source.clock_method, "stated");
	/* What was stated, plus a unit of the stamps (0.1 s here), plus what a clock's rate may be
	 * off: 0.2 %. */
	assert_in_range(source.clock_error_ns, 100050000, 100050000 + 100050000 / 500 + 100);
	assert_true(seen.guest_spans > 0);
	gathered_free(host);
	gathered_free(guest);
}

static void printed_reasons_become_numbers(void **state)
{
	struct vs_event e = {0};

	(void)state;
	assert_true(import_reason_parse("EPT_VIOLATION", 13, &e));
	assert_int_equal(e.arg0, VMX(48));
	assert_true(import_reason_parse("apic_access", 11, &e)); /* as in 2010 */
	assert_int_equal(e.arg0, VMX(44));
	assert_true(import_reason_parse("EXIT_INTR", 9, &e));
	assert_int_equal(e.arg0, SVM(0x60));
	assert_true(import_reason_parse("PF_excp", 7, &e)); /* as earlier versions print it */
	assert_int_equal(e.arg0, SVM(0x4e));
	assert_false(import_reason_parse("UNKNOWN (65)", 12, &e));
	assert_int_equal(e.arg0, VMX(import_reason_unknown));
}

/* What `text` makes of a switch of task 7, in the input's order. */
static void states_of(const char *text, uint64_t *states, size_t n, uint64_t corrected)
{
	const struct gather_options options = {0};
	struct gather *g = gathered_text(text, strlen(text), &options);
	size_t found = 0;

	assert_int_equal(g->malformed, 0);
	assert_int_equal(g->states_shifted, corrected);
	for (size_t i = 0; i < g->n_events; i++) {
		if (g->events[i].e.type == VS_EVENT_SCHED_SWITCH && g->events[i].e.pid == 7) {
			assert_in_range(found, 0, n - 1);
			states[found++] = ev_sched_switch_state(&g->events[i].e);
		}
	}
	assert_int_equal(found, n);
	gathered_free(g);
}

/* Linux 4.18 prints S for a task that stays runnable, D for one in an interruptible sleep, and so
 * on: its idle task seems to sleep. */
static void states_that_are_one_bit_too_high_are_corrected(void **state)
{
#define LEAVES(t, s) "x-7 [0] " t ": sched_switch: x:7 [120] " s " ==> swapper/0:0 [120]\n"
#define IDLE(t, s)   "<idle>-0 [0] " t ": sched_switch: swapper/0:0 [120] " s " ==> x:7 [120]\n"
	static const char rest[] = LEAVES("1.1", "D") LEAVES("1.2", "R+") LEAVES("1.3", "T")
		LEAVES("1.4", "I") LEAVES("1.5", "Z");
	static const uint64_t right[] = {VS_TASK_INTERRUPTIBLE, VS_TASK_RUNNING,
					 VS_TASK_UNINTERRUPTIBLE, VS_TASK_PARKED, 0x10};
	static const uint64_t printed[] = {VS_TASK_UNINTERRUPTIBLE, VS_TASK_RUNNING,
					   VS_TASK_STOPPED, VS_TASK_UNINTERRUPTIBLE | VS_TASK_IDLE,
					   0x20};
	uint64_t states[5];
	char text[1024];

	(void)state;
	snprintf(text, sizeof(text), "%s%s", rest, IDLE("1.6", "S"));
	states_of(text, states, 5, 5); /* four of the task, one of the idle task */
	assert_memory_equal(states, right, sizeof(states));
	snprintf(text, sizeof(text), "%s%s", rest, IDLE("1.6", "R"));
	states_of(text, states, 5, 0);
	assert_memory_equal(states, printed, sizeof(states));
#undef LEAVES
#undef IDLE
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_text_is_known_by_its_begin),
		cmocka_unit_test(every_form_of_a_line_says_the_same),
		cmocka_unit_test(what_is_no_line_is_called_so),
		cmocka_unit_test(ftrace_text_is_accounted_for_line_by_line),
		cmocka_unit_test(names_with_brackets_and_both_kinds_of_reasons_are_understood),
		cmocka_unit_test(perf_text_gives_processes_and_skips_call_chains),
		cmocka_unit_test(
			vcpus_come_from_names_then_from_kvm_and_two_of_one_index_are_two_vms),
		cmocka_unit_test(odd_input_is_counted_and_harmless),
		cmocka_unit_test(times_that_run_back_are_put_in_order_and_silence_is_unknown),
		cmocka_unit_test(ticks_become_nanoseconds),
		cmocka_unit_test(a_recording_of_it_has_the_states_that_the_text_tells),
		cmocka_unit_test(times_in_guest_kvm_and_vmm_add_up_to_those_between_the_lines),
		cmocka_unit_test(torn_lines_of_kvm_make_the_time_behind_them_unknown),
		cmocka_unit_test(a_guest_is_placed_by_its_stated_offset_and_its_error_is_kept),
		cmocka_unit_test(printed_reasons_become_numbers),
		cmocka_unit_test(states_that_are_one_bit_too_high_are_corrected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
