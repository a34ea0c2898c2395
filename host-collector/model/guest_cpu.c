/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/guest_cpu.h"

#include <string.h>

void guest_cpu_init(struct guest_cpu *c, uint32_t vm, uint16_t cpu, struct host_ns t)
{
	memset(c, 0, sizeof(*c));
	c->vm = vm;
	c->cpu = cpu;
	c->last = t;
	c->why = UNKNOWN_NOT_SEEN;
	c->open = (struct guest_span){.vm = vm,
				      .cpu = cpu,
				      .state = GUEST_CPU_UNKNOWN,
				      .why = c->why,
				      .begin = t,
				      .end = t};
	c->changes[0].t = t;
	c->n_changes = 1;
	c->switched = t;
}

/* The state outside of all interrupts. */
static enum guest_cpu_state task_state(const struct guest_cpu *c)
{
	if (!c->task_known)
		return GUEST_CPU_UNKNOWN;
	return c->pid == 0 ? GUEST_CPU_IDLE : GUEST_CPU_TASK;
}

static struct guest_span state_now(const struct guest_cpu *c, struct host_ns t)
{
	struct guest_span s = {
		.vm = c->vm, .boot = c->boot, .cpu = c->cpu, .begin = t, .end = t, .pid = c->pid};

	if (c->depth) {
		const struct guest_context *top = &c->stack[c->depth - 1];

		s.state = top->state;
		s.number = top->number;
		s.vector = top->vector;
	} else {
		s.state = task_state(c);
		if (!c->task_known)
			s.why = c->why;
	}
	return s;
}

/* Is the open span still that of the current state? Most events change nothing, so this builds no
 * span to compare with. */
static bool open_continues(const struct guest_cpu *c)
{
	const struct guest_span *open = &c->open;
	const struct guest_context *top = c->depth ? &c->stack[c->depth - 1] : NULL;

	if (open->pid != c->pid)
		return false;
	if (!top)
		return open->state == task_state(c) && !open->number && !open->vector;
	return open->state == top->state && open->number == top->number &&
	       open->vector == top->vector;
}

static void account_set(struct guest_cpu *c, struct host_ns t)
{
	enum guest_account is = !c->task_known ? GUEST_ACCOUNT_UNKNOWN
				: c->pid == 0  ? GUEST_ACCOUNT_IDLE
					       : GUEST_ACCOUNT_BUSY;

	if (c->changes[(c->n_changes - 1) % GUEST_CPU_HISTORY].is == is)
		return;
	c->changes[c->n_changes++ % GUEST_CPU_HISTORY] = (struct guest_change){.t = t, .is = is};
	if (c->n_changes == 2 * GUEST_CPU_HISTORY)
		c->n_changes = GUEST_CPU_HISTORY; /* same slots, and the counter never wraps */
}

enum guest_account guest_cpu_account(const struct guest_cpu *c, struct host_ns t,
				     struct host_ns now)
{
	unsigned n = c->n_changes < GUEST_CPU_HISTORY ? c->n_changes : GUEST_CPU_HISTORY;
	enum guest_account is = GUEST_ACCOUNT_UNKNOWN;
	int64_t err_ns = c->err_ns;
	bool found = false;

	if (c->doubted && t.ns > c->last.ns)
		return GUEST_ACCOUNT_UNKNOWN; /* the missing event may be a switch */
	if (c->err_grows && t.ns > c->last.ns)
		err_ns += t.ns - c->last.ns;
	if (t.ns + err_ns > now.ns)
		return GUEST_ACCOUNT_UNKNOWN;
	for (unsigned i = 1; i <= n; i++) {
		const struct guest_change *change =
			&c->changes[(c->n_changes - i) % GUEST_CPU_HISTORY];

		if (change->t.ns > t.ns + err_ns)
			continue;
		if (found && change->is != is)
			return GUEST_ACCOUNT_UNKNOWN;
		is = change->is;
		found = true;
		if (change->t.ns <= t.ns - err_ns)
			return is;
	}
	return GUEST_ACCOUNT_UNKNOWN;
}

/* The state may have changed at `t`: a new span begins if it did. */
static inline void update(struct guest_cpu *c, struct host_ns t, const struct guest_cpu_sink *sink)
{
	account_set(c, t);
	if (open_continues(c))
		return;
	c->open.end = t;
	if (c->open.end.ns > c->open.begin.ns)
		sink->span(sink->context, &c->open);
	c->open = state_now(c, t);
}

enum ending { ENDING_EXIT, ENDING_NO_EXIT, ENDING_DATA };

