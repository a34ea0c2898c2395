/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs both backends at once on the same workload: they must record the same events. Needs root,
 * BPF and perf; skips otherwise. */
#include "bpf/backend/capture_open.h"
#include "tests/unit/capture_compare.h"

#include <sys/mount.h>

enum {
	RING_BYTES = 16 << 20,
	CHILDREN = 4,
	ROUNDS = 300,
	RENAMES = 20,
};

static struct capture *open_guest(enum backend_choice backend)
{
	const struct capture_options options = {
		.kind = CAPTURE_GUEST, .backend = backend, .ring_bytes = RING_BYTES};
	char why[256];
	struct capture *c;

	if (capture_open(&options, &c, why, sizeof(why)))
		fail_msg("capture_open: %s", why);
	assert_string_equal(capture_notice(c), "");
	return c;
}

static void *thread_sleep(void *unused)
{
	prctl(PR_SET_NAME, "both-thread");
	sleep_ms(2);
	return unused;
}

/* Sleeps of several lengths, renames, migrations, a thread, a child, an exec. */
static void child_work(int seed)
{
	char name[16];
	pthread_t thread;
	pid_t grandchild;
	int cpus[2];

	two_cpus(cpus);
	for (clock_t begin = clock(); clock() - begin < CLOCKS_PER_SEC / 20;)
		; /* for the timer to interrupt */
	for (int i = 0; i < ROUNDS; i++) {
		usleep((useconds_t)(50 + 37 * ((i + seed) % 11)));
		if (i % (ROUNDS / RENAMES) == 0) {
			snprintf(name, sizeof(name), "both-%d-%d", seed, i);
			prctl(PR_SET_NAME, name);
			pin(cpus[i & 1]);
		}
	}
	pthread_create(&thread, NULL, thread_sleep, NULL);
	pthread_join(thread, NULL);
	grandchild = fork();
	if (!grandchild) {
		sleep_ms(1);
		_exit(0);
	}
	waitpid(grandchild, NULL, 0);
	execl("/bin/true", "true", NULL);
	_exit(1);
}

/* perf lost as much as its switches show, and nothing else. */
static void losses_check(const struct log *perf)
{
	uint64_t holes[VS_CPU_COLLECTOR] = {0};
	int running[VS_CPU_COLLECTOR];

	memset(running, -1, sizeof(running));
	for (size_t i = 0; i < perf->n; i++) {
		const struct vs_event *e = &perf->events[i];

		if (e->type != VS_EVENT_SCHED_SWITCH)
			continue;
		holes[e->cpu] += running[e->cpu] >= 0 && running[e->cpu] != e->pid;
		running[e->cpu] = e->pid2;
	}
	for (size_t cpu = 0; cpu < VS_CPU_COLLECTOR; cpu++)
		assert_int_equal(perf->gaps[cpu], holes[cpu]);
}

/* Keeps what concerns our tasks. Of the same name of the same task told twice in a row, one: BPF
 * tells it at the exec, too. */
static size_t log_reduce(struct log *log, const bool *ours)
{
	size_t n = 0;

	qsort(log->events, log->n, sizeof(*log->events), by_kind);
	for (size_t i = 0; i < log->n; i++) {
		const struct vs_event *e = &log->events[i], *last = &log->events[n - 1];
		const bool second = e->type == VS_EVENT_SCHED_SWITCH && ours[e->pid2];

		if (!ours[e->pid] && !second)
			continue;
		if (n && e->type == VS_EVENT_TASK_NAME && last->type == e->type &&
		    last->pid == e->pid && last->arg0 == e->arg0 && last->arg1 == e->arg1)
			continue;
		log->events[n++] = *e;
	}
	log->n = n;
	return n;
}

