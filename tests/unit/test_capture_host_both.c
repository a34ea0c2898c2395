/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs the host capture through both backends at once, with processes of this test in place of
 * VMs: they must record the same events. Needs root, BPF and perf, and /dev/kvm for the events of
 * KVM; skips the tests that cannot run. */
#include "bpf/backend/capture_open.h"
#include "tests/unit/capture_compare.h"

#include "bpf/capture/tracepoint_format.h"
#include "tests/unit/kvm_guest.h"

enum {
	RING_BYTES = 16 << 20,
	VM = 5,
	THRESHOLD_MS = 20,
	CHILDREN = 3,
	ROUNDS = 200,
	LONG_SLEEPS = 6,
	EXITS = 200,
	PATIENCE_MS = 10000,
	EXCUSED_MAX = 4,          /* records */
	PROGRAM_BYTES_MAX = 4096, /* of user stack that are compared */
};

static struct capture *open_host(enum backend_choice backend)
{
	const struct capture_options options = {
		.kind = CAPTURE_HOST,
		.backend = backend,
		.ring_bytes = RING_BYTES,
		.wait_threshold_ns = THRESHOLD_MS * 1000000,
		.stacks = true,
		.tracepoints = tracepoint_format_read,
	};
	char why[256];
	struct capture *c;

	if (capture_open(&options, &c, why, sizeof(why)))
		fail_msg("capture_open: %s", why);
	assert_string_equal(capture_notice(c), "");
	return c;
}

static void *thread_work(void *unused)
{
	prctl(PR_SET_NAME, "both-thread");
	for (int i = 0; i < 20; i++)
		usleep(200);
	return unused;
}

static void on_signal(int number)
{
	(void)number;
}

/* Short and long sleeps, migrations, renames, signals, a thread. Begins when it is told to. */
static void child_work(int seed, int go)
{
	char name[16], byte;
	pthread_t thread;
	int cpus[2];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGUSR1, on_signal);
	two_cpus(cpus);
	if (read(go, &byte, 1) != 1)
		_exit(1);
	for (int i = 0; i < ROUNDS; i++) {
		usleep((useconds_t)(50 + 37 * ((i + seed) % 11)));
		if (i % 20)
			continue;
		snprintf(name, sizeof(name), "both-%d-%d", seed, i);
		prctl(PR_SET_NAME, name);
		pin(cpus[i / 20 & 1]);
		kill(getpid(), SIGUSR1);
	}
	for (int i = 0; i < LONG_SLEEPS; i++)
		sleep_ms(2 * THRESHOLD_MS);
	pthread_create(&thread, NULL, thread_work, NULL);
	pthread_join(thread, NULL);
	_exit(0);
}

/* Waits until a child sleeps until it is told to begin: nothing of it lies around that moment. */
static void child_await(pid_t child)
{
	char path[64], line[256] = "";

	snprintf(path, sizeof(path), "/proc/%d/stat", child);
	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		FILE *f = fopen(path, "r");
		const char *name_end;

		assert_non_null(f);
		assert_non_null(fgets(line, sizeof(line), f));
		fclose(f);
		name_end = strrchr(line, ')');
		if (name_end && name_end[2] == 'S')
			return;
		sleep_ms(1);
	}
	fail_msg("a child has not got to its pipe in %d s: %s", PATIENCE_MS / 1000, line);
}

/* Has it left its CPU for the last time? */
static bool has_left(const struct log *log, pid_t child)
{
	for (size_t i = log->n; i-- > 0;) {
		const struct vs_event *e = &log->events[i];

		if (e->type == VS_EVENT_SCHED_SWITCH && e->pid == child &&
		    e->arg0 & (VS_TASK_EXIT | VS_TASK_DEAD))
			return true;
	}
	return false;
}

/* Keeps the events of our tasks but for names, which are told at other moments, and why strangers
 * left: of a task in which perf is blind it is not known. */
static size_t log_reduce(struct log *log, const bool *ours)
{
	size_t n = 0;

	qsort(log->events, log->n, sizeof(*log->events), by_kind);
	for (size_t i = 0; i < log->n; i++) {
		struct vs_event e = log->events[i];
		const bool second = e.type == VS_EVENT_SCHED_SWITCH && ours[e.pid2];

		if (second && !ours[e.pid]) {
			e.arg0 = 0;
			e.arg1 &= ~(uint64_t)UINT32_MAX;
		}
		if (e.type != VS_EVENT_TASK_NAME && (ours[e.pid] || second))
			log->events[n++] = e;
	}
	log->n = n;
	return n;
}