static void pop(struct guest_cpu *c, struct host_ns t, enum ending ending,
		const struct guest_cpu_sink *sink)
{
	const struct guest_context *top = &c->stack[--c->depth];
	struct guest_interrupt interrupt = {
		.vm = c->vm,
		.cpu = c->cpu,
		.kind = top->state,
		.number = top->number,
		.vector = top->vector,
		.begin = top->begin,
		.end = t,
		.pid = c->pid,
		.whole = ending == ENDING_EXIT,
		.goes_on = ending == ENDING_DATA,
	};

	if (c->doubted_depth > c->depth)
		c->doubted_depth = c->depth;
	sink->interrupt(sink->context, &interrupt);
}

/*
 * The event at `t` proves that the innermost context has ended, but its exit was not seen. If the
 * context is from before a gap, the exit may be lost: the context lasted at least until the gap.
 * Otherwise its exit was never captured, and only its begin is known. Only softirqs may be
 * interrupted by a switch, in a kernel with PREEMPT_RT.
 */
static void pop_incomplete(struct guest_cpu *c, struct host_ns t, const struct guest_cpu_sink *sink)
{
	const struct guest_context top = c->stack[c->depth - 1];

	if (c->depth <= c->doubted_depth) {
		pop(c, top.sure_until, ENDING_NO_EXIT, sink);
	} else if (top.state == GUEST_CPU_SOFTIRQ) {
		pop(c, t, ENDING_NO_EXIT, sink);
	} else {
		pop(c, top.begin, ENDING_NO_EXIT, sink);
		/* The rest of its span is what it interrupted. */
		if (c->open.begin.ns >= top.begin.ns)
			c->open = state_now(c, c->open.begin);
	}
}

/* Can an interrupt of kind `inner` begin inside `outer`? Vectors are handled with interrupts off,
 * and softirqs run when the last hard interrupt is over; neither nests in itself. */
static bool may_nest(const struct guest_context *outer, const struct guest_context *inner)
{
	if (outer->state == GUEST_CPU_SOFTIRQ || inner->state == GUEST_CPU_SOFTIRQ)
		return outer->state != inner->state && inner->state != GUEST_CPU_SOFTIRQ;
	return !outer->vector && (inner->vector || inner->number != outer->number);
}

static void enter(struct guest_cpu *c, struct host_ns t, const struct guest_context *context,
		  const struct guest_cpu_sink *sink)
{
	unsigned possible = 0;

	while (possible < c->depth && may_nest(&c->stack[possible], context))
		possible++;
	/* Deeper than any kernel nests: exits were missed. The oldest is the least likely alive. */
	if (possible == GUEST_CPU_DEPTH)
		possible = 0;
	while (c->depth > possible)
		pop_incomplete(c, t, sink);
	c->stack[c->depth] = *context;
	c->stack[c->depth].seen = c->seen;
	c->stack[c->depth++].begin = t;
}

/*
 * Returns true if this exit may end another context of the same kind. Then the exit of this one and
 * the entry of the other are both missing. With l of n events missing, the probability is (l /
 * n)^2, which is ignored below 1 in 1000. It is also ignored after many events of which most were
 * seen, because none of them proved the end of this context, as others of its kind and switches
 * would.
 */
static bool may_be_another(const struct guest_cpu *c, const struct guest_context *context)
{
	const uint64_t many = 32;
	uint64_t lost = context->lost, seen = c->seen - context->seen, all = lost + seen;

	return lost >= 2 && lost * lost * 1000 > all * all && (seen < many || lost > seen / 2);
}

/*
 * The end of a context whose entry was not seen: before the recording, or lost. Of a softirq, if it
 * was known that none was under way and one event is missing since, that was its entry. It has gone
 * on since the gap's end at the latest; if one event was missing more than once, since the last.
 */
static void unseen_leave(struct guest_cpu *c, struct host_ns t, const struct guest_context *context,
			 const struct guest_cpu_sink *sink)
{
	struct guest_interrupt interrupt = {
		.vm = c->vm,
		.cpu = c->cpu,
		.kind = context->state,
		.number = context->number,
		.begin = c->unseen_since,
		.end = t,
		.pid = c->pid,
		.whole = true,
	};

	if (context->state != GUEST_CPU_SOFTIRQ || !c->unseen_possible || c->depth)
		return;
	c->unseen_possible = false;
	sink->interrupt(sink->context, &interrupt);
}

