/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the host capture on the running kernel, with processes of this test in place of VMs.
 * Needs root and BPF, or perf; skips otherwise. */
#include <inttypes.h>
#include "bpf/backend/capture_open.h"
#include "tests/unit/capture_log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "bpf/backend/capture_shared.h"
#include "bpf/prog/follow.h"

enum { THRESHOLD_MS = 20, VM = 7 };

/* Both builds of the programs go through all tests, and so does perf; each as a capture of one user
 * alone and as one of a shared capture's. */
static const struct variant host_variants[] = {
	{"typed", CAPTURE_BY_BPF, false, false}, {"raw", CAPTURE_BY_BPF, true, false},
	{"shared", CAPTURE_BY_BPF, false, true}, {"perf", CAPTURE_BY_PERF, false, false},
	{"perf", CAPTURE_BY_PERF, false, true},
};

enum { N_HOST_VARIANTS = sizeof(host_variants) / sizeof(host_variants[0]) };

static const struct variant *variant;

/* What the open capture takes part in, if it is shared. */
static struct capture_shared *shared;

static struct capture *open_host_sampling(uint32_t sample_hz)
{
	const struct capture_options options = {
		.kind = CAPTURE_HOST,
		.stacks = true,
		.wait_threshold_ns = THRESHOLD_MS * 1000000,
		.backend = variant->backend,
		.raw_tracepoints = variant->raw_tracepoints,
		.sample_hz = sample_hz,
	};
	char why[256];
	struct capture *c;

	if (variant->shared && capture_shared_open(&options, &shared, why, sizeof(why)))
		fail_msg("capture_shared_open: %s", why);
	if (variant->shared)
		assert_int_equal(capture_shared_join(shared, options.wait_threshold_ns, &c), 0);
	else if (capture_open(&options, &c, why, sizeof(why)))
		fail_msg("capture_open: %s", why);
	assert_string_equal(capture_left_out(c), "");
	return c;
}

static struct capture *open_host(void)
{
	return open_host_sampling(0);
}

static void close_host(struct capture *c)
{
	capture_close(c);
	capture_shared_close(shared);
	shared = NULL;
}

static void follow(struct capture *c, pid_t pid)
{
	assert_int_equal(capture_add_thread(c, pid, pid, VM, true), 0);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A child that computes on `cpu` until it is killed. */
static pid_t start_hog(int cpu, const char *name)
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(cpu);
	for (volatile unsigned long i = 0;; i++)
		;
}

static pid_t start_sleeper(int cpu, long ms)
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(cpu);
	for (;;)
		sleep_ms(ms);
}

/* Nobody is followed or waits any more. */
static void assert_empty(struct capture *c, struct log *log)
{
	struct capture_host_stats stats;

	/* A task is reaped before it has left its CPU for the last time. */
	for (int i = 0; i < 100; i++) {
		drain(c, log);
		capture_host_stats_get(c, &stats);
		if (!stats.threads)
			break;
		sleep_ms(10);
	}
	assert_int_equal(stats.threads, 0);
	assert_int_equal(stats.threads_waiting, 0);
	assert_int_equal(stats.threads_unfollowed, 0);
	for (size_t cpu = 0; cpu < capture_n_cpus(c); cpu++)
		assert_int_equal(c->backend->waiting(c, cpu), 0);
}

static void log_print(const struct log *log, size_t from, size_t to)
{
	for (size_t i = from; i < to && i < log->n; i++) {
		const struct vs_event *e = &log->events[i];

		print_error("%" PRIu64 " cpu %u seq %u type %u pid %d pid2 %d arg0 %#" PRIx64 "\n",
			    e->time, e->cpu, e->seq, e->type, e->pid, e->pid2, e->arg0);
	}
}

