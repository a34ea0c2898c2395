/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the data of flame graphs: one story of which every microsecond is known, in each kind;
 * and simulated recordings with and without losses, in which no time of a thread may be missing or
 * counted twice. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "host-collector/analyze/flame/flame.h"
#include "host-collector/engine/replay.h"
#include "host-collector/export/folded_export.h"
#include "host-collector/simulate/simulate.h"
#include "host-collector/view/folded_text.h"
#include "tests/unit/model_script.h"

enum { HOG = 200, APP = 42, DB = 50 };

#define TASK_STACK(T_US, ROLE, PID, KERNEL, USER)                                                  \
	EVENT(VM, T_US, 0, TASK_STACK, PID, PID, (KERNEL) | (uint64_t)(USER) << 32,                \
	      VS_STACK_##ROLE | (uint64_t)1000000 << 8)

/*
 * app runs from 1 ms on. A hog takes its pCPU from 2.0 to 2.5 ms; a page is awaited from 4.1 to
 * 24.1 ms, until QEMU's other thread wakes it. db is woken at 25 ms and waits until app sleeps,
 * from 26 to 27 ms, and preempts db at 28 ms.
 */
static const struct timeline_event story[] = {
	NAME(HOST, 0, HOG, HOG, 0),
	NAME(HOST, 0, QEMU, QEMU, 0),
	SWITCH(HOST, 0, 0, 0, TID0, 0),
	KVM(0, 0, ENTRY, TID0, 0),
	NAME(VM, 0, APP, APP, 0),
	NAME(VM, 0, DB, DB, 0),
	SWITCH(VM, 1000, 0, 0, APP, 0),
	SWITCH(HOST, 2000, 0, TID0, HOG, 0),
	SWITCH(HOST, 2500, 0, HOG, TID0, VS_TASK_INTERRUPTIBLE),
	TASK_STACK(3000, SAMPLE, APP, 5, 6),
	KVM(4000, 0, EXIT, TID0, 48 | (uint64_t)1 << 32),
	SWITCH(HOST, 4100, 0, TID0, 0, VS_TASK_UNINTERRUPTIBLE),
	STACK(24000, WAITER, TID0, TID0, 1, 20000),
	STACK(24000, WAKER, QEMU, TID0, 2, 20000),
	WAKEUP(HOST, 24100, 1, TID0, QEMU, 0),
	SWITCH(HOST, 24100, 0, 0, TID0, 0),
	KVM(24200, 0, ENTRY, TID0, 0),
	EVENT(VM, 24500, 0, SOFTIRQ_ENTRY, APP, 0, 1, 0),
	EVENT(VM, 24600, 0, SOFTIRQ_EXIT, APP, 0, 1, 0),
	WAKEUP(VM, 25000, 0, DB, APP, 0),
	TASK_STACK(26000, WAITER, APP, 7, 6),
	SWITCH(VM, 26000, 0, APP, DB, VS_TASK_INTERRUPTIBLE),
	WAKEUP(VM, 27000, 0, APP, DB, 0),
	SWITCH(VM, 28000, 0, DB, APP, 0),
	SWITCH(VM, 30000, 0, APP, DB, VS_TASK_UNINTERRUPTIBLE),
	SWITCH(VM, 31000, 0, DB, 0, VS_TASK_DEAD),
	SWITCH(HOST, 32000, 0, TID0, 0, VS_TASK_STOPPED),
	SWITCH(HOST, 32500, 0, 0, TID0, 0),
};

static void guest_stack(struct model *m, uint32_t id, int32_t pid, const char *leaf,
			const char *root, bool kernel)
{
	static struct message_stack s;

	memset(&s, 0, sizeof(s));
	s.id = id;
	s.pid = pid;
	s.n_frames = 2;
	snprintf(s.frames[0].symbol, VS_TEXT_MAX, "%s", leaf);
	snprintf(s.frames[1].symbol, VS_TEXT_MAX, "%s", root);
	s.frames[0].kernel = s.frames[1].kernel = kernel;
	assert_int_equal(model_guest_stack(m, VM, &s), 0);
}

/* Kernel frames, then two of the process. */
static void host_stack(struct model *m, uint32_t id, int32_t pid, const char *leaf,
		       const char *caller)
{
	const char *const names[] = {leaf, caller, "ioctl", "main"};
	static struct message_stack s;

	memset(&s, 0, sizeof(s));
	s.id = id;
	s.pid = pid;
	s.n_frames = COUNT(names);
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(s.frames[i].symbol, VS_TEXT_MAX, "%s", names[i]);
		s.frames[i].kernel = i < 2;
	}
	assert_int_equal(model_stack(m, &s), 0);
}