static void leave(struct guest_cpu *c, struct host_ns t, const struct guest_context *context,
		  const struct guest_cpu_sink *sink)
{
	unsigned at = c->depth;

	while (at && (c->stack[at - 1].state != context->state ||
		      c->stack[at - 1].number != context->number ||
		      c->stack[at - 1].vector != context->vector))
		at--;
	if (!at) {
		unseen_leave(c, t, context, sink);
		return;
	}
	while (c->depth > at)
		pop_incomplete(c, t, sink);
	if (may_be_another(c, &c->stack[at - 1]))
		pop(c, c->stack[at - 1].sure_until, ENDING_NO_EXIT, sink);
	else
		pop(c, t, ENDING_EXIT, sink);
}

/* What an event type shows about contexts. */
struct guest_rule {
	enum { RULE_NOTHING, RULE_ENTER, RULE_LEAVE, RULE_SWITCH } action;
	enum guest_cpu_state state;
	bool vector;
};

static const struct guest_rule rules[VS_EVENT_TYPE_LIMIT] = {
	[VS_EVENT_SCHED_SWITCH] = {RULE_SWITCH, GUEST_CPU_TASK, false},
	[VS_EVENT_IRQ_ENTRY] = {RULE_ENTER, GUEST_CPU_HARDIRQ, false},
	[VS_EVENT_IRQ_EXIT] = {RULE_LEAVE, GUEST_CPU_HARDIRQ, false},
	[VS_EVENT_SOFTIRQ_ENTRY] = {RULE_ENTER, GUEST_CPU_SOFTIRQ, false},
	[VS_EVENT_SOFTIRQ_EXIT] = {RULE_LEAVE, GUEST_CPU_SOFTIRQ, false},
	[VS_EVENT_VECTOR_ENTRY] = {RULE_ENTER, GUEST_CPU_HARDIRQ, true},
	[VS_EVENT_VECTOR_EXIT] = {RULE_LEAVE, GUEST_CPU_HARDIRQ, true},
};

struct host_ns loss_since(const struct vs_event *e, struct host_ns t, struct host_ns last)
{
	return ev_lost_count(e) == 0 || e->time < ev_lost_end(e) || last.ns > t.ns ? t : last;
}

bool loss_is_single(const struct vs_event *e)
{
	return ev_lost_count(e) == 1;
}

bool loss_bearable(struct loss_balance *b, const struct vs_event *e)
{
	b->lost += ev_lost_count(e);
	return ev_lost_count(e) && (b->lost <= 1 || b->lost <= b->seen / 2);
}

__attribute__((noinline)) static void forget(struct guest_cpu *c, struct host_ns from,
					     enum unknown_reason why,
					     const struct guest_cpu_sink *sink)
{
	if (from.ns < c->open.begin.ns)
		from = c->open.begin;
	c->doubted = false;
	c->doubted_depth = 0;
	c->softirqs_known = c->unseen_possible = false;
	while (c->depth)
		pop(c, from, ENDING_NO_EXIT, sink);
	if (c->task_known || c->why == UNKNOWN_NOT_SEEN)
		c->why = why;
	c->task_known = false;
	c->pid = 0;
	c->balance = (struct loss_balance){0};
	update(c, from, sink);
}

static bool in_softirq(const struct guest_cpu *c)
{
	for (unsigned i = 0; i < c->depth; i++) {
		if (c->stack[i].state == GUEST_CPU_SOFTIRQ)
			return true;
	}
	return false;
}

/* Applies what an event shows about softirqs: no switch happens in one, and they do not nest. */
static void softirqs_note(struct guest_cpu *c, const struct guest_rule *rule)
{
	if (rule->action != RULE_SWITCH && rule->state != GUEST_CPU_SOFTIRQ)
		return;
	c->softirqs_known = true;
	c->unseen_possible = false;
}

/* The first event after a gap: was the same task current all along? */
static void doubt_end(struct guest_cpu *c, struct host_ns t, const struct vs_event *e,
		      const struct guest_cpu_sink *sink)
{
	int32_t pid;

	if (!c->doubted)
		return;
	if (!guest_event_was_current(e, &pid) || pid != c->pid)
		forget(c, c->last, UNKNOWN_LOST, sink);
	c->doubted = false;
	c->unseen_possible = c->softirqs_known && !in_softirq(c);
	c->unseen_since = t;
}

/* Hard interrupts do not nest in each other, nor softirqs: the entry of another proves one from
 * before a gap over. */
static void doubted_pop(struct guest_cpu *c, struct host_ns t, enum guest_cpu_state entering,
			const struct guest_cpu_sink *sink)
{
	unsigned at = c->doubted_depth < c->depth ? c->doubted_depth : c->depth;

	while (at && c->stack[at - 1].state != entering)
		at--;
	if (!at)
		return;
	while (c->depth >= at)
		pop_incomplete(c, t, sink);
	c->doubted_depth = at - 1;
}

