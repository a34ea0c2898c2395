/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Moves events from the rings of all CPUs to the users' queues. The pump takes a clock sample,
 * reads the kernel's counters, and then reads the rings. It distributes the events that are not
 * younger than the sample, in the order of time. While an event of some CPU is incomplete, the
 * previous sample stays in force, so that no user is promised completeness too early.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bpf/backend/capture_shared_internal.h"

#include "clock/sample.h"
#include "proto/event_fields.h"

enum {
	PUMP_NS = 5000000,
	/* Room in the queues of all users together: 80 MiB of events, on large machines 10 MiB for
	 * each CPU. Queues double, so their memory may be twice that. */
	QUEUED_EVENTS_MIN = 2 << 20,
	QUEUED_EVENTS_PER_CPU = 256 << 10,
	STACKS_MAX = 256, /* of a user that does not drain */
};

/* ---- the users' queues ---- */

/* Returns whether a user may queue one more event. A user that has less than its share of half of
 * the room always may, so that an event storm of one VM does not cost the others their events. */
static bool has_room(const struct capture_shared *s, const struct capture_user *user)
{
	const size_t scaled = QUEUED_EVENTS_PER_CPU * s->n_cpus;
	const size_t half = (scaled > QUEUED_EVENTS_MIN ? scaled : QUEUED_EVENTS_MIN) / 2;

	/* One user must not take the room that the others share. */
	const size_t most = s->n_users > 1 ? half / 2 : half;

	return (s->n_queued < half && user->n_queued < most) || user->n_queued < half / s->n_users;
}

/* Adds an event to a user's queue. An event without room counts as lost, and its sequence number is
 * missing, as if the kernel's ring had lost it. */
static void queue_push(struct capture_shared *s, struct capture_user *user,
		       const struct vs_event *event)
{
	struct user_queue *q = &user->queues[event->cpu];
	const bool is_lost = event->type == VS_EVENT_LOST;
	const uint64_t n = is_lost ? ev_lost_count(event) : 1;
	const bool room = has_room(s, user) && !event_queue_add(&q->queue, event);

	if (room) {
		q->queue.events[q->queue.n - 1].seq = (uint32_t)q->emitted;
		user->n_queued++;
		s->n_queued++;
	}
	q->emitted += n;
	if (is_lost || !room)
		q->dropped += n;
}

static void user_push(struct capture_shared *s, struct capture_user *user,
		      const struct vs_event *event)
{
	pid_t tids[2];

	event_router_tasks(event, tids);
	for (int i = 0; i < 2; i++) {
		struct vs_event name;

		if (!event_router_introduce(s->router, tids[i], user->number, &name))
			continue;
		name.time = event->time;
		name.cpu = event->cpu;
		queue_push(s, user, &name);
	}
	queue_push(s, user, event);
}

/* Passes a loss to all users: the lost events may have belonged to any of them. */
static void lost_hand_out(struct capture_shared *s, const struct vs_event *lost)
{
	struct user_set users = s->joined;
	int number;

	while ((number = user_set_take(&users)) >= 0) {
		queue_push(s, s->users[number], lost);
		s->users[number]->lost += ev_lost_count(lost);
	}
}

static void event_hand_out(struct capture_shared *s, const struct vs_event *event)
{
	struct user_set users;
	int number;

	if (event->type == VS_EVENT_LOST) {
		lost_hand_out(s, event);
		return;
	}
	event_router_route(s->router, event, &users);
	user_set_keep(&users, &s->joined);
	number = user_set_take(&users);
	s->unclaimed += number < 0;
	for (; number >= 0; number = user_set_take(&users))
		user_push(s, s->users[number], event);
}

/* Returns a copy, or NULL without memory. */
static struct kept_stack *stack_copy(const struct capture_stack *stack)
{
	const size_t kernel_bytes = stack->n_kernel * sizeof(*stack->kernel);
	struct kept_stack *kept = malloc(sizeof(*kept) + kernel_bytes + stack->user.copied_bytes);
	char *behind;

	if (!kept)
		return NULL;
	behind = (char *)(kept + 1);
	kept->next = NULL;
	kept->stack = *stack;
	kept->stack.kernel = (uint64_t *)(void *)behind;
	kept->stack.user.copied = (uint8_t *)behind + kernel_bytes;
	if (kernel_bytes)
		memcpy(behind, stack->kernel, kernel_bytes);
	if (stack->user.copied_bytes)
		memcpy(behind + kernel_bytes, stack->user.copied, stack->user.copied_bytes);
	return kept;
}

static void stack_push(struct capture_user *user, const struct capture_stack *stack,
		       enum vs_stack_role role)
{
	struct capture_stack as = *stack;
	struct kept_stack *kept = NULL;

	as.role = role;
	if (user->n_stacks < STACKS_MAX) {
		as.known = user->stack_find ? user->stack_find(user->stack_find_context, &as) : 0;
		if (as.known)
			as.n_kernel = as.user.copied_bytes = 0;
		kept = stack_copy(&as);
	}
	if (!kept) {
		user->stacks_dropped++;
		return;
	}
	*user->stacks_end = kept;
	user->stacks_end = &kept->next;
	user->n_stacks++;
}

