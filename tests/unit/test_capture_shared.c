/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests one host capture for several users. With a script of events: which user gets which
 * event. On the running kernel, with processes in place of VMs: each user gets its own events only,
 * totals are exact when the rings overflow, users join and leave, and no program stays loaded.
 * test_capture_host tests the events of a single user. All but the first tests need root and BPF.
 */
#include "tests/unit/capture_log.h"

#include "bpf/capture/batcher.h"
#include "bpf/backend/capture_shared.h"
#include "bpf/backend/event_router.h"

enum { A = 3, B = 400, A_VCPU = 100, A_OTHER = 101, B_VCPU = 200, STRANGER = 300 };

/* -1: nobody. */
static uint64_t bits(int first, int second)
{
	return (uint64_t)(first == A || second == A) | (uint64_t)(first == B || second == B) << 1;
}

/* The users that the event concerns, as bits(). */
static uint64_t route(struct event_router *r, const struct vs_event *e)
{
	struct user_set users;

	event_router_route(r, e, &users);
	return (uint64_t)user_set_has(&users, A) | (uint64_t)user_set_has(&users, B) << 1;
}

static uint64_t route_switch(struct event_router *r, uint16_t cpu, int out, int in, uint64_t state)
{
	const struct vs_event e = {
		.type = VS_EVENT_SCHED_SWITCH, .cpu = cpu, .pid = out, .pid2 = in, .arg0 = state};

	return route(r, &e);
}

static uint64_t route_event(struct event_router *r, enum vs_event_type type, int pid, uint64_t arg0,
			    uint64_t arg1)
{
	const struct vs_event e = {.type = (uint16_t)type, .pid = pid, .arg0 = arg0, .arg1 = arg1};

	return route(r, &e);
}

static struct event_router *router_of_two(void)
{
	struct event_router *r = event_router_new(2);

	assert_non_null(r);
	assert_int_equal(event_router_follow(r, A_VCPU, A_VCPU, A), 0);
	assert_int_equal(event_router_follow(r, B_VCPU, B_VCPU, B), 0);
	return r;
}

static void switches_go_to_both_sides_and_to_who_waits(void **state)
{
	struct event_router *r = router_of_two();

	(void)state;
	assert_int_equal(route_switch(r, 0, STRANGER, A_VCPU, 0), bits(A, -1));
	assert_int_equal(route_switch(r, 0, A_VCPU, B_VCPU, 0), bits(A, B));
	/* A's thread waits for CPU 0 from now on: who holds it is A's business. */
	assert_int_equal(route_switch(r, 0, B_VCPU, STRANGER, VS_TASK_INTERRUPTIBLE), bits(A, B));
	assert_int_equal(route_switch(r, 0, STRANGER, STRANGER + 1, 0), bits(A, -1));
	assert_int_equal(route_switch(r, 1, STRANGER, STRANGER + 1, 0), 0);
	/* It moves to the other CPU. */
	assert_int_equal(route_event(r, VS_EVENT_SCHED_MIGRATE, A_VCPU, 0, 1), bits(A, -1));
	assert_int_equal(route_switch(r, 0, STRANGER, STRANGER + 1, 0), 0);
	assert_int_equal(route_switch(r, 1, STRANGER, STRANGER + 1, 0), bits(A, -1));
	assert_int_equal(route_switch(r, 1, STRANGER, A_VCPU, 0), bits(A, -1));
	assert_int_equal(route_switch(r, 1, A_VCPU, STRANGER, VS_TASK_INTERRUPTIBLE), bits(A, -1));
	assert_int_equal(route_switch(r, 1, STRANGER, STRANGER + 1, 0), 0);
	/* Woken, it waits again; woken while it runs, it does not. */
	assert_int_equal(route_event(r, VS_EVENT_SCHED_WAKEUP, A_VCPU, 1, 0), bits(A, -1));
	assert_int_equal(route_switch(r, 1, STRANGER, A_VCPU, 0), bits(A, -1));
	assert_int_equal(route_event(r, VS_EVENT_SCHED_WAKEUP, A_VCPU, 1, 0), bits(A, -1));
	assert_int_equal(route_switch(r, 1, A_VCPU, STRANGER, VS_TASK_INTERRUPTIBLE), bits(A, -1));
	assert_int_equal(route_switch(r, 1, STRANGER, STRANGER + 1, 0), 0);
	event_router_free(r);
}

