/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/backend/capture_shared.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/backend/capture_open.h"
#include "bpf/backend/capture_shared_internal.h"
#include "clock/sample.h"

enum {
	/* The ring of one VM could be smaller, see capture_bpf.c. */
	RING_BYTES = 32 << 20,
	WAIT_THRESHOLD_NS = 20000000,
	COUNTERS_NS = 100000000,
};

static struct capture_user *user_of(struct capture *c)
{
	return (struct capture_user *)c;
}

static const struct capture_user *user_of_const(const struct capture *c)
{
	return (const struct capture_user *)c;
}

/* Returns the number that the capture gives the VM: 1 or more. */
static uint32_t vm_of(const struct capture_user *user)
{
	return user->number + 1;
}

/* ---- the capture of one user ---- */

static long user_drain(struct capture *c, const struct capture_sink *sink)
{
	struct capture_user *user = user_of(c);
	struct capture_shared *s = user->shared;
	const size_t total = user->n_queued;

	for (size_t i = 0; i < s->n_cpus; i++) {
		struct event_queue *q = &user->queues[i].queue;

		if (q->n)
			sink->events(sink->context, (uint16_t)i, q->events, q->n);
		event_queue_remove(q, q->n);
	}
	user->n_queued = 0;
	s->n_queued -= total;
	/* Stacks are passed on at once, events after all CPUs have been read up to their time. */
	while (user->stacks && user->stacks->stack.time <= s->sample.monotonic_ns) {
		struct kept_stack *kept = user->stacks;

		if (sink->stack)
			sink->stack(sink->context, &kept->stack);
		user->stacks = kept->next;
		if (!user->stacks)
			user->stacks_end = &user->stacks;
		user->n_stacks--;
		free(kept);
	}
	return (long)total;
}

static int user_sample(struct capture *c, struct clock_sample *out)
{
	struct capture_shared *s = user_of(c)->shared;
	const int err = shared_pump(s);

	*out = s->sample;
	return err;
}

static size_t user_samples(const struct capture *c, uint64_t after_tsc, struct clock_sample *out,
			   size_t max)
{
	const struct capture_shared *s = user_of_const(c)->shared;
	size_t n = 0;

	for (uint64_t i = s->n_samples > SHARED_SAMPLES ? s->n_samples - SHARED_SAMPLES : 0;
	     i < s->n_samples && n < max; i++) {
		if (s->samples[i % SHARED_SAMPLES].tsc > after_tsc)
			out[n++] = s->samples[i % SHARED_SAMPLES];
	}
	return n;
}

static size_t user_n_cpus(const struct capture *c)
{
	return user_of_const(c)->shared->n_cpus;
}

static int user_cpu_stats(const struct capture *c, size_t cpu, struct capture_cpu_stats *out)
{
	const struct capture_user *user = user_of_const(c);

	if (cpu >= user->shared->n_cpus)
		return -ENOENT;
	*out = (struct capture_cpu_stats){.emitted = user->queues[cpu].emitted,
					  .dropped = user->queues[cpu].dropped};
	return 0;
}

static int user_name_tasks(struct capture *c)
{
	(void)c;
	return -ENOTSUP;
}

static const char *user_left_out(const struct capture *c)
{
	return capture_left_out(user_of_const(c)->shared->capture);
}

static int user_add_thread(struct capture *c, pid_t tid, pid_t tgid, uint32_t vm, bool is_vcpu)
{
	struct capture_user *user = user_of(c);
	struct capture_shared *s = user->shared;
	int err;

	(void)vm;
	if (tid <= 0 || tgid <= 0)
		return -EINVAL;
	err = event_router_follow(s->router, tid, tgid, user->number);
	if (err)
		return err;
	err = capture_add_thread(s->capture, tid, tgid, vm_of(user), is_vcpu);
	if (err)
		event_router_unfollow(s->router, tid);
	return err;
}

static int user_remove_thread(struct capture *c, pid_t tid)
{
	struct capture_user *user = user_of(c);
	struct capture_shared *s = user->shared;

	if (event_router_user_of(s->router, tid) != (int)user->number)
		return -ENOENT;
	event_router_unfollow(s->router, tid);
	return capture_remove_thread(s->capture, tid);
}

/* The programs use the lowest threshold of all users. Each user drops what is shorter than its own.
 */
static int user_wait_threshold(struct capture *c, uint64_t ns)
{
	struct capture_user *user = user_of(c);
	int err = 0;

	if (ns < user->wait_threshold_ns)
		err = capture_wait_threshold(user->shared->capture, ns);
	if (!err && ns < user->wait_threshold_ns)
		user->wait_threshold_ns = ns;
	return err;
}

static int user_level_set(struct capture *c, uint32_t vm, enum capture_level level)
{
	struct capture_user *user = user_of(c);
	const int err = capture_level_set(user->shared->capture, vm_of(user), level);

	(void)vm;
	if (!err)
		event_router_detail(user->shared->router, user->number, level == CAPTURE_DETAIL);
	return err;
}

