/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What one guest CPU does by its own kernel's account: the current task, and above it a stack of
 * interrupt contexts of which the innermost is the state. Every event names the current task, so a
 * missed switch heals at the next event; an exit that was missed is healed by the exit of an outer
 * context, by an entry that cannot happen inside it, or by a switch, which no interrupt context can
 * survive: of such an incomplete interrupt only the begin is known. An exit of a softirq without an
 * entry shows what the one event was that went missing before.
 */
#ifndef MODEL_GUEST_CPU_H
#define MODEL_GUEST_CPU_H

#include "host-collector/model/model.h"

enum { GUEST_CPU_DEPTH = 16, GUEST_CPU_HISTORY = 16 };

struct guest_context { /* one interrupt or softirq that has begun */
	enum guest_cpu_state state;
	uint32_t number;
	bool vector;
	struct host_ns begin;
	uint64_t seen;             /* of the CPU's events when it began */
	uint64_t lost;             /* events missing since */
	struct host_ns sure_until; /* the last event before the first of them */
};

/*
 * What was seen of a task since it came onto its CPU, and what is missing. If most was seen and
 * none of it was a switch, presumably none of what is missing was, either, if the next event finds
 * the same task there.
 */
struct loss_balance {
	uint64_t seen, lost;
};

struct guest_cpu {
	uint32_t vm;
	uint32_t boot; /* of its kernel: whoever feeds it says */
	uint16_t cpu;
	bool task_known;
	enum unknown_reason why; /* the task is not known */
	int32_t pid;             /* the current task; 0 the idle task */
	struct guest_span open;
	struct host_ns switched; /* the newest switch, */
	int32_t switched_to;     /* and to which task */
	struct host_ns last;     /* the newest event... */
	uint32_t err_ns;         /* and the bound on its time's error, */
	bool err_grows;          /* which grows as fast as time: of a gap between two clocks */
	bool doubted; /* one event is missing since `last`; the next may show that it was no switch
		       */
	struct loss_balance balance; /* of the current task */
	unsigned depth;
	unsigned doubted_depth; /* so many of the contexts began before a loss */
	uint64_t seen;          /* events so far */
	/* No softirq can have begun unseen before `unseen_since`; one event that went missing just
	 * before that can be the entry of one. */
	bool softirqs_known, unseen_possible;
	struct host_ns unseen_since;
	struct guest_context stack[GUEST_CPU_DEPTH];
	/* Recent changes between busy, idle and unknown, for questions about the recent past. */
	unsigned n_changes;
	struct guest_change {
		struct host_ns t;
		enum guest_account {
			GUEST_ACCOUNT_UNKNOWN,
			GUEST_ACCOUNT_IDLE,
			GUEST_ACCOUNT_BUSY
		} is;
	} changes[GUEST_CPU_HISTORY];
};

/* Where spans and interrupts go. */
struct guest_cpu_sink {
	void (*span)(void *context, const struct guest_span *span);
	void (*interrupt)(void *context, const struct guest_interrupt *interrupt);
	void *context;
};

/* Its state is unknown from `t` on. */
void guest_cpu_init(struct guest_cpu *c, uint32_t vm, uint16_t cpu, struct host_ns t);
/* The bound on the error of the time of the event that is about to come. */
void guest_cpu_error(struct guest_cpu *c, struct host_ns t, uint32_t err_ns);
/* Any event that fired on this CPU, in time order. */
void guest_cpu_event(struct guest_cpu *c, struct host_ns t, const struct vs_event *e,
		     const struct guest_cpu_sink *sink);
/*
 * From when a LOST event that came at `t` makes its CPU unknown, `last` being its last good event.
 * A LOST that lies before the next good event (its arg1) says when the gap began; so does one that
 * counts nothing lost, from where on nothing is known. Any other only reports: all since `last`.
 */
struct host_ns loss_since(const struct vs_event *e, struct host_ns t, struct host_ns last);
/* The task that this event says was (from now on: is) current on the CPU where it fired. */
bool guest_event_current(const struct vs_event *e, int32_t *pid);
/* The task that was current when this event fired, if it says so. */
bool guest_event_was_current(const struct vs_event *e, int32_t *pid);
/* Does a LOST event leave room for one missing event only? That cannot have been a switch away from
 * a task and the switch back to it. */
bool loss_is_single(const struct vs_event *e);
/* Counts the events of a LOST event. Does the task presumably go on? One missing event cannot be a
 * switch away and back; more can, but only where few are. */
bool loss_bearable(struct loss_balance *b, const struct vs_event *e);
/* What it did since its last event is not known. */
void guest_cpu_forget(struct guest_cpu *c, const struct guest_cpu_sink *sink);
/* Closes what is open. */
void guest_cpu_finish(struct guest_cpu *c, struct host_ns t, const struct guest_cpu_sink *sink);
/* Idle or busy at `t`, if the recent past remembers it and it was the same all around `t` for as
 * long as the clocks may be wrong. now: all events before it have come. */
enum guest_account guest_cpu_account(const struct guest_cpu *c, struct host_ns t,
				     struct host_ns now);

#endif