/* Prints what may explain that an event or a stack is missing. */
static void log_explain(struct capture *c, const struct log *log, size_t from, size_t to)
{
	struct capture_host_stats stats;

	capture_host_stats_get(c, &stats);
	log_print(log, from, to);
	for (size_t i = 0; i < log->n_stacks; i++) {
		const struct capture_stack *s = &log->stacks[i].s;

		print_error("stack %" PRIu64 " cpu %u role %d tid %d explains %d wait_ns %" PRIu64
			    "\n",
			    s->time, s->cpu, s->role, s->tid, s->explains, s->wait_ns);
	}
	print_error("missed %" PRIu64 ", stacks dropped %" PRIu64 ", waiting %ld\n",
		    capture_missed(c), stats.stacks_dropped, stats.threads_waiting);
}

/* Replays where `pid` waits for a CPU: switches that do not concern it may appear only there, only
 * then. Returns how many do. The log is in time order. */
static size_t check_holders_only(struct capture *c, const struct log *log, pid_t pid)
{
	bool running = false;
	int waiting = -1;
	size_t others = 0;

	for (size_t i = 0; i < log->n; i++) {
		const struct vs_event *e = &log->events[i];

		if (e->type == VS_EVENT_SCHED_SWITCH && e->pid == pid) {
			running = false;
			waiting = e->arg0 ? -1 : e->cpu;
		} else if (e->type == VS_EVENT_SCHED_SWITCH && e->pid2 == pid) {
			running = true;
			waiting = -1;
		} else if (e->type == VS_EVENT_SCHED_SWITCH) {
			if (waiting != e->cpu) {
				print_error("event %zu of the log shows a stranger\n", i);
				log_explain(c, log, i < 10 ? 0 : i - 10, i + 10);
			}
			assert_int_equal(waiting, e->cpu);
			others++;
		} else if (e->type == VS_EVENT_SCHED_WAKEUP && e->pid == pid && !running) {
			waiting = (int)e->arg0;
		} else if (e->type == VS_EVENT_SCHED_MIGRATE && e->pid == pid && waiting >= 0) {
			waiting = (int)e->arg1;
		}
	}
	return others;
}