static void threads_are_those_of_the_process(void **state)
{
	const struct vs_event name = {
		.type = VS_EVENT_TASK_NAME, .pid = A_OTHER, .pid2 = A_VCPU, .arg0 = 'x'};
	struct event_router *r = router_of_two();
	struct vs_event reported;

	(void)state;
	assert_int_equal(event_router_follow(r, A_VCPU, A_VCPU, B), -EBUSY);
	assert_int_equal(route(r, &name), bits(A, -1));
	assert_int_equal(event_router_user_of(r, A_OTHER), A);
	/* A has heard it; B does when it needs it, once, and again after a new name. */
	assert_false(event_router_introduce(r, A_OTHER, A, &reported));
	assert_true(event_router_introduce(r, A_OTHER, B, &reported));
	assert_int_equal(reported.type, VS_EVENT_TASK_NAME);
	assert_int_equal(reported.pid2, A_VCPU);
	assert_int_equal(reported.arg0, 'x');
	assert_false(event_router_introduce(r, A_OTHER, B, &reported));
	route(r, &name);
	assert_true(event_router_introduce(r, A_OTHER, B, &reported));
	assert_false(event_router_introduce(r, STRANGER, B, &reported));
	/* It ends; its number means nobody. */
	assert_int_equal(route_switch(r, 0, A_OTHER, STRANGER, VS_TASK_DEAD), bits(A, -1));
	assert_int_equal(event_router_user_of(r, A_OTHER), -1);
	assert_int_equal(route_event(r, VS_EVENT_SIGNAL, STRANGER, SIGSTOP, B_VCPU), bits(B, -1));
	assert_int_equal(route_event(r, VS_EVENT_SIGNAL, STRANGER, SIGSTOP, STRANGER), 0);
	event_router_free(r);
}

static void what_anybody_does_goes_to_all_in_detail(void **state)
{
	const struct vs_event end = {
		.type = VS_EVENT_BLOCK_COMPLETE, .pid = STRANGER, .pid2 = B_VCPU};
	struct event_router *r = router_of_two();
	const uint64_t before = route_event(r, VS_EVENT_KVM_MSI, STRANGER, 1, 2);

	(void)state;
	assert_int_equal(before & bits(A, B), bits(A, B));
	assert_int_equal(route_event(r, VS_EVENT_KVM_EXIT, A_VCPU, 1, 2), bits(A, -1));
	assert_int_equal(route(r, &end), bits(B, -1));
	event_router_detail(r, B, false);
	assert_int_equal(route_event(r, VS_EVENT_KVM_MSI, A_VCPU, 1, 2), before & ~bits(B, -1));
	assert_int_equal(route(r, &end), 0);
	assert_int_equal(route_event(r, VS_EVENT_KVM_EXIT, B_VCPU, 1, 2), bits(B, -1));
	event_router_free(r);
}

static uint64_t route_chosen(struct event_router *r, enum vs_event_type type, uint32_t id, int pid)
{
	const struct vs_event e = {.type = (uint16_t)type, .pid = pid, .pid2 = (int32_t)id};

	return route(r, &e);
}

/* first, second: users; -1: nobody. */
static int choose(struct event_router *r, uint32_t id, int first, int second, bool untraced)
{
	struct user_set users = {0};

	if (first >= 0)
		user_set_add(&users, (unsigned int)first);
	if (second >= 0)
		user_set_add(&users, (unsigned int)second);
	return event_router_choose(r, id, &users, untraced);
}

