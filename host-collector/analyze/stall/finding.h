/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Findings: what an analysis states about an incident, as data. A finding has a kind and the values
 * that the kind needs. The view builds the sentence (view/finding_text.h), so its wording can
 * change without the analysis. Names are unescaped: guests and host tasks choose them.
 */
#ifndef STALL_FINDING_H
#define STALL_FINDING_H

#include <stddef.h>
#include <stdint.h>

#include "host-collector/model/model.h"

/* X(NAME): all kinds. view/finding_text.c has the sentence of each, which shows its values. */
#define FINDINGS(X)                                                                                \
	X(NONE) /* ends a list of findings */                                                      \
	/* why: the reasons for a verdict */                                                       \
	X(CAUSE) /* of verdict n[0], accounts for ns[0]; no more is known */                       \
	X(THREAD_SIGNALLED)                                                                        \
	X(THREAD_FROZEN)                                                                           \
	X(THREAD_TRACED)                                                                           \
	X(THREAD_STOPPED)                                                                          \
	X(VM_PAUSED)                                                                               \
	X(PCPU_WAIT)                                                                               \
	X(HELD_BY)                                                                                 \
	X(HELD_BY_KIND)                                                                            \
	X(HELD_BY_CGROUP)                                                                          \
	X(HELD_BY_SEVERAL)                                                                         \
	X(OR_QUOTA)                                                                                \
	X(QUOTA_PCPU_IDLE)                                                                         \
	X(QUOTA_USED)                                                                              \
	X(QUOTA_USED_BY)                                                                           \
	X(QUOTA_RATE)                                                                              \
	X(BIG_LOCK)                                                                                \
	X(LOCK_RELEASED_BY)                                                                        \
	X(PAGE_WAIT)                                                                               \
	X(IRQ_STORM)                                                                               \
	X(LOCK_COINCIDENCE)                                                                        \
	X(LOCK_HALTED)                                                                             \
	X(LOCK_SPUN)                                                                               \
	X(IPI_MAYBE_SENT)                                                                          \
	X(IPI_SENT)                                                                                \
	X(PEER_VCPU)                                                                               \
	X(PEER_CPU)                                                                                \
	X(PEER_TASK_ON_CPU)                                                                        \
	X(WAIT_ENDED_WITH_IT)                                                                      \
	X(TASK_KEPT_CPU)                                                                           \
	X(INTERRUPT_KEPT_CPU)                                                                      \
	X(IDLE_TOOK_NO_INTERRUPT)                                                                  \
	X(WHILE_HALTED)                                                                            \
	X(WHILE_RAN)                                                                               \
	X(ANSWER_AWAITED_IN)                                                                       \
	X(SPUN_IN)                                                                                 \
	X(REQUEST_SENT_TO)                                                                         \
	X(MAY_HAVE_AWAITED)                                                                        \
	X(LIKELY_AWAITED)                                                                          \
	X(GUEST_PEER_TASK)                                                                         \
	X(GUEST_PEER_TASK_IRQS_OFF)                                                                \
	X(GUEST_PEER_INTERRUPT)                                                                    \
	X(EARLIER_DEBT)                                                                            \
	X(DEVICE_ACCESS)                                                                           \
	X(DEVICE_POLLED_PORT)                                                                      \
	X(DEVICE_POLLED_ADDRESS)                                                                   \
	X(CLOCK_AHEAD)                                                                             \
	X(CLOCK_BACK)                                                                              \
	X(NESTED)                                                                                  \
	X(INTERRUPT_LOST)                                                                          \
	X(ALTHOUGH_HALTED)                                                                         \
	X(ALTHOUGH_GUEST_RAN)                                                                      \
	X(TIMES_UNPROVEN)                                                                          \
	X(NO_SINGLE_CAUSE)                                                                         \
	X(FURTHER_CAUSE)                                                                           \
	X(NO_EXPLANATION)                                                                          \
	X(NO_CAUSE_OF_HALF)                                                                        \
	/* numbers that do not add up: where, then what */                                         \
	X(INCONSISTENT)                                                                            \
	X(IN_VCPU)                                                                                 \
	X(IN_INCIDENT)                                                                             \
	X(STATES_SUM)                                                                              \
	X(STATE_NEGATIVE)                                                                          \
	X(BEYOND_RECORDING)                                                                        \
	/* denied: what was denied to which task */                                                \
	X(DENIED_NOTHING)                                                                          \
	X(DENIED_HANDLER)                                                                          \
	X(DENIED_CLOCK_SET)                                                                        \
	X(DENIED_READY_TASK)                                                                       \
	X(DENIED_ONE_MORE)                                                                         \
	X(DENIED_MORE)                                                                             \
	X(DENIED_INTERRUPTED)                                                                      \
	X(DENIED_BY_HOST)                                                                          \
	X(DENIED_IN_PIECES)                                                                        \
	X(DENIED_IN_ALL)                                                                           \
	X(DENIED_BY_OTHER_CPU)                                                                     \
	X(DENIED_ALL_ELSE)                                                                         \
	X(DENIED_BY_INTERRUPTS)                                                                    \
	X(DENIED_TICKS)                                                                            \
	/* seen: the evidence */                                                                   \
	X(SEEN_STOP_SIGNAL)                                                                        \
	X(SEEN_FROZEN)                                                                             \
	X(SEEN_TRACER)                                                                             \
	X(SEEN_DEBUGGER)                                                                           \
	X(SEEN_EARLIER_SIGNAL)                                                                     \
	X(SEEN_MIGRATION)                                                                          \
	X(SEEN_PAUSE)                                                                              \
	X(SEEN_PCPU_SHARED)                                                                        \
	X(SEEN_PCPU_HELD)                                                                          \
	X(SEEN_PCPU_IDLE)                                                                          \
	X(SEEN_PCPU_WAIT)                                                                          \
	X(SEEN_SLEEP)                                                                              \
	X(SEEN_SLEEP_WOKEN)                                                                        \
	X(SEEN_IN_KVM)                                                                             \
	X(SEEN_IN_VMM)                                                                             \
	X(SEEN_THROTTLED)                                                                          \
	X(SEEN_UNKNOWN)                                                                            \
	X(SEEN_UNKNOWN_WHY)                                                                        \
	X(SEEN_PENDING)                                                                            \
	X(SEEN_PENDING_OPEN)                                                                       \
	X(SEEN_HOST_LOG)                                                                           \
	X(SEEN_WAITER)                                                                             \
	X(SEEN_CALLS)                                                                              \
	X(SEEN_SPINS)                                                                              \
	X(SEEN_COMPUTES)                                                                           \
	X(SEEN_TICKS)                                                                              \
	X(SEEN_INTERRUPTS)                                                                         \
	X(SEEN_EVENT)                                                                              \
	X(SEEN_EVENTS)                                                                             \
	X(SEEN_KEPT_EVENTS)                                                                        \
	X(SEEN_HITS)                                                                               \
	X(SEEN_HITS_OR_MORE)                                                                       \
	/* ns[0]: error of the longest; n[1]: lost events make it unsure */                        \
	X(SEEN_PAIR)                                                                               \
	X(SEEN_PAIRS)                                                                              \
	X(SEEN_KEPT_PAIRS)                                                                         \
	X(SEEN_OTHER_PAIRS)                                                                        \
	/* detectors: what each one found, or why it could not */                                  \
	X(NO_WAITER)                                                                               \
	X(SHORT_WAITER)                                                                            \
	X(WAITER)                                                                                  \
	X(TICKS_TOO_FEW)                                                                           \
	X(TICKS_STOPPED)                                                                           \
	X(TICKS_WENT_ON)                                                                           \
	X(BELOW_WATCHDOG)                                                                          \
	X(BELOW_DEFAULT_WATCHDOG)                                                                  \
	X(WATCHDOG_PAUSED)                                                                         \
	X(WATCHDOG_SILENT)                                                                         \
	X(WATCHDOG_LINE)                                                                           \
	X(BLIND_NO_GUEST)                                                                          \
	X(BLIND_LOST_INTERRUPT)                                                                    \
	X(BLIND_SHORT_WAITS)                                                                       \
	X(BLIND_NO_EVENT)                                                                          \
	X(BLIND_IDLE)

enum finding_kind {
#define X(NAME) FINDING_##NAME,
	FINDINGS(X)
#undef X
		FINDING_COUNT
};

/* A task by pid and name. pid 0: the idle task. comm "": the name is unknown. */
struct finding_task {
	int32_t pid;
	char comm[16];
};

/* A duration in finding.ns that is not known. */
#define FINDING_NS_UNKNOWN (-1)

/* Values that the kind does not need are 0. */
struct finding {
	enum finding_kind kind;
	int64_t ns[2];
	uint64_t n[3]; /* numbers, and values of enums */
	struct finding_task task[2];
	char name[256]; /* a name, path or quoted line; longer ones are cut */
};

/* Returns the task `pid` of a source as the model knows it. */
struct finding_task finding_task(const struct model *m, uint32_t source, int32_t pid);
/* Appends a finding to a list of `max` findings that ends with the first one of kind NONE. Drops it
 * if the list is full. */
void finding_add(struct finding *list, size_t max, const struct finding *f);

#endif