static int by_time(const void *a, const void *b)
{
	const struct vs_event *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

static void only_followed_threads_and_cpu_holders_appear(void **state)
{
	struct capture *c = open_host();
	struct log *log = log_new();
	int cpus[2];
	pid_t sleeper, stranger;

	(void)state;
	two_cpus(cpus);
	sleeper = start_sleeper(cpus[0], 2);
	stranger = start_sleeper(cpus[1], 1);
	sleep_ms(20);
	follow(c, sleeper);
	sleep_ms(300);
	/* As long as it takes on a busy machine. */
	for (int i = 0; i < 50 && !(find(log, VS_EVENT_SCHED_SWITCH, sleeper) &&
				    find(log, VS_EVENT_SCHED_WAKEUP, sleeper));
	     i++)
		drain_for(c, log, 100);
	end(stranger);
	drain(c, log);
	qsort(log->events, log->n, sizeof(*log->events), by_time);
	assert_non_null(find(log, VS_EVENT_SCHED_SWITCH, sleeper));
	assert_non_null(find(log, VS_EVENT_SCHED_WAKEUP, sleeper));
	check_holders_only(c, log, sleeper);
	for (size_t i = 0; i < log->n; i++) {
		if (log->events[i].type == VS_EVENT_SCHED_WAKEUP)
			assert_int_equal(log->events[i].pid, sleeper);
		assert_true(log->events[i].type != VS_EVENT_SIGNAL);
	}
	assert_int_equal(log->time_inversions, 0);
	end(sleeper);
	assert_empty(c, log);
	log_free(log);
	close_host(c);
}

/* How often `from` had to leave the CPU, runnable. */
static size_t count_switches(const struct log *log, pid_t from)
{
	size_t n = 0;

	for (size_t i = 0; i < log->n; i++) {
		const struct vs_event *e = &log->events[i];

		n += e->type == VS_EVENT_SCHED_SWITCH && e->pid == from && !e->arg0;
	}
	return n;
}

static void a_waiting_thread_shows_who_holds_the_cpu(void **state)
{
	struct capture *c = open_host();
	struct log *log = log_new();
	pid_t followed, hogs[2];
	size_t handed_over = 0, relieved = 0;
	bool both = false;
	int cpus[2];

	(void)state;
	two_cpus(cpus);
	followed = start_hog(cpus[0], "followed");
	hogs[0] = start_hog(cpus[0], "hog-a");
	hogs[1] = start_hog(cpus[0], "hog-b");
	sleep_ms(20);
	follow(c, followed);
	/* As long as it takes on a busy machine. */
	for (int i = 0; i < 50 && !(handed_over && relieved && both); i++) {
		sleep_ms(200);
		drain(c, log);
		qsort(log->events, log->n, sizeof(*log->events), by_time);
		handed_over = count_switches(log, followed);
		/* The hogs relieve each other while it waits. */
		relieved = check_holders_only(c, log, followed);
		both = find_name(log, hogs[0], hogs[0], "hog-a") &&
		       find_name(log, hogs[1], hogs[1], "hog-b");
	}
	assert_true(handed_over > 0);
	assert_true(relieved > 0);
	assert_true(both);
	assert_true(find_name(log, followed, followed, "followed"));
	end(followed);
	end(hogs[0]);
	end(hogs[1]);
	assert_empty(c, log);
	log_free(log);
	close_host(c);
}

static void a_stop_is_seen_with_its_sender(void **state)
{
	struct capture *c = open_host();
	struct log *log = log_new();
	const struct vs_event *sent;
	bool stopped = false;
	int cpus[2];
	pid_t child;

	(void)state;
	two_cpus(cpus);
	child = start_sleeper(cpus[0], 1);
	sleep_ms(20);
	follow(c, child);
	kill(child, SIGSTOP);
	assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
	drain_for(c, log, 50);
	kill(child, SIGCONT);
	drain_for(c, log, 10);
	qsort(log->events, log->n, sizeof(*log->events), by_time);
	sent = find(log, VS_EVENT_SIGNAL, child);
	assert_non_null(sent);
	assert_int_equal(sent->pid2, getpid());
	assert_int_equal(sent->arg0, SIGSTOP);
	assert_int_equal(sent->arg1, child);
	for (size_t i = 0; i < log->n; i++) {
		stopped |= log->events[i].type == VS_EVENT_SCHED_SWITCH &&
			   log->events[i].pid == child && log->events[i].arg0 == VS_TASK_STOPPED;
	}
	assert_true(stopped);
	end(child);
	assert_empty(c, log);
	log_free(log);
	close_host(c);
}

static void *named_thread(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "late-thread");
	sleep_ms(20);
	return (void *)syscall(SYS_gettid);
}

static void new_threads_of_a_followed_process_are_followed(void **state)
{
	struct capture *c = open_host();
	struct log *log = log_new();
	int go[2], reported[2], tid = 0;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(reported), 0);
	child = fork();
	if (!child) {
		pthread_t thread;
		void *result;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(go[0], &tid, 1) != 1)
			_exit(1);
		pthread_create(&thread, NULL, named_thread, NULL);
		pthread_join(thread, &result);
		tid = (int)(intptr_t)result;
		if (write(reported[1], &tid, sizeof(tid)) != sizeof(tid))
			_exit(1);
		for (;;)
			sleep_ms(10);
	}
	follow(c, child);
	assert_int_equal(write(go[1], "", 1), 1);
	assert_int_equal(read(reported[0], &tid, sizeof(tid)), sizeof(tid));
	drain(c, log);
	assert_true(find_name(log, tid, child, "late-thread"));
	assert_non_null(find(log, VS_EVENT_SCHED_WAKEUP_NEW, tid));
	assert_non_null(find(log, VS_EVENT_SCHED_SWITCH, tid));
	/* It may be joined before it says so. */
	for (int i = 0; i < 100 && !find(log, VS_EVENT_TASK_EXIT, tid); i++)
		drain_for(c, log, 10);
	assert_non_null(find(log, VS_EVENT_TASK_EXIT, tid));
	end(child);
	assert_empty(c, log);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(reported[i]);
	}
	log_free(log);
	close_host(c);
}

