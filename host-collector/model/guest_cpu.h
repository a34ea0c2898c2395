/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Computes the state of one guest CPU from its kernel's events: the current task and a stack of
 * interrupts and softirqs, the innermost of which is the state.
 *
 * Missing events are detected as follows. Every event names the current task, so a missing switch
 * is noticed at the next event. An interrupt whose exit is missing ends at the exit of an outer
 * one, at an entry that cannot nest inside it, or at a switch; then only its begin is known. If a
 * softirq exits without an entry and one event was lost before, that event was the entry.
 */
#ifndef MODEL_GUEST_CPU_H
#define MODEL_GUEST_CPU_H

#include "host-collector/model/model.h"
#include "proto/event_catalog.h"

enum { GUEST_CPU_DEPTH = 16, GUEST_CPU_HISTORY = 16 };

struct guest_context { /* an interrupt or softirq that has begun */
	enum guest_cpu_state state;
	uint32_t number;
	bool vector;
	struct host_ns begin;
	uint64_t seen;             /* number of the CPU's events when it began */
	uint64_t lost;             /* number of events lost since then */
	struct host_ns sure_until; /* the last event before the first loss */
};

/*
 * The numbers of events of a task that arrived and that were lost since it came onto its CPU. If
 * most arrived and none was a switch, the lost events presumably contain no switch either, provided
 * the next event shows the same task.
 */
struct loss_balance {
	uint64_t seen, lost;
};

struct guest_cpu {
	uint32_t vm;
	uint32_t boot; /* boot of its kernel; set by the caller */
	uint16_t cpu;
	bool task_known;
	enum unknown_reason why; /* why the task is unknown */
	int32_t pid;             /* current task; 0: the idle task */
	struct guest_span open;
	struct host_ns switched; /* time of the newest switch */
	int32_t switched_to;     /* task of the newest switch */
	struct host_ns last;     /* time of the newest event */
	uint32_t err_ns;         /* bound on the error of `last` */
	bool err_grows;          /* err_ns grows with time: in a gap between two clock maps */
	/* Events were lost since `last`. The next event may show that no switch was among them. */
	bool doubted;
	struct loss_balance balance; /* balance of the current task */
	unsigned depth;
	unsigned doubted_depth; /* number of contexts that began before a loss */
	uint64_t seen;          /* number of events so far */
	/* softirqs_known: it is known which softirqs run. unseen_possible: the event that was lost
	 * just before `unseen_since` can be the entry of another one. */
	bool softirqs_known, unseen_possible;
	struct host_ns unseen_since;
	struct guest_context stack[GUEST_CPU_DEPTH];
	/* The newest changes between busy, idle and unknown. */
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

/* Receives the spans and interrupts. */
struct guest_cpu_sink {
	void (*span)(void *context, const struct guest_span *span);
	void (*interrupt)(void *context, const struct guest_interrupt *interrupt);
	void *context;
};

/* Initializes a guest CPU whose state is unknown from `t` on. */
void guest_cpu_init(struct guest_cpu *c, uint32_t vm, uint16_t cpu, struct host_ns t);
/* Sets the bound on the time `t` of the event that is passed next. */
void guest_cpu_error(struct guest_cpu *c, struct host_ns t, uint32_t err_ns);
/* Processes an event of this CPU, in time order. */
void guest_cpu_event(struct guest_cpu *c, struct host_ns t, const struct vs_event *e,
		     const struct guest_cpu_sink *sink);
/*
 * Returns the time from which a LOST event makes its CPU unknown. The event has time `t`, and
 * `last` is the CPU's last event before it. A LOST event that states the begin of the gap (time <
 * arg1), or that counts no lost events, is the begin itself. Any other only reports that events
 * were lost, so nothing is known since `last`.
 */
struct host_ns loss_since(const struct vs_event *e, struct host_ns t, struct host_ns last);
/* Returns true and sets *pid if the event names the current task of its CPU. For a switch this is
 * the next task. */
static inline bool guest_event_current(const struct vs_event *e, int32_t *pid)
{
	const uint8_t current = event_type_of(e->type)->current;

	if (current == EVENT_CURRENT_NONE)
		return false;
	*pid = current == EVENT_CURRENT_PID ? e->pid : e->pid2;
	return true;
}
/* Returns true and sets *pid if the event names the task that was current when it happened. For a
 * switch this is the previous task. */
static inline bool guest_event_was_current(const struct vs_event *e, int32_t *pid)
{
	if (e->type != VS_EVENT_SCHED_SWITCH)
		return guest_event_current(e, pid);
	*pid = e->pid;
	return true;
}
/* Returns true if a LOST event counts one event only. A switch away from a task and back would be
 * two. */
bool loss_is_single(const struct vs_event *e);
/* Adds the count of a LOST event. Returns true if the task presumably was not switched: one event
 * is lost in total, or at most half as many as arrived. */
bool loss_bearable(struct loss_balance *b, const struct vs_event *e);
/* Makes the CPU unknown since its last event. */
void guest_cpu_forget(struct guest_cpu *c, const struct guest_cpu_sink *sink);
/* Ends the open span and all interrupts at the end of the data. */
void guest_cpu_finish(struct guest_cpu *c, struct host_ns t, const struct guest_cpu_sink *sink);
/* Returns whether the CPU was idle or busy at `t`: known only if its state was the same from `t`
 * minus to `t` plus the error of the clocks, and if the change history reaches back that far. All
 * events before `now` have arrived. */
enum guest_account guest_cpu_account(const struct guest_cpu *c, struct host_ns t,
				     struct host_ns now);

#endif