/* ---- chosen events ---- */

/* Bits of the users' VMs (vm_of(), modulo 64). The router excludes other VMs with the same bit. */
static uint64_t vms_of(const struct user_set *users)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < USER_SET_WORDS; i++)
		bits |= users->words[i];
	return bits << 1 | bits >> 63;
}

static void event_users_changed(struct capture_shared *s, const struct shared_event *e)
{
	event_router_choose(s->router, e->id, &e->users, e->event.untraced);
	s->capture->backend->event_vms(s->capture, e->id, vms_of(&e->users));
}

/* Returns the same event of other users, or else a free element, or NULL if there is neither. */
static struct shared_event *event_place(struct capture_shared *s, const struct capture_event *event,
					unsigned int user)
{
	struct shared_event *free_one = NULL;

	for (size_t i = 0; i < VS_USER_SLOTS_MAX; i++) {
		struct shared_event *e = &s->events[i];

		if (user_set_is_empty(&e->users))
			free_one = free_one ? free_one : e;
		else if (!memcmp(&e->event, event, sizeof(*event)) &&
			 !user_set_has(&e->users, user))
			return e;
	}
	return free_one;
}

static int user_event_add(struct capture *c, const struct capture_event *event, uint64_t vms,
			  uint32_t *id)
{
	const struct capture_user *user = user_of(c);
	struct capture_shared *s = user->shared;
	struct user_set mine = {0};
	struct shared_event *e;
	int err;

	(void)vms;
	if (!s->capture->backend->event_add)
		return -ENOTSUP;
	e = event_place(s, event, user->number);
	if (!e)
		return -ENOSPC;
	user_set_add(&mine, user->number);
	if (user_set_is_empty(&e->users)) {
		err = s->capture->backend->event_add(s->capture, event, vms_of(&mine), &e->id);
		if (err)
			return err;
		e->event = *event;
	}
	user_set_join(&e->users, &mine);
	event_users_changed(s, e);
	*id = e->id;
	return 0;
}

static int user_event_state(struct capture *c, uint32_t id, uint64_t now_ms,
			    struct capture_event_state *out)
{
	return capture_event_state_get(user_of(c)->shared->capture, id, now_ms, out);
}

static void events_leave(struct capture_shared *s, unsigned int number)
{
	for (size_t i = 0; i < VS_USER_SLOTS_MAX; i++) {
		struct shared_event *e = &s->events[i];

		if (!user_set_has(&e->users, number))
			continue;
		user_set_remove(&e->users, number);
		event_users_changed(s, e);
	}
}

static void user_host_stats(const struct capture *c, struct capture_host_stats *out)
{
	const struct capture_user *user = user_of_const(c);

	capture_host_stats_get(user->shared->capture, out);
	out->stacks_dropped += user->stacks_dropped;
}

static uint64_t shared_missed(struct capture_shared *s)
{
	const uint64_t now = clock_monotonic_ns();

	if (!s->missed_ns || now - s->missed_ns >= COUNTERS_NS)
		s->missed = capture_missed(s->capture);
	s->missed_ns = now;
	return s->missed;
}

static uint64_t user_missed(const struct capture *c)
{
	const struct capture_user *user = user_of_const(c);

	return shared_missed(user->shared) - user->missed_before;
}

static int user_cost(const struct capture *c, uint64_t *run_time_ns, uint64_t *run_count)
{
	return capture_cost(user_of_const(c)->shared->capture, run_time_ns, run_count);
}

static int user_exits(struct capture *c, capture_exit_taker take, void *context)
{
	const struct capture_user *user = user_of(c);

	return shared_exits_emit(user->shared, vm_of(user), take, context);
}

static long user_waiting(const struct capture *c, size_t cpu)
{
	const struct capture *inner = user_of_const(c)->shared->capture;

	return inner->backend->waiting(inner, cpu);
}

static void thread_release(void *context, pid_t tid)
{
	capture_remove_thread(context, tid);
}

static void user_close(struct capture *c)
{
	struct capture_user *user = user_of(c);
	struct capture_shared *s = user->shared;

	events_leave(s, user->number);
	event_router_leave(s->router, user->number, thread_release, s->capture);
	/* No request has its number any more. */
	if (capture_summarises(s->capture))
		capture_level_set(s->capture, vm_of(user), CAPTURE_SUMMARY);
	s->users[user->number] = NULL;
	user_set_remove(&s->joined, user->number);
	s->n_users--;
	s->n_queued -= user->n_queued;
	for (size_t i = 0; user->queues && i < s->n_cpus; i++)
		event_queue_fini(&user->queues[i].queue);
	while (user->stacks) {
		struct kept_stack *kept = user->stacks;

		user->stacks = kept->next;
		free(kept);
	}
	free(user->queues);
	free(user);
}