static void removal_leaves_no_waiter_behind(void **state)
{
	struct capture *c = open_host();
	struct log *log = log_new();
	struct capture_host_stats stats;
	pid_t pids[3];
	long most = 0;
	int cpus[2];

	(void)state;
	two_cpus(cpus);
	for (int i = 0; i < 3; i++)
		pids[i] = start_hog(cpus[0], "hog");
	for (int round = 0; round < 30; round++) {
		for (int i = 0; i < 3; i++)
			follow(c, pids[i]);
		sleep_ms(5 + round % 7);
		capture_host_stats_get(c, &stats);
		most = stats.threads_waiting > most ? stats.threads_waiting : most;
		assert_int_equal(stats.threads, 3);
		for (int i = 0; i < 3; i++)
			assert_int_equal(capture_remove_thread(c, pids[i]), 0);
		assert_int_equal(capture_remove_thread(c, pids[0]), -ENOENT);
		if (round % 3 == 0)
			assert_empty(c, log);
	}
	assert_true(most >= 1);
	assert_empty(c, log);
	/* What was recorded until their slots were cleaned up; then nothing any more. */
	drain(c, log);
	log->n = 0;
	sleep_ms(50);
	drain(c, log);
	assert_int_equal(log->n, 0);
	for (int i = 0; i < 3; i++)
		end(pids[i]);
	assert_int_equal(capture_add_thread(c, pids[0], pids[0], VM, true), -ESRCH);
	assert_empty(c, log);
	log_free(log);
	close_host(c);
}

/* Returns true if the log has no switch to `pid`. */
static bool ran_unseen(const struct log *log, pid_t pid)
{
	for (size_t i = 0; i < log->n; i++) {
		if (log->events[i].type == VS_EVENT_SCHED_SWITCH && log->events[i].pid2 == pid)
			return false;
	}
	return true;
}

static const char magic[] = "a needle in the user stack";

/* Address range of a kernel function; false if the kernel hides it. */
static bool kernel_function(const char *wanted, uint64_t *begin, uint64_t *end_address)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long address;
	char line[512], name[256], type;
	bool found = false;

	*end_address = 0;
	while (f && !*end_address && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx %c %255s", &address, &type, name) != 3 || !address)
			continue;
		if (found && address > *begin)
			*end_address = address;
		if (!strcmp(name, wanted)) {
			*begin = address;
			found = true;
		}
	}
	if (f)
		fclose(f);
	return *end_address;
}

static bool stack_holds(const struct logged_stack *stack, const char *function)
{
	uint64_t begin, end_address;

	if (!kernel_function(function, &begin, &end_address)) {
		print_message("%s is not in /proc/kallsyms: not checked\n", function);
		return true;
	}
	for (size_t i = 0; i < stack->s.n_kernel; i++) {
		if (stack->kernel[i] >= begin && stack->kernel[i] < end_address)
			return true;
	}
	return false;
}

static bool holds_magic(const struct logged_stack *stack)
{
	return memmem(stack->user, stack->s.user.copied_bytes, magic, sizeof(magic));
}

static const struct logged_stack *find_stack(const struct log *log, enum vs_stack_role role,
					     pid_t tid, pid_t explains)
{
	for (size_t i = 0; i < log->n_stacks; i++) {
		const struct capture_stack *s = &log->stacks[i].s;

		if (s->role == role && s->tid == tid && s->explains == explains)
			return &log->stacks[i];
	}
	return NULL;
}

/* A child sleeps in read() until we write, longer than the threshold; both keep a needle on their
 * user stacks. */