/* Passes the stack of a hit to the users that get the hit. */
static void hit_stack_hand_out(struct capture_shared *s, const struct capture_stack *stack)
{
	struct vs_event hit = {.type = VS_EVENT_USER, .cpu = stack->cpu, .pid = stack->tid};
	struct user_set users;
	int number;

	ev_set_user_id(&hit, stack->event);
	event_router_route(s->router, &hit, &users);
	user_set_keep(&users, &s->joined);
	while ((number = user_set_take(&users)) >= 0)
		stack_push(s->users[number], stack, stack->role);
}

static void on_stack(void *context, const struct capture_stack *stack)
{
	struct capture_shared *s = context;
	const int number = event_router_user_of(s->router, stack->explains);
	struct capture_user *user = number >= 0 ? s->users[number] : NULL;
	bool is_short;

	if (stack->role == VS_STACK_HIT) {
		hit_stack_hand_out(s, stack);
		return;
	}
	is_short = user && stack->wait_ns < user->wait_threshold_ns;
	if (user && (!is_short || stack->sampled))
		stack_push(user, stack, is_short ? VS_STACK_SHORT : stack->role);
}

/* ---- the kernel's rings ---- */

static void cpu_push(struct capture_shared *s, struct shared_cpu *cpu, const struct vs_event *event)
{
	const int err = event_queue_add(&cpu->queue, event);

	if (err)
		s->error = err;
}

static void cpu_push_lost(struct capture_shared *s, size_t number, uint64_t n, uint64_t end)
{
	struct shared_cpu *cpu = &s->cpus[number];
	struct vs_event lost = {.time = cpu->newest_time ? cpu->newest_time
							 : s->sample.monotonic_ns,
				.type = VS_EVENT_LOST,
				.cpu = (uint16_t)number};

	ev_set_lost_count(&lost, n);
	ev_set_lost_end(&lost, end);
	cpu->next_seq += (uint32_t)n;
	cpu->lost += n;
	cpu_push(s, cpu, &lost);
}

static void on_events(void *context, uint16_t number, const struct vs_event *events, size_t n)
{
	struct capture_shared *s = context;
	struct shared_cpu *cpu = &s->cpus[number];

	for (size_t i = 0; i < n; i++) {
		const int32_t jump = (int32_t)(events[i].seq - cpu->next_seq);

		if (jump > 0)
			cpu_push_lost(s, number, (uint64_t)jump, events[i].time);
		if (jump >= 0)
			cpu->next_seq = events[i].seq + 1;
		if (events[i].time > cpu->newest_time)
			cpu->newest_time = events[i].time;
		cpu_push(s, cpu, &events[i]);
	}
}

/* Counts the records that this CPU's programs had begun before the drain and that did not arrive as
 * lost. Returns false if one of them is still being written. */
static bool cpu_settle(struct capture_shared *s, size_t number, uint64_t drained_ns)
{
	struct shared_cpu *cpu = &s->cpus[number];
	const int32_t missing = (int32_t)((uint32_t)cpu->before.emitted - cpu->next_seq);

	if (missing <= 0)
		return true;
	if (cpu->before.dropped < cpu->lost + (uint64_t)missing)
		return false;
	cpu_push_lost(s, number, (uint64_t)missing, drained_ns);
	return true;
}

/* Returns the time up to which all CPUs must be read before the event is passed on: of a loss, its
 * end.
 */
static uint64_t due(const struct vs_event *event)
{
	return event->type == VS_EVENT_LOST ? ev_lost_end(event) : event->time;
}

/* Returns the CPU whose next event is the oldest, or NULL if none has an event up to `limit`. */
static struct shared_cpu *cpu_oldest(struct capture_shared *s, uint64_t limit)
{
	struct shared_cpu *oldest = NULL;

	for (size_t i = 0; i < s->n_cpus; i++) {
		struct shared_cpu *cpu = &s->cpus[i];

		if (cpu->begin == cpu->queue.n || due(&cpu->queue.events[cpu->begin]) > limit)
			continue;
		limit = due(&cpu->queue.events[cpu->begin]);
		oldest = cpu;
	}
	return oldest;
}

static void events_hand_out(struct capture_shared *s, uint64_t limit)
{
	struct shared_cpu *cpu;

	while ((cpu = cpu_oldest(s, limit)))
		event_hand_out(s, &cpu->queue.events[cpu->begin++]);
	for (size_t i = 0; i < s->n_cpus; i++) {
		event_queue_remove(&s->cpus[i].queue, s->cpus[i].begin);
		s->cpus[i].begin = 0;
	}
}

int shared_pump(struct capture_shared *s)
{
	const struct capture_sink sink = {on_events, on_stack, s};
	const uint64_t now = clock_monotonic_ns();
	struct clock_sample sample = {0};
	bool settled = true;
	int err;
	long n;

	if (s->pumped_ns && now - s->pumped_ns < PUMP_NS)
		return 0;
	s->pumped_ns = now;
	s->error = 0;
	err = clock_sample_take(&sample);
	if (err)
		return err;
	for (size_t i = 0; i < s->n_cpus; i++) {
		err = capture_cpu_stats(s->capture, i, &s->cpus[i].before);
		if (err)
			return err;
	}
	n = capture_drain(s->capture, &sink);
	if (n < 0)
		return (int)n;
	for (size_t i = 0; i < s->n_cpus; i++)
		settled &= cpu_settle(s, i, clock_monotonic_ns());
	if (settled) {
		s->sample = sample;
		s->samples[s->n_samples++ % SHARED_SAMPLES] = sample;
	}
	events_hand_out(s, s->sample.monotonic_ns - s->lag_ns);
	return s->error;
}