/* late: an agent tells most stacks long after the events that name them. */
static char *reported_with(const struct flame_options *o, struct flame_coverage *coverage,
			   bool late)
{
	struct timeline_event events[COUNT(story)];
	struct model *m = model_new();
	struct flame *f;
	char *text = NULL;
	size_t len;
	FILE *to;

	memcpy(events, story, sizeof(story));
	events[0].event.arg0 = script_comm("hog");
	events[1].event.arg0 = script_comm("qemu");
	events[4].event.arg0 = script_comm("app");
	events[5].event.arg0 = script_comm("db");
	script_vm(m, 1, "kvm");
	f = flame_new(m, o);
	assert_non_null(f);
	host_stack(m, 1, TID0, "io_schedule", "do_swap_page");
	host_stack(m, 2, QEMU, "try_to_wake_up", "end_swap_bio_read");
	guest_stack(m, 7, 0, "futex_wait", "do_syscall_64", true);
	for (int when = 0; when < 2; when++) {
		if (when == late) {
			guest_stack(m, 5, 0, "tcp_sendmsg", "do_syscall_64", true);
			guest_stack(m, 6, APP, "send", "main", false);
		}
		if (when == 0)
			script_run(m, events, COUNT(events));
	}
	model_finish(m);
	assert_int_equal(flame_finish(f), 0);
	if (coverage)
		flame_coverage_get(f, coverage);
	to = open_memstream(&text, &len);
	assert_int_equal(folded_text_write(flame_stacks(f), to), 0);
	fclose(to);
	model_free(m);
	flame_free(f);
	return text;
}

static char *reported(const struct flame_options *o, struct flame_coverage *coverage)
{
	return reported_with(o, coverage, false);
}

#define OPTIONS(...) (&(const struct flame_options){.vcpu = -1, __VA_ARGS__})

static void tells(const struct flame_options *o, const char *expected)
{
	for (int late = 0; late < 2; late++) {
		char *text = reported_with(o, NULL, late);

		assert_string_equal(text, expected);
		free(text);
	}
}

static void a_tasks_wall_time_goes_through_the_boundary(void **unused)
{
	struct flame_coverage c;
	char *text = reported(
		OPTIONS(.kind = FLAME_WALL, .subject = FLAME_OF_TASKS, .threads = true), &c);

	(void)unused;
	assert_string_equal(
		text,
		"app-42;[not sampled];running 2000\n"
		"app-42;[task blocked] 2500\n"
		"app-42;[task runnable: CPU held by db] 1000\n"
		"app-42;[unknown: not seen yet] 1000\n"
		"app-42;main;send;do_syscall_64_[k];futex_wait_[k];[task sleeping] 1000\n"
		"app-42;main;send;do_syscall_64_[k];tcp_sendmsg_[k];[softirq TIMER];running 100\n"
		"app-42;main;send;do_syscall_64_[k];tcp_sendmsg_[k];[vCPU blocked: page_fault];"
		"main;ioctl;do_swap_page_[k];io_schedule_[k];--;try_to_wake_up_[w];"
		"end_swap_bio_read_[w];ioctl_[w];main_[w];qemu_[w] 20000\n"
		"app-42;main;send;do_syscall_64_[k];tcp_sendmsg_[k];"
		"[vCPU runnable: pCPU held by hog] 500\n"
		"app-42;main;send;do_syscall_64_[k];tcp_sendmsg_[k];running 4200\n"
		"app-42;main;send;do_syscall_64_[k];tcp_sendmsg_[k];running;"
		"[exit EPT_VIOLATION in KVM] 200\n"
		"db-50;[not sampled];running 3000\n"
		"db-50;[task preempted: CPU held by app] 2000\n"
		"db-50;[task runnable: CPU held by app] 1000\n"
		"db-50;[task sleeping] 25000\n");
	free(text);
	assert_int_equal(c.threads, 2);
	assert_int_equal(c.wall_ns, c.counted_ns);
	assert_int_equal(c.off, 0);
}