static void long_waits_bring_the_stacks_of_waiter_and_waker(void **state)
{
	enum { WAIT_MS = 3 * THRESHOLD_MS };
	volatile char needle[sizeof(magic)];
	struct capture *c = open_host();
	struct log *log = log_new();
	const struct logged_stack *waiter, *waker;
	int to[2], back[2];
	pid_t child;
	char byte;

	(void)state;
	for (size_t i = 0; i < sizeof(magic); i++)
		needle[i] = magic[i];
	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(back), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			if (read(to[0], &byte, 1) != 1 || needle[0] != magic[0])
				_exit(1);
			if (write(back[1], &byte, 1) != 1)
				_exit(1);
		}
	}
	sleep_ms(20);
	follow(c, child);
	/* In the first round, the child goes to sleep while it is followed. The capture sends the
	 * stack of a wait at the switch that ends the wait, and some kernels hide some switches
	 * (docs/backends.md). */
	for (int i = 0; i < 2 || (i < 5 && ran_unseen(log, child)); i++) {
		if (i > 1)
			print_message("the kernel hid a switch: the child waits once more\n");
		sleep_ms(i ? WAIT_MS : 0);
		log->n = log->n_stacks = 0;
		assert_int_equal(write(to[1], "", 1), 1);
		assert_int_equal(read(back[0], &byte, 1), 1);
		sleep_ms(5);
		drain(c, log);
	}
	waiter = find_stack(log, VS_STACK_WAITER, child, child);
	waker = find_stack(log, VS_STACK_WAKER, getpid(), child);
	if (!waiter || !waker)
		log_explain(c, log, 0, log->n);
	assert_non_null(waiter);
	assert_non_null(waker);
	assert_in_range(waiter->s.wait_ns, (WAIT_MS - 1) * 1000000ul, 1000 * 1000000ul);
	assert_in_range(waker->s.wait_ns, (WAIT_MS - 1) * 1000000ul, waiter->s.wait_ns);
	assert_in_range(waiter->s.time + waiter->s.wait_ns, waker->s.time,
			waker->s.time + 1000 * 1000000ul);
	assert_true(stack_holds(waiter, "vfs_read"));
	assert_true(stack_holds(waker, "vfs_write"));
	/* The program and the tracepoint are cut off, the scheduler is not. */
	assert_true(stack_holds(waiter, "__schedule"));
	if (variant->backend == CAPTURE_BY_BPF) {
		assert_false(stack_holds(waiter, "bpf_trace_run4"));
		assert_false(stack_holds(waker, "bpf_trace_run1"));
	}
	assert_true(waiter->s.has_user && waker->s.has_user);
	assert_true(holds_magic(waiter));
	assert_true(holds_magic(waker));
	/* Our own stack, our own address space: the child is a copy of us. */
	assert_in_range(waiter->s.user.regs[7], (uintptr_t)needle - 65536, (uintptr_t)needle);
	assert_int_equal(waiter->s.tgid, child);
	assert_int_equal(waker->s.tgid, getpid());
	for (size_t i = 0; i < log->n_stacks; i++)
		assert_true(log->stacks[i].s.wait_ns >= THRESHOLD_MS * 1000000ul);
	end(child);
	assert_empty(c, log);
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(back[i]);
	}
	if (variant->backend == CAPTURE_BY_BPF) /* perf is blind in some tasks */
		assert_int_equal(capture_missed(c), 0);
	log_free(log);
	close_host(c);
}

/* Sleeps in one of three ways, each of them a few times in a row. */
static void sleep_in_turns(long ms)
{
	enum { IN_A_ROW = 4 };
	const struct timespec time = {.tv_nsec = ms * 1000000};
	struct pollfd none = {.fd = -1};

	for (unsigned int i = 0;; i++) {
		switch (i / IN_A_ROW % 3) {
		case 0:
			nanosleep(&time, NULL);
			break;
		case 1:
			poll(&none, 1, (int)ms);
			break;
		default:
			kill(getpid(), SIGSTOP);
			break;
		}
	}
}