__attribute__((noinline)) static void lost(struct guest_cpu *c, struct host_ns t,
					   const struct vs_event *e,
					   const struct guest_cpu_sink *sink)
{
	struct host_ns from = loss_since(e, t, c->last);
	bool bearable = loss_bearable(&c->balance, e) || (loss_is_single(e) && !c->doubted);

	if (bearable && c->task_known) {
		c->doubted = true;
		c->doubted_depth = c->depth;
		for (unsigned i = 0; i < c->depth; i++) {
			if (!c->stack[i].lost)
				c->stack[i].sure_until = c->last;
			c->stack[i].lost += ev_lost_count(e);
		}
		return;
	}
	forget(c, c->doubted ? c->last : from, ev_lost_count(e) ? UNKNOWN_LOST : UNKNOWN_NO_AGENT,
	       sink);
}

/*
 * Another task is current than the one before, and no switch led there: the CPU was offline, or its
 * kernel left the switch out. What it did since its last event is not known.
 */
static void unled(struct guest_cpu *c, const struct vs_event *e, const struct guest_cpu_sink *sink)
{
	int32_t pid;

	if (c->task_known && !c->doubted && guest_event_was_current(e, &pid) && pid != c->pid)
		forget(c, c->last, UNKNOWN_NO_SWITCH, sink);
}

void guest_cpu_forget(struct guest_cpu *c, const struct guest_cpu_sink *sink)
{
	forget(c, c->last, UNKNOWN_NO_SWITCH, sink);
}

void guest_cpu_error(struct guest_cpu *c, struct host_ns t, uint32_t err_ns)
{
	int64_t more = (int64_t)err_ns - c->err_ns;

	if (t.ns > c->last.ns)
		c->err_grows = more > 0 && more > (t.ns - c->last.ns) / 2;
	c->err_ns = err_ns;
}

/* An interrupt or softirq begins or ends. */
__attribute__((noinline)) static void context_event(struct guest_cpu *c, struct host_ns t,
						    const struct vs_event *e,
						    const struct guest_rule *rule,
						    const struct guest_cpu_sink *sink)
{
	const struct guest_context context = {.state = rule->state,
					      .number = (uint32_t)ev_handler_number(e),
					      .vector = rule->vector};

	if (rule->action == RULE_LEAVE) {
		leave(c, t, &context, sink);
		return;
	}
	if (c->doubted_depth)
		doubted_pop(c, t, rule->state, sink);
	enter(c, t, &context, sink);
}

/* A switch ends all interrupts and softirqs. */
__attribute__((noinline)) static void contexts_end(struct guest_cpu *c, struct host_ns t,
						   const struct guest_cpu_sink *sink)
{
	while (c->depth)
		pop_incomplete(c, t, sink);
}

/* The rare and the large parts of this are not inlined: most events need none of them, and would
 * pay for their stack frame. */
void guest_cpu_event(struct guest_cpu *c, struct host_ns t, const struct vs_event *e,
		     const struct guest_cpu_sink *sink)
{
	const struct guest_rule *rule;

	if (e->type == VS_EVENT_LOST) {
		lost(c, t, e, sink);
		return;
	}
	if (e->type >= VS_EVENT_TYPE_LIMIT)
		return;
	rule = &rules[e->type];
	c->seen++;
	c->balance.seen++;
	doubt_end(c, t, e, sink);
	unled(c, e, sink);
	if (rule->action == RULE_NOTHING && c->task_known) {
		c->last = t; /* if it names the current task, that is the known one */
		return;
	}
	if (rule->action == RULE_SWITCH) {
		if (c->depth)
			contexts_end(c, t, sink);
		c->doubted_depth = 0;
		c->balance = (struct loss_balance){0};
		c->switched = t;
		c->switched_to = e->pid2;
	}
	if (guest_event_current(e, &c->pid))
		c->task_known = true;
	if (rule->action == RULE_ENTER || rule->action == RULE_LEAVE)
		context_event(c, t, e, rule, sink);
	softirqs_note(c, rule);
	update(c, t, sink);
	c->last = t;
}

void guest_cpu_finish(struct guest_cpu *c, struct host_ns t, const struct guest_cpu_sink *sink)
{
	struct guest_span last;

	if (c->doubted)
		forget(c, c->last, UNKNOWN_LOST, sink);
	last = c->open;

	while (c->depth)
		pop(c, t, ENDING_DATA, sink);
	last.end = t;
	if (last.end.ns > last.begin.ns)
		sink->span(sink->context, &last);
	c->open = state_now(c, t);
}