static void the_same_events_give_the_same_records(void **state)
{
	struct capture *perf = open_guest(CAPTURE_BY_PERF), *bpf = open_guest(CAPTURE_BY_BPF);
	uint64_t begin, end;
	struct log *logs[2] = {log_new(), log_new()};
	size_t n, kinds[VS_EVENT_TYPE_LIMIT] = {0};
	uint64_t *apart;
	pid_t children[CHILDREN];
	bool *ours;

	(void)state;
	drain(perf, logs[1]);
	drain(bpf, logs[0]);
	begin = now_ns();
	for (int i = 0; i < CHILDREN; i++) {
		children[i] = fork();
		if (!children[i])
			child_work(i);
	}
	for (int i = 0; i < CHILDREN; i++) {
		while (!waitpid(children[i], NULL, WNOHANG)) {
			drain_for(bpf, logs[0], 10);
			drain(perf, logs[1]);
		}
	}
	/* They leave their CPU for the last time after they were reaped. */
	drain_for(bpf, logs[0], 100);
	end = now_ns();
	drain(bpf, logs[0]);
	drain(perf, logs[1]);
	losses_check(logs[1]);
	for (int i = 0; i < 2; i++)
		log_cut(logs[i], begin, end);
	ours = pids_of(logs[0], children, CHILDREN);
	blind_leave_out(logs[0], logs[1]);
	n = log_reduce(logs[0], ours);
	assert_true(n > CHILDREN * ROUNDS / 2);
	if (log_reduce(logs[1], ours) < n)
		n = logs[1]->n; /* the first that differs is said */
	apart = calloc(n, sizeof(*apart));
	assert_non_null(apart);
	for (size_t i = 0; i < n; i++) {
		apart[i] = record_compare(&logs[0]->events[i], &logs[1]->events[i]);
		kinds[logs[0]->events[i].type]++;
	}
	assert_int_equal(logs[0]->n, logs[1]->n);
	assert_true(kinds[VS_EVENT_SCHED_SWITCH] && kinds[VS_EVENT_SCHED_WAKEUP] &&
		    kinds[VS_EVENT_SCHED_WAKEUP_NEW] && kinds[VS_EVENT_TASK_NAME] &&
		    kinds[VS_EVENT_TASK_EXIT] && kinds[VS_EVENT_VECTOR_ENTRY]);
	qsort(apart, n, sizeof(*apart), by_number);
	print_message("%zu records; stamps apart: median %lu ns, 99 %% %lu ns, most %lu ns\n", n,
		      apart[n / 2], apart[n * 99 / 100], apart[n - 1]);
	assert_true(apart[n / 2] < 20000);
	free(apart);
	free(ours);
	log_free(logs[0]);
	log_free(logs[1]);
	capture_close(bpf);
	capture_close(perf);
}

/* A kernel without BTF, as far as this process can see. */
static int without_btf(void)
{
	const struct capture_options automatic = {.kind = CAPTURE_GUEST},
				     bpf = {.kind = CAPTURE_GUEST, .backend = CAPTURE_BY_BPF};
	struct capture *c;
	char why[512];

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/sys/kernel/btf", "tmpfs", 0, NULL))
		return 77;
	if (!capture_open(&bpf, &c, why, sizeof(why)))
		return 1;
	if (!strstr(why, "BTF") || !strstr(why, "No such file"))
		return 2;
	if (capture_open(&automatic, &c, why, sizeof(why)))
		return 3;
	if (!strstr(capture_notice(c), "BTF") || !strstr(capture_notice(c), "perf") ||
	    strchr(capture_notice(c), '\n'))
		return 4;
	capture_close(c);
	/* Nor tracefs: what both backends lack is said, in one line. */
	if (mount("none", "/sys/kernel/tracing", "tmpfs", 0, NULL) ||
	    mount("none", "/sys/kernel/debug", "tmpfs", 0, NULL))
		return 77;
	if (!capture_open(&automatic, &c, why, sizeof(why)))
		return 5;
	if (!strstr(why, "BTF") || !strstr(why, "mount -t tracefs") || strchr(why, '\n'))
		return 6;
	return 0;
}

static void without_btf_perf_steps_in_and_says_so(void **state)
{
	const pid_t child = fork();
	int status;

	(void)state;
	if (!child)
		_exit(without_btf());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("no mount namespaces here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void ways_have_names(void **state)
{
	enum backend_choice backend;

	(void)state;
	assert_int_equal(backend_choice_parse("auto", &backend), 0);
	assert_int_equal(backend, CAPTURE_BY_ANY);
	assert_int_equal(backend_choice_parse("perf", &backend), 0);
	assert_int_equal(backend, CAPTURE_BY_PERF);
	assert_int_equal(backend_choice_parse("bpf", &backend), 0);
	assert_int_equal(backend, CAPTURE_BY_BPF);
	assert_int_equal(backend_choice_parse("ebpf", &backend), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ways_have_names),
		cmocka_unit_test(the_same_events_give_the_same_records),
		cmocka_unit_test(without_btf_perf_steps_in_and_says_so),
	};

	for (size_t i = 0; i < N_VARIANTS; i++) {
		if (!variant_works(&variants[i], CAPTURE_GUEST))
			return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