static void chosen_events_go_to_who_chose_them(void **state)
{
	struct event_router *r = router_of_two();
	struct vs_event e = {.type = VS_EVENT_USER, .pid = STRANGER};
	pid_t tids[2];

	(void)state;
	assert_int_equal(route_chosen(r, VS_EVENT_USER, 1, A_VCPU), 0);
	assert_int_equal(choose(r, 1, A, B, false), 0);
	assert_int_equal(choose(r, 2, B, -1, true), 0);
	assert_int_equal(route_chosen(r, VS_EVENT_USER, 1, A_VCPU), bits(A, -1));
	assert_int_equal(route_chosen(r, VS_EVENT_USER_MORE, 1 | 1 << 16, B_VCPU), bits(B, -1));
	assert_int_equal(route_chosen(r, VS_EVENT_USER, 1, STRANGER), 0);
	assert_int_equal(route_chosen(r, VS_EVENT_USER, 2, A_VCPU), bits(B, -1));
	assert_int_equal(route_chosen(r, VS_EVENT_USER_LIMITED, 2, STRANGER), bits(B, -1));
	/* A reader needs the name of the task, which may be a stranger's. */
	event_router_tasks(&e, tids);
	assert_int_equal(tids[0], STRANGER);
	assert_int_equal(choose(r, 2, -1, -1, true), 0);
	assert_int_equal(route_chosen(r, VS_EVENT_USER, 2, A_VCPU), 0);
	for (uint32_t i = 0; i < 63; i++)
		assert_int_equal(choose(r, 10 + i, A, -1, true), 0);
	assert_int_equal(choose(r, 100, A, -1, true), -ENOSPC);
	event_router_free(r);
}

/* Every scope of the catalogue's tracepoints has its route. */
static void all_tracepoints_have_their_route(void **state)
{
	struct event_router *r = router_of_two();
	const struct event_tracepoint *row;

	(void)state;
	for (size_t i = 0; (row = tracepoint_row(i)); i++) {
		const enum vs_event_type type = (enum vs_event_type)row->type;
		const uint64_t got = route_event(r, type, A_VCPU, 0, 0) & bits(A, B);
		const enum vs_scope scope = (enum vs_scope)event_type_of(row->type)->scope;
		const bool anyone = scope == VS_SCOPE_ANYONE;

		if (scope != VS_SCOPE_END)
			assert_int_equal(got, anyone ? bits(A, B) : bits(A, -1));
	}
	event_router_free(r);
}

/* ---- with the kernel ---- */

static struct capture_shared *shared_open(size_t ring_bytes)
{
	const struct capture_options options = {
		.backend = CAPTURE_BY_BPF, .stacks = true, .ring_bytes = ring_bytes};
	struct capture_shared *s = NULL;
	char why[256];

	if (capture_shared_open(&options, &s, why, sizeof(why))) {
		print_message("%s\n", why);
		skip();
	}
	return s;
}

static struct capture *join(struct capture_shared *s, pid_t pid)
{
	struct capture *c = NULL;

	assert_int_equal(capture_shared_join(s, 0, &c), 0);
	if (pid)
		assert_int_equal(capture_add_thread(c, pid, pid, 1, true), 0);
	return c;
}

/* Sleeps and runs by turns. */
static pid_t sleeper_start(const char *name)
{
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		sleep_ms(1);
}

static void sleeper_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static size_t count(const struct log *log, pid_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < log->n; i++)
		n += log->events[i].pid == pid || log->events[i].pid2 == pid;
	return n;
}

/* Events that have been handed out, and lost ones, are all that were numbered. */
static void check_balance(struct capture *c, struct log *log)
{
	const struct capture_sink sink = {.events = log_events, .stack = log_stack, .context = log};
	uint64_t emitted = 0, dropped = 0, events = 0, lost = 0;

	/* What came when others drained. */
	assert_true(capture_drain(c, &sink) >= 0);
	for (size_t i = 0; i < capture_n_cpus(c); i++) {
		struct capture_cpu_stats stats;

		assert_int_equal(capture_cpu_stats(c, i, &stats), 0);
		emitted += stats.emitted;
		dropped += stats.dropped;
	}
	for (size_t i = 0; i < log->n; i++) {
		if (log->events[i].type == VS_EVENT_LOST)
			lost += log->events[i].arg0;
		else
			events++;
	}
	assert_int_equal(emitted, events + dropped);
	assert_int_equal(lost, dropped);
	assert_int_equal(capture_shared_lost(c), lost);
	assert_int_equal(log->time_inversions, 0);
	assert_int_equal(log->wrong_cpu, 0);
}