static void states_can_be_left_out(void **unused)
{
	(void)unused;
	tells(OPTIONS(.kind = FLAME_WALL, .subject = FLAME_OF_TASKS, .task = "db",
		      .states = 1u << FLAME_TASK_RUNNABLE | 1u << FLAME_TASK_PREEMPTED),
	      "db;[task preempted: CPU held by app] 2000\n"
	      "db;[task runnable: CPU held by app] 1000\n");
}

static void a_vcpus_wall_time_shows_its_guest(void **unused)
{
	(void)unused;
	tells(OPTIONS(.kind = FLAME_WALL, .subject = FLAME_OF_VCPUS, .threads = true),
	      "CPU 0/KVM-110;[guest idle];[vCPU stopped: by a signal] 500\n"
	      "CPU 0/KVM-110;[guest idle];running 1000\n"
	      "CPU 0/KVM-110;app;main;send;do_syscall_64_[k];tcp_sendmsg_[k];[softirq TIMER];"
	      "running 100\n"
	      "CPU 0/KVM-110;app;main;send;do_syscall_64_[k];tcp_sendmsg_[k];"
	      "[vCPU blocked: page_fault];main;ioctl;do_swap_page_[k];io_schedule_[k];--;"
	      "try_to_wake_up_[w];end_swap_bio_read_[w];ioctl_[w];main_[w];qemu_[w] 20000\n"
	      "CPU 0/KVM-110;app;main;send;do_syscall_64_[k];tcp_sendmsg_[k];"
	      "[vCPU runnable: pCPU held by hog] 500\n"
	      "CPU 0/KVM-110;app;main;send;do_syscall_64_[k];tcp_sendmsg_[k];running 4200\n"
	      "CPU 0/KVM-110;app;main;send;do_syscall_64_[k];tcp_sendmsg_[k];running;"
	      "[exit EPT_VIOLATION in KVM] 200\n"
	      "CPU 0/KVM-110;app;running 2000\n"
	      "CPU 0/KVM-110;db;running 3000\n"
	      "CPU 0/KVM-110;running 1000\n");
}

static void each_kind_has_its_order(void **unused)
{
	(void)unused;
	tells(OPTIONS(.kind = FLAME_ONCPU, .subject = FLAME_OF_TASKS),
	      "app;[not sampled] 2000\n"
	      "app;main;send;do_syscall_64_[k];tcp_sendmsg_[k] 4400\n"
	      "app;main;send;do_syscall_64_[k];tcp_sendmsg_[k];[softirq TIMER] 100\n"
	      "db;[not sampled] 3000\n");
	tells(OPTIONS(.kind = FLAME_ONCPU, .subject = FLAME_OF_VCPUS),
	      "CPU 0/KVM;running 11300\n"
	      "CPU 0/KVM;running;[exit EPT_VIOLATION in KVM] 200\n");
	tells(OPTIONS(.kind = FLAME_OFFCPU, .subject = FLAME_OF_TASKS),
	      "app;[task blocked] 2500\n"
	      "app;[task runnable: CPU held by db] 1000\n"
	      "app;main;send;do_syscall_64_[k];futex_wait_[k] 1000\n"
	      "db;[task preempted: CPU held by app] 2000\n"
	      "db;[task runnable: CPU held by app] 1000\n"
	      "db;[task sleeping] 25000\n");
	tells(OPTIONS(.kind = FLAME_OFFCPU, .subject = FLAME_OF_VCPUS),
	      "CPU 0/KVM;[vCPU runnable: pCPU held by hog] 500\n"
	      "CPU 0/KVM;[vCPU stopped: by a signal] 500\n"
	      "CPU 0/KVM;main;ioctl;do_swap_page_[k];io_schedule_[k] 20000\n");
	tells(OPTIONS(.kind = FLAME_WAKEUP, .subject = FLAME_OF_TASKS), "app;db 25000\n"
									"db;app 1000\n");
	tells(OPTIONS(.kind = FLAME_WAKEUP, .subject = FLAME_OF_VCPUS),
	      "[an interrupt, or unknown];CPU 0/KVM 500\n"
	      "qemu;end_swap_bio_read_[k];try_to_wake_up_[k];CPU 0/KVM 20000\n");
	tells(OPTIONS(.kind = FLAME_OFFWAKE, .subject = FLAME_OF_TASKS),
	      "app;[task blocked] 2500\n"
	      "app;[task runnable: CPU held by db] 1000\n"
	      "app;main;send;do_syscall_64_[k];futex_wait_[k];--;db 1000\n"
	      "db;[task preempted: CPU held by app] 2000\n"
	      "db;[task runnable: CPU held by app] 1000\n"
	      "db;[task sleeping];--;app 25000\n");
	tells(OPTIONS(.kind = FLAME_OFFWAKE, .subject = FLAME_OF_VCPUS),
	      "CPU 0/KVM;[vCPU runnable: pCPU held by hog] 500\n"
	      "CPU 0/KVM;[vCPU stopped: by a signal] 500\n"
	      "CPU 0/KVM;main;ioctl;do_swap_page_[k];io_schedule_[k];--;try_to_wake_up_[w];"
	      "end_swap_bio_read_[w];ioctl_[w];main_[w];qemu_[w] 20000\n");
	tells(OPTIONS(.kind = FLAME_EXITS, .subject = FLAME_OF_VCPUS),
	      "CPU 0/KVM;EPT_VIOLATION;[in KVM] 200\n"
	      "CPU 0/KVM;EPT_VIOLATION;[vCPU blocked: page_fault];main;ioctl;do_swap_page_[k];"
	      "io_schedule_[k];--;try_to_wake_up_[w];end_swap_bio_read_[w];ioctl_[w];main_[w];"
	      "qemu_[w] 20000\n");
}