static bool is_reported(const struct log *log, const struct vs_event *name)
{
	for (size_t i = 0; i < log->n; i++) {
		const struct vs_event *e = &log->events[i];

		if (e->type == VS_EVENT_TASK_NAME && e->pid == name->pid && e->pid2 == name->pid2 &&
		    e->arg0 == name->arg0 && e->arg1 == name->arg1)
			return true;
	}
	return false;
}

/* How many names of our tasks `a` tells, and how many of these `b` does not. */
static size_t names_compare(const struct log *a, const struct log *b, const bool *ours,
			    size_t *missing)
{
	size_t n = 0;

	*missing = 0;
	for (size_t i = 0; i < a->n; i++) {
		const struct vs_event *e = &a->events[i];

		if (e->type != VS_EVENT_TASK_NAME || !ours[e->pid])
			continue;
		n++;
		if (is_reported(b, e))
			continue;
		(*missing)++;
		print_message("task %d of %d: the name %.8s%.8s is told once only\n", e->pid,
			      e->pid2, (const char *)&e->arg0, (const char *)&e->arg1);
	}
	return n;
}

/* Switches between others, on a CPU for which one of ours waits. */
static size_t holders_count(const struct log *log, const bool *ours)
{
	size_t n = 0;

	for (size_t i = 0; i < log->n; i++) {
		const struct vs_event *e = &log->events[i];

		n += e->type == VS_EVENT_SCHED_SWITCH && !ours[e->pid] && !ours[e->pid2];
	}
	return n;
}

/* The one of the same sleep: the next is longer than this away. */
static const struct logged_stack *stack_like(const struct log *log, const struct capture_stack *s)
{
	const struct logged_stack *nearest = NULL;
	uint64_t least = 2 * THRESHOLD_MS * 1000000ul;

	for (size_t i = 0; i < log->n_stacks; i++) {
		const struct capture_stack *other = &log->stacks[i].s;
		const uint64_t apart =
			other->time > s->time ? other->time - s->time : s->time - other->time;

		if (other->role == s->role && other->tid == s->tid &&
		    other->explains == s->explains && apart < least) {
			nearest = &log->stacks[i];
			least = apart;
		}
	}
	return nearest;
}

/* Whether enough of the user's stack could be copied by both: neither waits for a page. */
static bool stack_compare(const struct logged_stack *bpf, const struct logged_stack *perf)
{
	const size_t bytes = bpf->s.user.copied_bytes < perf->s.user.copied_bytes
				     ? bpf->s.user.copied_bytes
				     : perf->s.user.copied_bytes;

	assert_int_equal(bpf->s.tgid, perf->s.tgid);
	assert_int_equal(bpf->s.cpu, perf->s.cpu);
	/* perf may be blind when another task gets its name. */
	if (bpf->s.role == VS_STACK_WAITER)
		assert_string_equal(bpf->s.comm, perf->s.comm);
	/* A task that exits has registers, but no memory any more. */
	assert_true(bpf->s.has_user == perf->s.has_user ||
		    (!bpf->s.has_user && !perf->s.user.copied_bytes));
	/* The innermost frames are the tracepoint's, which calls both. */
	assert_true(bpf->s.n_kernel > 3 && perf->s.n_kernel > 3);
	assert_memory_equal(bpf->kernel + bpf->s.n_kernel - 3, perf->kernel + perf->s.n_kernel - 3,
			    3 * sizeof(*bpf->kernel));
	if (!bpf->s.has_user)
		return true;
	assert_memory_equal(bpf->s.user.regs, perf->s.user.regs, sizeof(bpf->s.user.regs));
	assert_memory_equal(bpf->user, perf->user,
			    bytes < PROGRAM_BYTES_MAX ? bytes : PROGRAM_BYTES_MAX);
	return bytes > 256;
}

/* Those of BPF that perf has, too; *missing: how many it has not; *differ_ns: by how much their
 * waits differ at most. */
static size_t stacks_compare(const struct log *bpf, const struct log *perf, const bool *ours,
			     size_t *missing, uint64_t *differ_ns)
{
	size_t n = 0;

	*missing = 0;
	*differ_ns = 0;
	for (size_t i = 0; i < bpf->n_stacks; i++) {
		const struct capture_stack *s = &bpf->stacks[i].s;
		const struct logged_stack *other;
		uint64_t differ;

		/* One that slept about as long as the threshold may be long for one of them only.
		 */
		if (!ours[s->explains] || s->wait_ns < THRESHOLD_MS * 1500000ul)
			continue;
		other = stack_like(perf, s);
		if (!other) {
			(*missing)++;
			continue;
		}
		n += stack_compare(&bpf->stacks[i], other);
		differ = s->wait_ns > other->s.wait_ns ? s->wait_ns - other->s.wait_ns
						       : other->s.wait_ns - s->wait_ns;
		if (differ > *differ_ns)
			*differ_ns = differ;
	}
	return n;
}