static void each_user_gets_its_own(void **state)
{
	struct capture_shared *s = shared_open(0);
	const pid_t first = sleeper_start("first"), second = sleeper_start("second");
	struct capture *a = join(s, first), *b = join(s, second), *idle = join(s, 0);
	struct log *of_a = log_new(), *of_b = log_new(), *of_idle = log_new();

	(void)state;
	for (int i = 0; i < 20; i++) {
		drain_for(a, of_a, 10);
		drain(b, of_b);
		drain(idle, of_idle);
	}
	assert_true(count(of_a, first) > 20);
	assert_true(count(of_b, second) > 20);
	assert_true(find_name(of_a, first, first, "first"));
	assert_true(find_name(of_b, second, second, "second"));
	assert_null(find(of_a, VS_EVENT_SCHED_WAKEUP, second));
	assert_null(find(of_b, VS_EVENT_SCHED_WAKEUP, first));
	assert_int_equal(of_idle->n, 0);
	check_balance(a, of_a);
	check_balance(b, of_b);
	/* One leaves; the other goes on, and the process can be another's. */
	capture_close(a);
	drain_for(b, of_b, 50);
	a = join(s, first);
	of_a->n = 0;
	drain_for(a, of_a, 100);
	assert_true(count(of_a, first) > 5);
	assert_true(find_name(of_a, first, first, "first"));
	capture_close(a);
	capture_close(b);
	capture_close(idle);
	capture_shared_close(s);
	sleeper_end(first);
	sleeper_end(second);
	log_free(of_a);
	log_free(of_b);
	log_free(of_idle);
}

static void what_the_rings_lose_is_in_every_stream(void **state)
{
	struct capture_shared *s = shared_open(1); /* as small as they get */
	const pid_t first = sleeper_start("first"), second = sleeper_start("second");
	struct capture *a = join(s, first), *b = join(s, second);
	struct log *of_a = log_new(), *of_b = log_new();
	struct capture_shared_stats stats = {0};

	(void)state;
	for (int i = 0; i < 100 && !stats.dropped_kernel; i++) {
		sleep_ms(100);
		capture_shared_stats_get(s, &stats);
	}
	assert_true(stats.dropped_kernel > 0);
	sleeper_end(first);
	sleeper_end(second);
	/* Until all that was lost is known to be. */
	for (int i = 0; i < 10; i++) {
		drain(a, of_a);
		drain(b, of_b);
	}
	capture_shared_stats_get(s, &stats);
	assert_int_equal(stats.users, 2);
	assert_int_equal(capture_shared_lost(a), stats.dropped_kernel);
	assert_int_equal(capture_shared_lost(b), stats.dropped_kernel);
	/* These logs count the holes that a stream's numbers show beside LOST events. */
	check_balance(a, of_a);
	check_balance(b, of_b);
	capture_close(a);
	capture_close(b);
	capture_shared_close(s);
	log_free(of_a);
	log_free(of_b);
}

static void users_come_and_go(void **state)
{
	struct capture_shared *s = shared_open(0);
	const pid_t pid = sleeper_start("stays");
	struct capture *stays = join(s, pid), *others[ROUTER_USERS_MAX - 1], *more = NULL;
	struct log *log = log_new();
	struct capture_host_stats stats;
	pid_t pids[8];

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < ROUTER_USERS_MAX - 1; i++) {
			if (i < 8)
				pids[i] = sleeper_start("goes");
			others[i] = join(s, i < 8 ? pids[i] : 0);
		}
		assert_int_equal(capture_shared_join(s, 0, &more), -ENOSPC);
		drain_for(stays, log, 30);
		for (int i = 0; i < ROUTER_USERS_MAX - 1; i++) {
			capture_close(others[i]);
			if (i < 8)
				sleeper_end(pids[i]);
		}
		drain_for(stays, log, 30);
		capture_host_stats_get(stays, &stats);
		assert_int_equal(stats.threads, 1);
	}
	check_balance(stays, log);
	assert_true(count(log, pid) > 20);
	capture_close(stays);
	capture_shared_close(s);
	sleeper_end(pid);
	log_free(log);
}

static void levels_are_each_ones_own(void **state)
{
	struct capture_shared *s = shared_open(0);
	struct capture *a = join(s, 0), *b = join(s, 0);

	(void)state;
	assert_int_equal(capture_level_set(a, 1, CAPTURE_SUMMARY), 0);
	assert_int_equal(capture_level_set(b, 1, CAPTURE_DETAIL), 0);
	assert_int_equal(capture_level_set(a, 1, CAPTURE_DETAIL), 0);
	capture_close(a);
	capture_close(b);
	capture_shared_close(s);
}