static const struct capture_backend user_backend = {
	.close = user_close,
	.drain = user_drain,
	.sample = user_sample,
	.samples = user_samples,
	.name_tasks = user_name_tasks,
	.n_cpus = user_n_cpus,
	.cpu_stats = user_cpu_stats,
	.left_out = user_left_out,
	.add_thread = user_add_thread,
	.remove_thread = user_remove_thread,
	.wait_threshold = user_wait_threshold,
	.exits = user_exits,
	.level_set = user_level_set,
	.event_add = user_event_add,
	.event_state = user_event_state,
	.host_stats = user_host_stats,
	.missed = user_missed,
	.cost = user_cost,
	.waiting = user_waiting,
};

/* ---- all users ---- */

int capture_shared_open(const struct capture_options *options, struct capture_shared **out,
			char *why, size_t why_bytes)
{
	struct capture_options host = *options;
	struct capture_shared *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	snprintf(why, why_bytes, "out of memory");
	if (!s)
		return err;
	host.kind = CAPTURE_HOST;
	host.sample_hz = 0;
	if (!host.ring_bytes)
		host.ring_bytes = RING_BYTES;
	if (!host.wait_threshold_ns)
		host.wait_threshold_ns = WAIT_THRESHOLD_NS;
	err = capture_open(&host, &s->capture, why, why_bytes);
	if (err)
		goto fail;
	s->n_cpus = capture_n_cpus(s->capture);
	s->lag_ns = capture_lag_ns(s->capture);
	s->backend = user_backend;
	s->backend.name = capture_backend_name(s->capture);
	s->backend.summarises = capture_summarises(s->capture);
	s->backend.lag_ns = s->lag_ns;
	s->router = event_router_new(s->n_cpus);
	s->cpus = calloc(s->n_cpus, sizeof(*s->cpus));
	err = -ENOMEM;
	if (!s->router || !s->cpus)
		goto fail;
	err = shared_pump(s);
	if (err) {
		snprintf(why, why_bytes, "reading the host's events: %s", strerror(-err));
		goto fail;
	}
	why[0] = 0;
	*out = s;
	return 0;
fail:
	capture_shared_close(s);
	return err;
}

void capture_shared_close(struct capture_shared *s)
{
	if (!s)
		return;
	for (size_t i = 0; s->cpus && i < s->n_cpus; i++)
		event_queue_fini(&s->cpus[i].queue);
	free(s->cpus);
	event_router_free(s->router);
	free(s->exits.cells);
	capture_close(s->capture);
	free(s);
}

int capture_shared_join(struct capture_shared *s, uint64_t wait_threshold_ns, struct capture **out)
{
	struct capture_user *user;
	unsigned int number = 0;
	int err;

	while (number < ROUTER_USERS_MAX && s->users[number])
		number++;
	if (number == ROUTER_USERS_MAX)
		return -ENOSPC;
	if (!wait_threshold_ns)
		wait_threshold_ns = WAIT_THRESHOLD_NS;
	/* First passes on events of an earlier user with this number. */
	err = shared_pump(s);
	if (!err)
		err = capture_wait_threshold(s->capture, wait_threshold_ns);
	if (!err) /* an earlier user with this number may have had another one */
		err = capture_level_set(s->capture, number + 1, CAPTURE_DETAIL);
	if (err)
		return err;
	user = calloc(1, sizeof(*user));
	if (user)
		user->queues = calloc(s->n_cpus, sizeof(*user->queues));
	if (!user || !user->queues) {
		free(user);
		return -ENOMEM;
	}
	user->base.backend = &s->backend;
	snprintf(user->base.notice, sizeof(user->base.notice), "%s", capture_notice(s->capture));
	user->shared = s;
	user->number = number;
	user->wait_threshold_ns = wait_threshold_ns;
	user->stacks_end = &user->stacks;
	user->missed_before = shared_missed(s);
	s->users[number] = user;
	user_set_add(&s->joined, number);
	s->n_users++;
	*out = &user->base;
	return 0;
}

bool capture_shared_is_idle(struct capture *c)
{
	const struct capture_user *user = user_of(c);

	return c->backend->sample == user_sample && !shared_pump(user->shared) && !user->stacks &&
	       !user->n_queued;
}

void capture_shared_stacks_known(struct capture *c,
				 uint32_t (*find)(void *context, const struct capture_stack *stack),
				 void *context)
{
	if (c->backend->sample != user_sample)
		return;
	user_of(c)->stack_find = find;
	user_of(c)->stack_find_context = context;
}

int capture_shared_pump(struct capture_shared *s)
{
	return shared_pump(s);
}

void capture_shared_stats_get(const struct capture_shared *s, struct capture_shared_stats *out)
{
	*out = (struct capture_shared_stats){
		.users = s->n_users, .missed = s->missed, .unclaimed = s->unclaimed};
	for (size_t i = 0; i < s->n_cpus; i++) {
		struct capture_cpu_stats cpu;

		if (capture_cpu_stats(s->capture, i, &cpu))
			continue;
		out->emitted += cpu.emitted;
		out->dropped_kernel += cpu.dropped;
	}
}

uint64_t capture_shared_lost(const struct capture *c)
{
	return c->backend->sample == user_sample ? user_of_const(c)->lost : 0;
}