/* Samples of the host's threads stand for what lies between them; the VMM's other threads have
 * them, too. */
static void samples_of_the_host_are_its_time_on_the_cpu(void **unused)
{
	const struct flame_options o = {.kind = FLAME_ONCPU, .subject = FLAME_OF_VCPUS, .vcpu = -1};
	const struct timeline_event events[] = {
		NAME(HOST, 0, QEMU, QEMU, script_comm("qemu")),
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		STACK(1000, SAMPLE, TID0, TID0, 1, 1000),
		STACK(2000, SAMPLE, TID0, TID0, 1, 1000),
		STACK(2000, SAMPLE, QEMU, QEMU, 2, 1000),
		STACK(2500, SAMPLE, 99, 99, 2, 1000), /* nobody's */
		SWITCH(HOST, 3000, 0, TID0, 0, 1),
	};
	struct model *m = model_new();
	struct flame *f = flame_new(m, &o);
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	(void)unused;
	script_vm(m, 1, "kvm");
	host_stack(m, 1, TID0, "vmx_vcpu_run", "vcpu_run");
	host_stack(m, 2, QEMU, "copy_to_iter", "vfs_read");
	script_run(m, events, COUNT(events));
	model_finish(m);
	assert_int_equal(flame_finish(f), 0);
	assert_int_equal(folded_text_write(flame_stacks(f), to), 0);
	fclose(to);
	assert_string_equal(text, "CPU 0/KVM;main;ioctl;vcpu_run_[k];vmx_vcpu_run_[k] 2000\n"
				  "qemu;main;ioctl;vfs_read_[k];copy_to_iter_[k] 1000\n");
	free(text);
	model_free(m);
	flame_free(f);
}

/* Looks are no samples of all time: they are shown only if they are asked for, and weigh the time
 * since the tick before. */