/* Stacks of waits at or above the threshold; those of shorter ones are samples. */
static size_t count_long(const struct log *log)
{
	size_t n = 0;

	for (size_t i = 0; i < log->n_stacks; i++)
		n += !log->stacks[i].s.sampled;
	return n;
}

static void a_user_can_lower_its_threshold_alone(void **state)
{
	struct capture_shared *s = shared_open(0);
	const pid_t first = sleeper_start("first"), second = sleeper_start("second");
	struct capture *a = join(s, first), *b = join(s, second);
	struct log *of_a = log_new(), *of_b = log_new();

	(void)state;
	assert_int_equal(capture_wait_threshold(a, 500000), 0);
	assert_int_equal(capture_wait_threshold(a, 1000000000), 0);
	for (int i = 0; i < 20; i++) {
		drain_for(a, of_a, 10);
		drain(b, of_b);
	}
	assert_true(count_long(of_a) > 20);
	for (size_t i = 0; i < of_b->n_stacks; i++)
		assert_true(of_b->stacks[i].s.sampled || of_b->stacks[i].s.wait_ns >= 20000000);
	capture_close(a);
	capture_close(b);
	capture_shared_close(s);
	sleeper_end(first);
	sleeper_end(second);
	log_free(of_a);
	log_free(of_b);
}

/* Knows the stacks of waiters, as number 7. */
static uint32_t waiter_find(void *context, const struct capture_stack *stack)
{
	(void)context;
	assert_true(stack->n_kernel > 0);
	return stack->role == VS_STACK_WAITER ? 7 : 0;
}

static void the_stacks_that_a_user_knows_are_not_copied(void **state)
{
	struct capture_shared *s = shared_open(0);
	const pid_t first = sleeper_start("first");
	struct capture *a = join(s, first);
	struct log *of_a = log_new();
	size_t known = 0;

	(void)state;
	assert_int_equal(capture_wait_threshold(a, 500000), 0);
	capture_shared_stacks_known(a, waiter_find, NULL);
	drain_for(a, of_a, 200);
	for (size_t i = 0; i < of_a->n_stacks; i++) {
		const struct capture_stack *got = &of_a->stacks[i].s;

		known += got->known == 7;
		assert_int_equal(got->known, got->role == VS_STACK_WAITER ? 7 : 0);
		assert_true(got->known ? !got->n_kernel && !got->user.copied_bytes
				       : got->n_kernel > 0);
		assert_int_equal(got->explains, first);
		assert_true(got->wait_ns > 0);
	}
	assert_true(known > 20);
	capture_close(a);
	capture_shared_close(s);
	sleeper_end(first);
	log_free(of_a);
}

static struct capture *open_one_user(void)
{
	return join(shared_open(0), getpid());
}

static void a_killed_process_leaves_nothing(void **state)
{
	uint32_t ids[128];
	struct capture_shared *s = shared_open(0);
	int ready[2];
	pid_t child;
	size_t n;
	char byte;

	(void)state;
	capture_shared_close(s);
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		open_one_user();
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	n = programs_of(child, ids, 128);
	assert_true(n > 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	for (int i = 0; i < 1000 && programs_alive(ids, n); i++)
		sleep_ms(20);
	assert_int_equal(programs_alive(ids, n), 0);
	close(ready[0]);
	close(ready[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switches_go_to_both_sides_and_to_who_waits),
		cmocka_unit_test(threads_are_those_of_the_process),
		cmocka_unit_test(what_anybody_does_goes_to_all_in_detail),
		cmocka_unit_test(chosen_events_go_to_who_chose_them),
		cmocka_unit_test(all_tracepoints_have_their_route),
		cmocka_unit_test(each_user_gets_its_own),
		cmocka_unit_test(what_the_rings_lose_is_in_every_stream),
		cmocka_unit_test(users_come_and_go),
		cmocka_unit_test(levels_are_each_ones_own),
		cmocka_unit_test(a_user_can_lower_its_threshold_alone),
		cmocka_unit_test(the_stacks_that_a_user_knows_are_not_copied),
		cmocka_unit_test(a_killed_process_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