/* Records that the capture itself counts as lost, as far as that excuses anything: one whose CPU a
 * hypervisor takes away for milliseconds inside perf comes too late. */
static size_t lost_of(const struct capture *c)
{
	uint64_t lost = 0;

	for (size_t cpu = 0; cpu < capture_n_cpus(c); cpu++) {
		struct capture_cpu_stats stats;

		assert_int_equal(capture_cpu_stats(c, cpu, &stats), 0);
		lost += stats.dropped;
	}
	return lost < EXCUSED_MAX ? lost : EXCUSED_MAX;
}

static bool is_same(const struct vs_event *a, const struct vs_event *b)
{
	return a->type == b->type && a->cpu == b->cpu && a->pid == b->pid && a->pid2 == b->pid2 &&
	       a->arg0 == b->arg0 && a->arg1 == b->arg1;
}

/* Fails with the first record that differs; perf may lack `lost` of them. Fills by how much the
 * others' stamps differ; returns how many these are. */
static size_t records_compare(const struct log *bpf, const struct log *perf, size_t lost,
			      uint64_t *apart, size_t *kinds)
{
	size_t n = 0;

	for (size_t i = 0; i < bpf->n; i++) {
		const struct vs_event *e = &bpf->events[i];

		if (lost && (n == perf->n || !is_same(e, &perf->events[n]))) {
			lost--;
			continue;
		}
		assert_true(n < perf->n);
		apart[n] = record_compare(e, &perf->events[n]);
		kinds[e->type]++;
		n++;
	}
	assert_int_equal(n, perf->n);
	return n;
}

static void the_same_events_give_the_same_records(void **state)
{
	struct capture *perf = open_host(CAPTURE_BY_PERF), *bpf = open_host(CAPTURE_BY_BPF);
	struct log *logs[2] = {log_new(), log_new()};
	size_t n, n_busy, missing, holders[2], kinds[VS_EVENT_TYPE_LIMIT] = {0};
	pid_t children[CHILDREN], busy[BUSY_MAX];
	struct capture_host_stats stats;
	uint64_t begin, end, waits_differ_ns, *apart;
	int go[2];
	bool *ours;

	(void)state;
	n_busy = cpus_keep_busy(busy);
	assert_int_equal(pipe(go), 0);
	for (int i = 0; i < CHILDREN; i++) {
		children[i] = fork();
		if (!children[i])
			child_work(i, go[0]);
		assert_int_equal(capture_add_thread(perf, children[i], children[i], VM, true), 0);
		assert_int_equal(capture_add_thread(bpf, children[i], children[i], VM, true), 0);
	}
	for (int i = 0; i < CHILDREN; i++)
		child_await(children[i]);
	drain_for(bpf, logs[0], 20);
	drain(perf, logs[1]);
	begin = now_ns();
	assert_int_equal(write(go[1], "...", CHILDREN), CHILDREN);
	for (int i = 0; i < CHILDREN; i++) {
		while (!waitpid(children[i], NULL, WNOHANG)) {
			drain_for(bpf, logs[0], 10);
			drain(perf, logs[1]);
		}
	}
	/* They leave their CPU for the last time after they were reaped, on a busy machine long
	 * after. */
	for (int i = 0, ms = 0; i < CHILDREN && ms < PATIENCE_MS;
	     i += has_left(logs[0], children[i])) {
		drain_for(bpf, logs[0], 10);
		drain(perf, logs[1]);
		ms += 10;
	}
	drain_for(bpf, logs[0], 100);
	end = now_ns();
	drain(bpf, logs[0]);
	drain(perf, logs[1]);
	cpus_let_go(busy, n_busy);
	ours = pids_of(logs[0], children, CHILDREN);
	n = names_compare(logs[1], logs[0], ours, &missing);
	assert_true(n >= CHILDREN * ROUNDS / 20);
	assert_int_equal(missing, 0);
	/* The programs may read a name while it is being written. */
	assert_true(names_compare(logs[0], logs[1], ours, &missing) >= CHILDREN * ROUNDS / 20);
	assert_true(missing <= 2);
	n = stacks_compare(logs[0], logs[1], ours, &missing, &waits_differ_ns);
	assert_true(n >= CHILDREN * LONG_SLEEPS / 2);
	/* On a busy machine we may look too late for one, and that is counted. */
	capture_host_stats_get(perf, &stats);
	assert_true(missing <= stats.stacks_dropped);
	assert_int_equal(stats.threads, 0);
	for (int i = 0; i < 2; i++)
		log_cut(logs[i], begin, end);
	blind_leave_out(logs[0], logs[1]);
	for (int i = 0; i < 2; i++)
		holders[i] = holders_count(logs[i], ours);
	n = log_reduce(logs[0], ours);
	assert_true(n > CHILDREN * ROUNDS);
	log_reduce(logs[1], ours);
	apart = calloc(n, sizeof(*apart));
	assert_non_null(apart);
	n = records_compare(logs[0], logs[1], lost_of(perf), apart, kinds);
	assert_true(kinds[VS_EVENT_SCHED_SWITCH] && kinds[VS_EVENT_SCHED_WAKEUP] &&
		    kinds[VS_EVENT_SCHED_WAKEUP_NEW] && kinds[VS_EVENT_SCHED_MIGRATE] &&
		    kinds[VS_EVENT_TASK_EXIT] && kinds[VS_EVENT_SIGNAL]);
	qsort(apart, n, sizeof(*apart), by_number);
	print_message("%zu records, %zu and %zu of holders; stamps apart: median %lu ns, 99 %% %lu "
		      "ns, most %lu ns\n",
		      n, holders[0], holders[1], apart[n / 2], apart[n * 99 / 100], apart[n - 1]);
	/* Each reads the clock for itself, and this machine may stand still in between, if it is
	 * emulated or shared: a wait differs by its two stamps at most, seldom by more than these.
	 */
	assert_true(apart[n / 2] < 1000000);
	assert_true(waits_differ_ns <= 1000000 + 2 * apart[n - 1]);
	/* Who begins to wait while the CPU switches elsewhere, waits for one of them a moment
	 * earlier. */
	assert_true(holders[0] <= holders[1] + 5 + holders[1] / 20 &&
		    holders[1] <= holders[0] + 5 + holders[0] / 20);
	free(apart);
	free(ours);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		log_free(logs[i]);
	}
	capture_close(bpf);
	capture_close(perf);
}