static void looks_are_shown_by_themselves(void **unused)
{
	static const struct {
		enum flame_kind kind;
		enum flame_subject subject;
		const char *shows;
	} cases[] = {
		{FLAME_LOOKS, FLAME_OF_VCPUS,
		 "CPU 0/KVM;main;ioctl;vcpu_run_[k];vmx_vcpu_run_[k] 40000\n"
		 "qemu;main;ioctl;vfs_read_[k];copy_to_iter_[k] 20000\n"},
		{FLAME_LOOKS, FLAME_OF_TASKS,
		 "app;main;send;do_syscall_64_[k];tcp_sendmsg_[k] 1000\n"},
		{FLAME_ONCPU, FLAME_OF_VCPUS, "CPU 0/KVM;running 3000\n"},
		{FLAME_ONCPU, FLAME_OF_TASKS, "app;[not sampled] 2000\n"},
	};
	const struct timeline_event events[] = {
		NAME(HOST, 0, QEMU, QEMU, script_comm("qemu")),
		NAME(VM, 0, APP, APP, script_comm("app")),
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		SWITCH(VM, 1000, 0, 0, APP, 0),
		STACK(1000, LOOK, TID0, 0, 1, 20000),
		STACK(2000, LOOK, TID0, 0, 1, 20000),
		STACK(2000, LOOK, QEMU, 0, 2, 20000),
		TASK_STACK(2000, LOOK, APP, 5, 6),
		SWITCH(VM, 3000, 0, APP, 0, 1),
		SWITCH(HOST, 3000, 0, TID0, 0, 1),
	};

	(void)unused;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct flame_options o = {
			.kind = cases[i].kind, .subject = cases[i].subject, .vcpu = -1};
		struct model *m = model_new();
		struct flame *f = flame_new(m, &o);
		char *text = NULL;
		size_t len;
		FILE *to = open_memstream(&text, &len);

		script_vm(m, 1, "kvm");
		host_stack(m, 1, TID0, "vmx_vcpu_run", "vcpu_run");
		host_stack(m, 2, QEMU, "copy_to_iter", "vfs_read");
		guest_stack(m, 5, 0, "tcp_sendmsg", "do_syscall_64", true);
		guest_stack(m, 6, APP, "send", "main", false);
		script_run(m, events, COUNT(events));
		model_finish(m);
		assert_int_equal(flame_finish(f), 0);
		assert_int_equal(folded_text_write(flame_stacks(f), to), 0);
		fclose(to);
		if (!strstr(text, cases[i].shows) ||
		    (cases[i].kind == FLAME_LOOKS && strcmp(text, cases[i].shows)))
			fail_msg("%zu: %s", i, text);
		free(text);
		model_free(m);
		flame_free(f);
	}
}

/* Neither side's long silence loses what the other side tells meanwhile. */
static void long_stays_lose_nothing(void **unused)
{
	enum { TURNS = 100000 };
	static const enum flame_subject subjects[] = {FLAME_OF_TASKS, FLAME_OF_VCPUS};

	(void)unused;
	for (size_t k = 0; k < COUNT(subjects); k++) {
		const struct flame_options o = {
			.kind = FLAME_WALL, .subject = subjects[k], .vcpu = -1, .threads = true};
		const struct timeline_event first[] = {
			SWITCH(HOST, 0, 0, 0, TID0, 0),
			SWITCH(VM, 0, 0, 0, APP, 0),
		};
		struct model *m = model_new();
		struct flame *f = flame_new(m, &o);
		struct flame_coverage c;

		script_vm(m, 1, "tcg");
		script_run(m, first, COUNT(first));
		/* The guest is interrupted again and again; of its vCPU nothing is heard... */
		for (int i = 1; i <= TURNS; i++) {
			const struct timeline_event turn[] = {
				IRQ(10 * i, 0, IRQ_ENTRY, APP, 5),
				IRQ(10 * i + 1, 0, IRQ_EXIT, APP, 5),
			};

			script_run(m, turn, COUNT(turn));
		}
		/* ... and then the other way round. */
		for (int i = TURNS + 1; i <= 2 * TURNS; i++) {
			const struct timeline_event turn[] = {
				SWITCH(HOST, 10 * i, 0, TID0, HOG, 0),
				SWITCH(HOST, 10 * i + 1, 0, HOG, TID0, 0),
			};

			script_run(m, turn, COUNT(turn));
		}
		model_finish(m);
		assert_int_equal(flame_finish(f), 0);
		flame_coverage_get(f, &c);
		assert_int_equal(c.threads, 1);
		assert_int_equal(c.counted_ns, c.wall_ns);
		assert_int_equal(c.wall_ns, (20ll * TURNS + 1) * 1000);
		assert_in_range(c.unknown_ns, 0, 1000000);
		model_free(m);
		flame_free(f);
	}
}

/* The guest's tasks if there is a guest, else the vCPUs. */
static void the_export_is_the_wall_graph(void **unused)
{
	static const struct {
		bool guest;
		const char *expected;
	} cases[] = {
		{true, "pid-42;running 2000\n"},
		{false, "CPU 0/KVM-110;running 2000\n"},
	};

	(void)unused;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct timeline_event host[] = {SWITCH(HOST, 0, 0, 0, TID0, 0)};
		const struct timeline_event guest[] = {SWITCH(VM, 0, 0, 0, APP, 0)};
		const struct timeline_event last[] = {SWITCH(HOST, 2000, 0, TID0, 0, 1)};
		struct model *m = model_new();
		struct folded_export *x;
		char *text = NULL;
		size_t len;
		FILE *to = open_memstream(&text, &len);

		x = folded_export_new(m, &NARROW_NOTHING, to);
		assert_non_null(x);
		script_vm(m, 1, "kvm");
		script_run(m, host, COUNT(host));
		if (cases[i].guest)
			script_run(m, guest, COUNT(guest));
		script_run(m, last, COUNT(last));
		model_finish(m);
		assert_int_equal(folded_export_finish(x), 0);
		fclose(to);
		assert_string_equal(text, cases[i].expected);
		free(text);
		model_free(m);
		folded_export_free(x);
	}
}