/* The stack of a sleep is not that of the one before, although most of them are the same. */
static void each_stack_shows_where_its_own_sleep_was(void **state)
{
	enum { SLEEP_MS = 2 * THRESHOLD_MS, LAST_MS = 30 * SLEEP_MS, PLACES = 3 };
	static const char *const functions[PLACES] = {"do_nanosleep", "do_sys_poll",
						      "do_signal_stop"};
	uint64_t at[PLACES] = {0}; /* the user instruction, which differs, too */
	size_t n[PLACES] = {0};
	struct capture *c = open_host();
	struct log *log = log_new();
	pid_t child = fork();

	(void)state;
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sleep_in_turns(SLEEP_MS);
	}
	follow(c, child);
	for (int ms = 0; ms < LAST_MS; ms += SLEEP_MS) {
		sleep_ms(SLEEP_MS);
		kill(child, SIGCONT);
		drain(c, log);
	}
	for (size_t i = 0; i < log->n_stacks; i++) {
		const struct logged_stack *s = &log->stacks[i];
		size_t holds = 0, place = 0;

		if (s->s.role != VS_STACK_WAITER || s->s.tid != child || !s->s.has_user)
			continue;
		for (size_t f = 0; f < PLACES; f++) {
			if (stack_holds(s, functions[f]))
				holds++, place = f;
		}
		assert_int_equal(holds, 1);
		n[place]++;
		if (!at[place])
			at[place] = s->s.user.regs[16];
		assert_int_equal(s->s.user.regs[16], at[place]);
	}
	for (size_t f = 0; f < PLACES; f++)
		assert_true(n[f] > 1);
	assert_true(at[0] != at[1] && at[1] != at[2] && at[0] != at[2]);
	end(child);
	log_free(log);
	close_host(c);
}

/* A vCPU that halts, and leaves KVM_RUN only for signals. Each time a number on its stack grows. */
static void vcpu_halt_for_ever(void)
{
	static const unsigned char code[] = {0xf4, 0xeb, 0xfd}; /* hlt, again */
	struct kvm_userspace_memory_region region = {.memory_size = 4096};
	struct kvm_regs regs = {.rflags = 2};
	struct kvm_sregs sregs;
	volatile struct {
		char needle[sizeof(magic)];
		uint32_t number;
	} mark = {.number = 0};
	const int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	const int vm = ioctl(kvm, KVM_CREATE_VM, 0);
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int vcpu;

	for (size_t i = 0; i < sizeof(magic); i++)
		mark.needle[i] = magic[i];
	memcpy(memory, code, sizeof(code));
	region.userspace_addr = (uintptr_t)memory;
	if (vm < 0 || ioctl(vm, KVM_CREATE_IRQCHIP, 0) ||
	    ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region))
		_exit(1);
	vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	if (vcpu < 0 || ioctl(vcpu, KVM_GET_SREGS, &sregs))
		_exit(1);
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	if (ioctl(vcpu, KVM_SET_SREGS, &sregs) || ioctl(vcpu, KVM_SET_REGS, &regs))
		_exit(1);
	while (ioctl(vcpu, KVM_RUN, 0) == -1 && errno == EINTR)
		mark.number++;
	_exit(1);
}

static void signal_ignore(int number)
{
	(void)number;
}

static uint32_t number_on_stack(const struct logged_stack *stack)
{
	const char *mark = memmem(stack->user, stack->s.user.copied_bytes, magic, sizeof(magic));
	uint32_t number;

	assert_non_null(mark);
	memcpy(&number, mark + (sizeof(magic) + 3) / 4 * 4, sizeof(number));
	return number;
}