static size_t kvm_keep(struct log *log, pid_t tid, uint64_t begin, uint64_t end)
{
	size_t n = 0;

	log_cut(log, begin, end);
	for (size_t i = 0; i < log->n; i++) {
		const struct vs_event *e = &log->events[i];

		if (e->type >= VS_EVENT_KVM_ENTRY && e->type <= VS_EVENT_KVM_UNMAP && e->pid == tid)
			log->events[n++] = *e;
	}
	log->n = n;
	qsort(log->events, log->n, sizeof(*log->events), by_kind);
	return n;
}

static void kvm_events_are_the_same(void **state)
{
	struct capture *perf, *bpf;
	struct log *logs[2];
	struct kvm_guest guest = {0};
	const pid_t self = getpid();
	uint64_t begin, end;
	size_t n;

	(void)state;
	if (!kvm_guest_open(&guest)) {
		print_message("no /dev/kvm here\n");
		skip();
	}
	perf = open_host(CAPTURE_BY_PERF);
	bpf = open_host(CAPTURE_BY_BPF);
	logs[0] = log_new();
	logs[1] = log_new();
	assert_int_equal(capture_add_thread(perf, self, self, VM, true), 0);
	assert_int_equal(capture_add_thread(bpf, self, self, VM, true), 0);
	begin = now_ns();
	for (int i = 0; i < EXITS; i++)
		kvm_guest_exit(&guest);
	end = now_ns();
	assert_int_equal(capture_remove_thread(bpf, self), 0);
	assert_int_equal(capture_remove_thread(perf, self), 0);
	kvm_guest_exit(&guest);
	drain(perf, logs[1]);
	drain(bpf, logs[0]);
	n = kvm_keep(logs[0], self, begin, end);
	assert_int_equal(n, kvm_keep(logs[1], self, begin, end));
	assert_true(n >= 2 * EXITS); /* exits to the VMM, and what for */
	for (size_t i = 0; i < n; i++)
		record_compare(&logs[0]->events[i], &logs[1]->events[i]);
	for (int i = 0; i < 2; i++)
		log_free(logs[i]);
	capture_close(bpf);
	capture_close(perf);
	kvm_guest_close(&guest);
}

/* [PATTERN]: only the tests of that name. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_events_give_the_same_records),
		cmocka_unit_test(kvm_events_are_the_same),
	};

	for (size_t i = 0; i < N_VARIANTS; i++) {
		if (!variant_works(&variants[i], CAPTURE_HOST))
			return 77;
	}
	cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