static void words_are_parsed(void **unused)
{
	enum flame_kind kind;
	uint32_t states;
	char why[256];

	(void)unused;
	assert_int_equal(flame_kind_parse("offwake", &kind), 0);
	assert_int_equal(kind, FLAME_OFFWAKE);
	assert_int_equal(flame_kind_parse("offwak", &kind), -EINVAL);
	assert_int_equal(
		flame_states_parse(FLAME_OF_TASKS, "running,blocked", &states, why, sizeof(why)),
		0);
	assert_int_equal(states, 1u << FLAME_TASK_RUNNING | 1u << FLAME_TASK_BLOCKED);
	assert_int_equal(flame_states_parse(FLAME_OF_TASKS, "-sleeping", &states, why, sizeof(why)),
			 0);
	assert_int_equal(states, ~(1u << FLAME_TASK_SLEEPING));
	assert_int_equal(flame_states_parse(FLAME_OF_VCPUS, "running", &states, why, sizeof(why)),
			 0);
	assert_int_equal(states, 1u << VCPU_GUEST | 1u << VCPU_KVM | 1u << VCPU_VMM);
	assert_int_equal(flame_states_parse(FLAME_OF_VCPUS, "sleeping", &states, why, sizeof(why)),
			 -EINVAL);
	assert_non_null(strstr(why, "sleeping"));
	assert_non_null(strstr(why, "halted"));
}

/* ---- simulated recordings ---- */

static const char *scratch(void)
{
	static char path[] = "/tmp/test_flame.XXXXXX";
	static bool made;

	if (!made)
		close(mkstemp(path));
	made = true;
	return path;
}