/* The stacks of a vCPU's halts have its user stack, which is copied once. */
static void a_halted_vcpu_has_the_user_stack_of_an_earlier_halt(void **state)
{
	enum { WAIT_MS = 2 * THRESHOLD_MS, HALTS = 10 };
	uint32_t number = UINT32_MAX;
	struct capture *c;
	struct log *log;
	size_t n = 0;
	pid_t child;

	(void)state;
	if (variant->backend != CAPTURE_BY_BPF) {
		printf("perf copies the stack of each wait\n");
		skip();
	}
	if (access("/dev/kvm", R_OK | W_OK)) {
		printf("no /dev/kvm\n");
		skip();
	}
	c = open_host();
	log = log_new();
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigaction(SIGUSR1, &(struct sigaction){.sa_handler = signal_ignore}, NULL);
		vcpu_halt_for_ever();
	}
	sleep_ms(20 * WAIT_MS); /* it sets up the VM */
	if (waitpid(child, NULL, WNOHANG)) {
		printf("this KVM runs no such VM\n");
		skip();
	}
	follow(c, child);
	for (int i = 0; i < HALTS; i++) {
		kill(child, SIGUSR1);
		sleep_ms(WAIT_MS);
		drain(c, log);
	}
	for (size_t i = 0; i < log->n_stacks; i++) {
		const struct logged_stack *s = &log->stacks[i];

		if (s->s.role != VS_STACK_WAITER || s->s.tid != child)
			continue;
		assert_true(stack_holds(s, "kvm_vcpu_block"));
		assert_true(s->s.has_user);
		if (!n++)
			number = number_on_stack(s);
		assert_int_equal(number_on_stack(s), number);
	}
	assert_in_range(n, 2, HALTS);
	end(child);
	log_free(log);
	close_host(c);
}

/* A child sleeps for 3 ms again and again: a stack for every 10 ms of that, none of them long. */
static void of_short_waits_samples_bring_their_stack(void **state)
{
	enum { SLEEP_MS = 3, LAST_MS = 1000, EVERY_MS = 10, NAMED = 5 }; /* names take long */
	struct capture *c = open_host();
	struct log *log = log_new();
	pid_t child = start_sleeper(0, SLEEP_MS);
	size_t n = 0, cut_short = 0;

	(void)state;
	follow(c, child);
	for (int ms = 0; ms < LAST_MS; ms += 20) {
		sleep_ms(20);
		drain(c, log);
	}
	for (size_t i = 0; i < log->n_stacks; i++) {
		const struct logged_stack *s = &log->stacks[i];

		if (s->s.role != VS_STACK_SHORT)
			continue;
		assert_int_equal(s->s.tid, child);
		assert_in_range(s->s.wait_ns, 1, THRESHOLD_MS * 1000000ul);
		if (s->s.wait_ns < (SLEEP_MS - 1) * 1000000ul)
			cut_short++;
		assert_true(s->s.sampled);
		if (n++ < NAMED)
			assert_true(stack_holds(s, "do_nanosleep"));
	}
	/* On a busy machine it sleeps less, and waits for a CPU, which counts as well; with perf
	 * some are overwritten. */
	assert_in_range(n, LAST_MS / EVERY_MS / 4, 2 * LAST_MS / EVERY_MS);
	/* The timer runs before the child is off its CPU: a child that is preempted in between
	 * (a guest's vCPU, above all) waits for less than its sleep. That is rare. */
	assert_in_range(cut_short, 0, n / 4);
	end(child);
	close_host(c);
	log_free(log);
}

/* Nobody takes stacks for 2 s, in which short waits bring more than there is room for. */
static void short_waits_leave_room_for_long_ones(void **state)
{
	/* Several long waits, because the kernel may hide the switch that ends one. */
	enum { SLEEP_MS = 3, SLEEPS = 700, LONG_MS = 3 * THRESHOLD_MS, LONG = 3 };
	struct capture *c;
	struct log *log = log_new();
	const struct logged_stack *waiter;
	pid_t child;

	(void)state;
	if (variant->backend != CAPTURE_BY_BPF) {
		print_message("perf keeps the newest\n");
		log_free(log);
		return;
	}
	c = open_host();
	child = fork();
	if (!child) {
		volatile char deep[2 * VS_STACK_USER_BYTES]; /* all of what is copied */

		memset((void *)deep, 1, sizeof(deep));
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sleep_ms(100);
		for (int i = 0; i < SLEEPS; i++)
			sleep_ms(SLEEP_MS);
		for (int i = 0; i < LONG; i++)
			sleep_ms(LONG_MS);
		_exit(deep[0] != 1);
	}
	follow(c, child);
	assert_int_equal(waitpid(child, NULL, 0), child);
	drain(c, log);
	waiter = NULL;
	for (size_t i = 0; i < log->n_stacks; i++) {
		const struct capture_stack *s = &log->stacks[i].s;

		/* The first is that of the child's wait to be followed. */
		if (i && s->role == VS_STACK_WAITER && s->wait_ns >= LONG_MS * 1000000ul)
			waiter = &log->stacks[i];
	}
	assert_non_null(waiter);
	close_host(c);
	log_free(log);
}