static void covers(const struct scenario *scenario, enum flame_subject subject)
{
	const struct flame_options o = {
		.kind = FLAME_WALL, .subject = subject, .vcpu = -1, .threads = true};
	struct pipeline_options pipeline_options = {.model = model_new()};
	struct flame *f = flame_new(pipeline_options.model, &o);
	struct pipeline *p = pipeline_new(&pipeline_options);
	struct recording_info info;
	struct flame_coverage c;
	struct host_ns begin, end;
	char why[512] = "";
	bool whole;

	if (replay_run(p, scratch(), &info, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(flame_finish(f), 0);
	flame_coverage_get(f, &c);
	if (c.off || !c.threads || c.wall_ns != (int64_t)folded_total_ns(flame_stacks(f)))
		fail_msg("%s: %zu of %zu threads are off, %s %.3f %%; %lld of %lld ns in stacks",
			 scenario->name, c.off, c.threads, c.worst, c.worst_percent,
			 (long long)folded_total_ns(flame_stacks(f)), (long long)c.wall_ns);
	/* And against a clock that this analysis has no part in; but no guest task is seen before
	 * its agent comes, after it goes, or where its clock is not believed. */
	assert_true(pipeline_span(p, &begin, &end));
	whole = subject == FLAME_OF_VCPUS ||
		(scenario->kind != SCENARIO_LIFE && scenario->kind != SCENARIO_LIE);
	for (size_t i = 0; whole && i < folded_count(flame_stacks(f));) {
		const char *root = folded_at(flame_stacks(f), i)->frames[0]->name;
		uint64_t ns = 0;

		for (; i < folded_count(flame_stacks(f)) &&
		       !strcmp(folded_at(flame_stacks(f), i)->frames[0]->name, root);
		     i++)
			ns += folded_at(flame_stacks(f), i)->weight_ns;
		if (llabs((int64_t)ns - (end.ns - begin.ns)) > (end.ns - begin.ns) / 200)
			fail_msg("%s: %s: %llu ns of %lld", scenario->name, root,
				 (unsigned long long)ns, (long long)(end.ns - begin.ns));
	}
	pipeline_free(p);
	model_free(pipeline_options.model);
	flame_free(f);
}

/* Of every line: frames that are not empty, then a whole number, and no frame that would be read as
 * a second one. */
static void is_folded_text(const char *scenario, char *text)
{
	for (char *line, *rest = text; (line = strsep(&rest, "\n")) && *line;) {
		char *blank = strrchr(line, ' '), *before;

		if (!blank || blank == line || !blank[1] ||
		    strspn(blank + 1, "0123456789") != strlen(blank + 1))
			fail_msg("%s: no weight: %s", scenario, line);
		*blank = 0;
		before = strrchr(line, ' ');
		if (*line == ';' || blank[-1] == ';' || strstr(line, ";;") ||
		    (before && before[1] &&
		     strspn(before + 1, "0123456789.") == strlen(before + 1)))
			fail_msg("%s: no stack: %s", scenario, line);
	}
}

static void kind_is_folded_text(const char *scenario, enum flame_kind kind,
				enum flame_subject subject)
{
	const struct flame_options o = {.kind = kind, .subject = subject, .vcpu = -1};
	struct pipeline_options pipeline_options = {.model = model_new()};
	struct flame *f = flame_new(pipeline_options.model, &o);
	struct pipeline *p = pipeline_new(&pipeline_options);
	struct recording_info info;
	char why[512], *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	assert_int_equal(replay_run(p, scratch(), &info, why, sizeof(why)), 0);
	assert_int_equal(flame_finish(f), 0);
	assert_int_equal(folded_text_write(flame_stacks(f), to), 0);
	fclose(to);
	/* Nobody may have woken anybody, some simulated hosts capture nothing of KVM, and none
	 * looks. */
	if (!len && kind != FLAME_WAKEUP && kind != FLAME_EXITS && kind != FLAME_LOOKS)
		fail_msg("%s: kind %d has no stacks", scenario, kind);
	is_folded_text(scenario, text);
	free(text);
	pipeline_free(p);
	model_free(pipeline_options.model);
	flame_free(f);
}

static void every_kind_is_folded_text(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < scenarios_count; i += 5) {
		const struct simulate_options o = {.scenario = &scenarios[i],
						   .seed = 9,
						   .recording = scratch(),
						   .truth = "/dev/null"};
		char why[512];

		assert_int_equal(simulate_run(&o, why, sizeof(why)), 0);
		for (int kind = 0; kind < FLAME_KIND_COUNT; kind++) {
			kind_is_folded_text(scenarios[i].name, (enum flame_kind)kind,
					    FLAME_OF_VCPUS);
			if (kind != FLAME_EXITS)
				kind_is_folded_text(scenarios[i].name, (enum flame_kind)kind,
						    FLAME_OF_TASKS);
		}
	}
}

static void no_time_is_missing_or_double(void **unused)
{
	static const double losses[] = {0, 0.01};

	(void)unused;
	for (size_t i = 0; i < scenarios_count; i++) {
		/* The many variants of a kind differ little here. */
		if (scenarios[i].kind >= SCENARIO_DOUBLE && i % 4)
			continue;
		for (size_t k = 0; k < COUNT(losses); k++) {
			const struct simulate_options o = {.scenario = &scenarios[i],
							   .seed = 5,
							   .loss = losses[k],
							   .recording = scratch(),
							   .truth = "/dev/null"};
			char why[512];

			assert_int_equal(simulate_run(&o, why, sizeof(why)), 0);
			covers(&scenarios[i], FLAME_OF_TASKS);
			covers(&scenarios[i], FLAME_OF_VCPUS);
		}
	}
	unlink(scratch());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tasks_wall_time_goes_through_the_boundary),
		cmocka_unit_test(states_can_be_left_out),
		cmocka_unit_test(a_vcpus_wall_time_shows_its_guest),
		cmocka_unit_test(each_kind_has_its_order),
		cmocka_unit_test(samples_of_the_host_are_its_time_on_the_cpu),
		cmocka_unit_test(looks_are_shown_by_themselves),
		cmocka_unit_test(long_stays_lose_nothing),
		cmocka_unit_test(the_export_is_the_wall_graph),
		cmocka_unit_test(words_are_parsed),
		cmocka_unit_test(every_kind_is_folded_text),
		cmocka_unit_test(no_time_is_missing_or_double),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