static void samples_are_those_of_followed_threads(void **state)
{
	enum { HZ = 200 };
	struct capture *c;
	struct log *log = log_new();
	pid_t hog, other;
	size_t n = 0;

	(void)state;
	if (variant->backend != CAPTURE_BY_BPF || variant->shared) {
		print_message("not by perf, nor shared\n");
		log_free(log);
		return;
	}
	c = open_host_sampling(HZ);
	hog = start_hog(0, "hog");
	other = start_hog(0, "other");
	follow(c, hog);
	for (int i = 0; i < 50; i++) {
		sleep_ms(20);
		drain(c, log);
	}
	end(hog);
	end(other);
	for (size_t i = 0; i < log->n_stacks; i++) {
		const struct logged_stack *s = &log->stacks[i];

		if (s->s.role != VS_STACK_SAMPLE)
			continue;
		assert_int_equal(s->s.tid, hog);
		assert_int_equal(s->s.explains, hog);
		assert_int_equal(s->s.wait_ns, 1000000000 / HZ);
		assert_true(s->s.has_user);
		n++;
	}
	/* It has half of a CPU, and on a busy machine less. */
	assert_in_range(n, 5, HZ);
	close_host(c);
	log_free(log);
}

static void nothing_stays_in_the_kernel(void **state)
{
	(void)state;
	if (variant->shared)
		return; /* test_capture_shared has it */
	if (variant->backend == CAPTURE_BY_PERF)
		check_no_perf_event_stays(open_host);
	else
		check_nothing_stays(open_host);
}

/* [typed|raw|shared|perf [PATTERN]]: only one variant (default: both builds of the programs), only
 * the tests of that name. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_followed_threads_and_cpu_holders_appear),
		cmocka_unit_test(a_waiting_thread_shows_who_holds_the_cpu),
		cmocka_unit_test(a_stop_is_seen_with_its_sender),
		cmocka_unit_test(new_threads_of_a_followed_process_are_followed),
		cmocka_unit_test(removal_leaves_no_waiter_behind),
		cmocka_unit_test(long_waits_bring_the_stacks_of_waiter_and_waker),
		cmocka_unit_test(each_stack_shows_where_its_own_sleep_was),
		cmocka_unit_test(a_halted_vcpu_has_the_user_stack_of_an_earlier_halt),
		cmocka_unit_test(of_short_waits_samples_bring_their_stack),
		cmocka_unit_test(short_waits_leave_room_for_long_ones),
		cmocka_unit_test(samples_are_those_of_followed_threads),
		cmocka_unit_test(nothing_stays_in_the_kernel),
	};
	int failed = 0, ran = 0;

	for (size_t i = 0; i < N_HOST_VARIANTS; i++) {
		if (argc > 1 ? strcmp(argv[1], host_variants[i].name)
			     : host_variants[i].backend != CAPTURE_BY_BPF)
			continue;
		variant = &host_variants[i];
		if (!variant_works(variant, CAPTURE_HOST))
			continue;
		cmocka_set_test_filter(argc > 2 ? argv[2] : NULL);
		failed += cmocka_run_group_tests_name(variant->shared ? "shared" : variant->name,
						      tests, NULL, NULL);
		ran++;
	}
	return ran ? failed : 77;
}
